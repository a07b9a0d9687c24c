package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
)

var cleanupCases = []testcase{
	{"retained tasks go when their time is over", cleanupOfRetained},
	{"names go when their time is over", cleanupOfNames},
	{"at most the limit goes at once", cleanupInSlices},
	{"a queue is expiring only when something is over", expiringQueues},
	{"what ends later is noted again", expiringAgain},
	{"a queue that does not exist is clean", cleanupOfNoQueue},
}

func (e *env) expiring(limit int) []string {
	e.Helper()
	names, err := e.store.Expiring(e.ctx, limit)
	e.ok(err)
	return names
}

// clean cleans the queue up to the end.
func (e *env) clean(limit int) {
	e.Helper()
	more := true
	for i := 0; more; i++ {
		var err error
		more, err = e.store.Cleanup(e.ctx, queue, limit)
		e.ok(err)
		if i > 1000 {
			e.Fatal("there is always more")
		}
	}
}

func cleanupOfRetained(e *env) {
	e.put("a", "b", "c")
	l := e.claimed(alice, 3, "a", "b", "c")
	p := progress(e.now(), 1)
	a, b := ended(l[0], dispatch.Succeeded, time.Minute), ended(l[1], dispatch.Dead, time.Minute)
	a.Progress, b.Progress = &p, &p
	e.applied(alice, a, b, ended(l[2], dispatch.Dead, time.Hour))
	e.advance(time.Minute - time.Millisecond)
	e.clean(10)
	e.info("a", dispatch.TaskSucceeded)
	e.advance(time.Millisecond)
	e.clean(10)
	e.gone("a")
	e.gone("b")
	e.info("c", dispatch.TaskDead)
	equal(e, "counts", e.counts(), dispatch.Counts{Dead: 1, TotalSucceeded: 1, TotalDead: 2})
	e.put("a")
	equal(e, "progress", e.one(alice, "a").Progress, dispatch.Progress{})
}

func cleanupOfNames(e *env) {
	for i := range 30 {
		e.enqueue(submit(fmt.Sprint("n", i), named(uint64(i))))
	}
	for _, l := range e.claim(alice, 100).Leased {
		s := ended(l, dispatch.Succeeded, 0)
		s.Tombstone = time.Minute
		e.applied(alice, s)
	}
	e.clean(100)
	e.taken("n7", true)
	e.advance(time.Minute)
	equal(e, "expiring", e.expiring(10), []string{queue})
	e.clean(100)
	equal(e, "expiring", len(e.expiring(10)), 0)
	e.taken("n7", false)
}

func cleanupInSlices(e *env) {
	for i := range 20 {
		e.enqueue(submit(fmt.Sprintf("n%02d", i), named(uint64(i))))
	}
	for i, l := range e.claim(alice, 100).Leased {
		s := ended(l, []dispatch.Outcome{dispatch.Succeeded, dispatch.Dead}[i%2], time.Minute)
		s.Tombstone = time.Minute
		e.applied(alice, s)
	}
	e.advance(time.Minute)
	left := func() int64 { c := e.counts(); return c.Succeeded + c.Dead }
	for before := left(); ; before = left() {
		more, err := e.store.Cleanup(e.ctx, queue, 3)
		e.ok(err)
		if removed := before - left(); removed > 3 {
			e.Errorf("%d removed, limit 3", removed)
		}
		if !more {
			break
		}
		equal(e, "expiring", e.expiring(10), []string{queue})
	}
	equal(e, "counts", left(), 0)
	equal(e, "expiring", len(e.expiring(10)), 0)
	for i := range 20 {
		e.taken(fmt.Sprintf("n%02d", i), false)
	}
}

func expiringQueues(e *env) {
	for i := range 5 {
		name := fmt.Sprint("q", i)
		_, err := e.store.Enqueue(e.ctx, name, []dispatch.Submission{submit("a")}, dispatch.EnqueueOptions{})
		e.ok(err)
		r := e.send(dispatch.ClaimRequest{Queue: name, Worker: alice, Seq: 1, Budget: 1, Grace: grace})
		e.settleAs(dispatch.SettleRequest{Queue: name, Worker: alice, Items: []dispatch.Settlement{
			ended(r.Leased[0], dispatch.Dead, time.Duration(i+1)*time.Minute)}})
	}
	equal(e, "expiring", len(e.expiring(10)), 0)
	e.advance(3 * time.Minute)
	got := e.expiring(10)
	slices.Sort(got)
	equal(e, "expiring", got, []string{"q0", "q1", "q2"})
	equal(e, "expiring, at most two", len(e.expiring(2)), 2)
	more, err := e.store.Cleanup(e.ctx, "q1", 10)
	e.ok(err)
	equal(e, "more", more, false)
	got = e.expiring(10)
	slices.Sort(got)
	equal(e, "expiring", got, []string{"q0", "q2"})
}

func expiringAgain(e *env) {
	e.put("a", "b", "c")
	for i, l := range e.claimed(alice, 3, "a", "b", "c") {
		e.applied(alice, ended(l, dispatch.Dead, time.Duration(3-i)*time.Minute)) // the last one ends first
	}
	for _, left := range []int64{2, 1, 0} {
		e.advance(time.Minute)
		equal(e, "expiring", e.expiring(10), []string{queue})
		e.clean(10)
		equal(e, "expiring", len(e.expiring(10)), 0)
		equal(e, "dead", e.counts().Dead, left)
	}
	e.enqueue(submit("d", named(1)))
	e.remove(time.Minute, "d")
	e.enqueue(submit("e", named(2)))
	e.purge(2 * time.Minute)
	for range 2 {
		e.advance(time.Minute)
		equal(e, "expiring", e.expiring(10), []string{queue})
		e.clean(10)
	}
	e.advance(time.Hour)
	equal(e, "expiring", len(e.expiring(10)), 0)
}

func cleanupOfNoQueue(e *env) {
	more, err := e.store.Cleanup(e.ctx, queue, 10)
	e.ok(err)
	equal(e, "more", more, false)
	e.put("a")
	e.applied(alice, ended(e.one(alice, "a"), dispatch.Dead, time.Minute))
	e.ok(e.store.DeleteQueue(e.ctx, queue))
	e.advance(time.Hour)
	for _, name := range e.expiring(10) { // the note may outlive the queue
		_, err := e.store.Cleanup(e.ctx, name, 10)
		e.ok(err)
	}
	equal(e, "expiring", len(e.expiring(10)), 0)
	equal(e, "queues", len(e.queues()), 0)
}
