package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

var leaseCases = []testcase{
	{"expired: none before its end, and then at once", expiredAtItsEnd},
	{"expired: the longest overdue first, at most the limit", expiredInOrder},
	{"expired: long tasks come in parts", expiredInParts},
	{"expired: tells what a sweep needs", expiredFields},
	{"held: those of one worker", heldByWorker},
	{"held: all pages", heldPages},
	{"a queue that does not exist has none", leasesOfNoQueue},
}

func (e *env) expired(limit int) ([]dispatch.Leased, time.Duration) {
	e.Helper()
	over, next, err := e.store.ExpiredLeases(e.ctx, queue, limit)
	e.ok(err)
	for _, l := range over {
		e.ok(l.Err)
	}
	return over, next
}

// held reads all pages.
func (e *env) held(w cluster.WorkerID) []dispatch.Leased {
	e.Helper()
	var all []dispatch.Leased
	for cursor := uint64(0); ; {
		page, next, err := e.store.HeldLeases(e.ctx, queue, []cluster.WorkerID{w}, cursor)
		e.ok(err)
		all = append(all, page...)
		if cursor = next; cursor == 0 {
			return all
		}
	}
}

func expiredAtItsEnd(e *env) {
	e.put("a")
	_, next := e.expired(10)
	e.never("next without a lease", next)
	e.one(alice, "a")
	e.advance(lease - time.Millisecond)
	over, next := e.expired(10)
	equal(e, "expired", len(over), 0)
	equal(e, "next", next, time.Millisecond)
	e.advance(time.Millisecond)
	over, next = e.expired(10)
	equal(e, "expired", leasedIDs(over), []string{"a"})
	e.never("next", next)
	e.info("a", dispatch.TaskRunning) // reading them changes nothing
}

func expiredInOrder(e *env) {
	ids := e.fill(6)
	var leased []dispatch.Leased
	e.advance(time.Second)
	for _, id := range ids {
		leased = append(leased, e.one(alice, id))
		e.advance(time.Second)
	}
	slices.Reverse(leased)
	e.extend(time.Hour, leased[5]) // the first to be leased is the last to end
	e.advance(lease - 3*time.Second)
	over, next := e.expired(10)
	equal(e, "expired", leasedIDs(over), ids[1:4])
	equal(e, "next", next, time.Second)
	over, next = e.expired(2)
	equal(e, "expired", leasedIDs(over), ids[1:3])
	equal(e, "next", next, 0)
	e.advance(time.Hour)
	over, next = e.expired(10)
	equal(e, "expired", leasedIDs(over), append(slices.Clone(ids[1:]), ids[0]))
	e.never("next", next)
}

func expiredInParts(e *env) {
	const n = 6
	for i := range n {
		e.enqueue(submit(fmt.Sprint("t", i), sized(400<<10)))
	}
	for got := 0; got < n; {
		l := e.claim(alice, n).Leased
		got += len(l)
		if len(l) == 0 {
			e.Fatalf("%d of %d leased", got, n)
		}
	}
	e.advance(lease)
	seen := 0
	for range n {
		over, next := e.expired(100)
		if len(over) == 0 {
			break
		}
		seen += len(over)
		if seen < n {
			equal(e, "next", next, 0)
		} else {
			e.never("next", next)
		}
		for _, l := range over {
			e.applied(bob, ended(l, dispatch.Retry, time.Hour))
		}
	}
	equal(e, "expired", seen, n)
}

func expiredFields(e *env) {
	e.enqueue(submit("a", named(1)))
	want := progress(e.now(), 2)
	s := ended(e.one(alice, "a"), dispatch.Retry, 0)
	s.Progress = &want
	e.applied(alice, s)
	l := e.one(bob, "a")
	e.advance(lease + time.Minute)
	for i := range 2 {
		found := e.held(bob)
		if i == 0 {
			found, _ = e.expired(1)
		}
		if len(found) != 1 {
			e.Fatalf("%d leases", len(found))
		}
		got := found[0]
		equal(e, "lease", got.Lease, l.Lease)
		equal(e, "worker", got.Worker, bob)
		equal(e, "named", got.Named, true)
		equal(e, "task", got.Task, l.Task)
		e.sameProgress("progress", got.Progress, want)
		e.at("at", got.At, e.now())
		e.applied(alice, ended(got, dispatch.Released, 0)) // what was read is enough to settle
		l = e.one(bob, "a")
		e.advance(lease)
	}
}

func heldByWorker(e *env) {
	e.put("a", "b", "c", "d")
	e.one(alice, "a")
	b := e.one(bob, "b")
	e.one(alice, "c")
	got := leasedIDs(e.held(alice))
	slices.Sort(got)
	equal(e, "held by alice", got, []string{"a", "c"})
	equal(e, "held by bob", leasedIDs(e.held(bob)), []string{"b"})
	equal(e, "held by another", len(e.held("w-ali")), 0)
	e.applied(bob, ended(b, dispatch.Released, 0))
	equal(e, "held by bob", len(e.held(bob)), 0)
}

func heldPages(e *env) {
	ids := e.fill(260)
	e.advance(time.Second)
	for range 3 {
		e.claim(alice, 100)
	}
	found := make(map[string]bool)
	for _, id := range leasedIDs(e.held(alice)) {
		found[id] = true
	}
	equal(e, "held", len(found), len(ids))
	equal(e, "held by another", len(e.held(bob)), 0)
}

func leasesOfNoQueue(e *env) {
	over, next := e.expired(10)
	equal(e, "expired", len(over), 0)
	e.never("next", next)
	equal(e, "held", len(e.held(alice)), 0)
}
