package storetest

import (
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

var derivedCases = []testcase{
	{"a claim says that an ID is derived", derivedComesBack},
	{"a derived name that is deleted stays taken for an hour", derivedDeleted},
	{"a derived name that is purged stays taken for an hour", derivedPurged},
	{"a derived name that is purged while it runs stays taken for an hour", derivedPurgedWhileRunning},
	{"a longer window holds for derived names too", derivedLonger},
	{"a derived name outlives its retained task", derivedRetained},
	{"names of a purge that left none are cleaned up", derivedCleanup},
}

// derived makes a task one whose ID is derived.
func derived(nonce uint64) func(*dispatch.Submission) {
	return func(s *dispatch.Submission) { s.Named, s.Derived, s.Nonce = true, true, nonce }
}

// takenFor demands that names stay taken for so long from now, and not longer.
func (e *env) takenFor(d time.Duration, ids ...string) {
	e.Helper()
	e.advance(d - time.Millisecond)
	for _, id := range ids {
		e.taken(id, true)
	}
	e.advance(2 * time.Millisecond)
	for _, id := range ids {
		e.taken(id, false)
	}
}

func derivedComesBack(e *env) {
	e.enqueue(submit("a", derived(1)), submit("b", named(1)), submit("c"))
	for i, want := range []bool{true, false, false} {
		l := e.claim(alice, 1).Leased[0]
		equal(e, "derived", l.Derived, want)
		equal(e, "named", l.Named, i < 2)
	}
	e.advance(lease)
	over, _ := e.expired(10)
	equal(e, "derived, of a lease that has ended", over[0].Derived, true)
	held, _, err := e.store.HeldLeases(e.ctx, queue, []cluster.WorkerID{alice}, 0)
	e.ok(err)
	for _, l := range held {
		equal(e, "derived, of a held lease", l.Derived, l.Task.ID == "a")
	}
	e.taken("a", true)
}

func derivedDeleted(e *env) {
	e.enqueue(submit("waits", derived(1)), submit("runs", derived(2)), submit("plain", named(3)), submit("unnamed"))
	for _, l := range e.claim(alice, 10).Leased {
		if l.Task.ID != "runs" {
			e.applied(alice, ended(l, dispatch.Released, 0))
		}
	}
	for _, id := range []string{"waits", "runs", "plain", "unnamed"} {
		e.remove(0, id)
		e.gone(id)
	}
	e.taken("plain", false)
	e.taken("unnamed", false)
	e.takenFor(time.Hour, "waits", "runs")
}

func derivedPurged(e *env) {
	e.enqueue(submit("now", derived(1)), submit("later", derived(2), after(time.Minute)), submit("plain", named(3)))
	e.purge(0)
	e.taken("plain", false)
	e.takenFor(time.Hour, "now", "later")
}

func derivedPurgedWhileRunning(e *env) {
	e.enqueue(submit("released", derived(1)), submit("retried", derived(2)), submit("plain", named(3)))
	l := e.claimed(alice, 10, "plain", "released", "retried")
	e.purge(0)
	e.applied(alice, ended(l[0], dispatch.Retry, 0), ended(l[1], dispatch.Released, 0), ended(l[2], dispatch.Retry, time.Minute))
	e.taken("plain", false)
	e.takenFor(time.Hour, "released", "retried")
}

func derivedLonger(e *env) {
	e.enqueue(submit("deleted", derived(1)), submit("purged", derived(2)), submit("unnamed1"), submit("unnamed2"))
	e.remove(2*time.Hour, "deleted")
	e.remove(2*time.Hour, "unnamed1")
	e.purge(2 * time.Hour)
	e.taken("unnamed1", false)
	e.taken("unnamed2", false)
	e.takenFor(2*time.Hour, "deleted", "purged")
}

// The caller of Settle says how long, as for all names.
func derivedRetained(e *env) {
	e.enqueue(submit("deleted", derived(1)), submit("expired", derived(2)), submit("long", derived(3)))
	for i, l := range e.claimed(alice, 10, "deleted", "expired", "long") {
		s := ended(l, dispatch.Dead, []time.Duration{time.Minute, time.Minute, 2 * time.Hour}[i])
		s.Tombstone = time.Hour
		e.applied(alice, s)
	}
	e.advance(30 * time.Second)
	e.remove(0, "deleted") // the hour counts from the end of the task
	e.advance(30*time.Second + time.Millisecond)
	e.cleanUp()
	e.gone("expired")
	e.takenFor(time.Hour-time.Minute-time.Millisecond, "deleted", "expired")
	e.taken("long", true)
	e.advance(time.Hour)
	e.cleanUp()
	e.taken("long", false)
}

func derivedCleanup(e *env) {
	e.enqueue(submit("a", derived(1)), submit("b", derived(2)))
	e.remove(0, "a")
	e.advance(time.Second)
	e.purge(0)
	expiring := func(want int) {
		e.Helper()
		names, err := e.store.Expiring(e.ctx, 10)
		e.ok(err)
		equal(e, "expiring", len(names), want)
	}
	expiring(0)
	e.advance(time.Hour + time.Second)
	expiring(1)
	e.cleanUp()
	expiring(0)
	e.taken("a", false)
	e.taken("b", false)
}

// cleanUp removes what is over in the queue.
func (e *env) cleanUp() {
	e.Helper()
	for more := true; more; {
		var err error
		more, err = e.store.Cleanup(e.ctx, queue, 100)
		e.ok(err)
	}
}
