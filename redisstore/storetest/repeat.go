package storetest

import (
	"time"

	"github.com/dispatchkit/dispatch"
)

var repeatedClaimCases = []testcase{
	{"the same number answers the same and leases nothing new", sameNumber},
	{"after some were settled the others come", sameNumberAfterSettle},
	{"after a sweep and another worker's claim nothing comes", sameNumberAfterSweep},
	{"a lower number leases nothing", lowerNumber},
	{"a repetition of a claim that never ran leases", repeatOfNothing},
	{"numbers of two workers do not meet", numbersOfTwoWorkers},
	{"a repetition brings progress and settings", repeatBringsAll},
	{"a repetition still answers when the lease is about to end", lateRepeat},
}

// again is the claim sent once more, by a client that got no answer.
func again(r dispatch.ClaimRequest) dispatch.ClaimRequest {
	r.Repeat = true
	return r
}

func sameNumber(e *env) {
	e.put("a", "b", "c", "d")
	r := e.request(alice, 3)
	first := e.send(r).Leased
	for _, same := range []dispatch.ClaimRequest{again(r), r, again(r)} { // a client may also resend it by itself
		second := e.send(same)
		equal(e, "leased", second.Leased, first)
		equal(e, "running", e.counts().Running, 3)
	}
	e.claimed(alice, 10, "d")
}

func sameNumberAfterSettle(e *env) {
	e.put("a", "b", "c")
	r := e.request(alice, 3)
	first := e.send(r).Leased
	e.applied(alice, ended(first[0], dispatch.Succeeded, 0), ended(first[1], dispatch.Released, 0))
	equal(e, "leased", leasedIDs(e.send(again(r)).Leased), leasedIDs(first[2:]))
	l := e.claim(bob, 10).Leased
	equal(e, "released", leasedIDs(l), leasedIDs(first[1:2]))
	equal(e, "leased", leasedIDs(e.send(again(r)).Leased), leasedIDs(first[2:])) // not what is another's by now
}

func sameNumberAfterSweep(e *env) {
	e.put("a")
	r := e.request(alice, 3)
	first := e.send(r).Leased[0]
	e.advance(lease)
	e.applied(bob, ended(first, dispatch.Retry, 0))
	e.one(bob, "a")
	equal(e, "leased", len(e.send(again(r)).Leased), 0)
}

func lowerNumber(e *env) {
	e.put("a", "b")
	late := e.request(alice, 1)
	e.one(alice, "a")
	r := e.send(late)
	equal(e, "leased", len(r.Leased), 0)
	equal(e, "leased", len(e.send(again(late)).Leased), 0)

	// A repetition that found nothing is remembered too.
	e.one(alice, "b")
	late = e.request(alice, 1)
	empty := e.request(alice, 1)
	equal(e, "leased", len(e.send(again(empty)).Leased), 0)
	e.put("c")
	equal(e, "leased", len(e.send(late).Leased), 0)
	equal(e, "leased", len(e.send(again(empty)).Leased), 0)
	e.one(alice, "c")
}

func repeatOfNothing(e *env) {
	e.put("a")
	r := e.request(alice, 1)
	first := e.send(again(r)).Leased
	equal(e, "leased", leasedIDs(first), []string{"a"})
	equal(e, "leased again", e.send(again(r)).Leased, first)
}

func numbersOfTwoWorkers(e *env) {
	e.put("a", "b", "c")
	e.one(alice, "a")
	e.one(alice, "b")
	e.one(bob, "c") // his first; hers was her second
	other, err := e.store.Enqueue(e.ctx, "other", []dispatch.Submission{submit("x")}, dispatch.EnqueueOptions{})
	e.ok(err)
	equal(e, "duplicate", other.Duplicate, []bool{false})
	r := dispatch.ClaimRequest{Queue: "other", Worker: alice, Seq: 1, Budget: 1, Grace: grace}
	equal(e, "leased of another queue", len(e.send(r).Leased), 1)
}

func repeatBringsAll(e *env) {
	e.put("a")
	want := progress(e.now(), 1)
	s := ended(e.one(alice, "a"), dispatch.Retry, 0)
	s.Progress = &want
	e.applied(alice, s)
	e.advance(time.Millisecond)
	r := e.request(alice, 1)
	first := e.send(r)
	second := e.send(again(r))
	equal(e, "leased", second.Leased, first.Leased)
	e.sameProgress("repeated", second.Leased[0].Progress, want)
	equal(e, "settings", second.Settings, first.Settings)
	equal(e, "next", second.Next, first.Next)
	equal(e, "lease end", second.LeaseEnd, first.LeaseEnd)
}

func lateRepeat(e *env) {
	long := submit("a")
	long.Timeout = 24 * time.Hour
	e.enqueue(long)
	r := e.request(alice, 1)
	e.send(r)
	e.advance(24 * time.Hour)
	e.put("b")
	equal(e, "leased", leasedIDs(e.send(again(r)).Leased), []string{"a"})
}
