package scheduler

import (
	"math"
	"time"
)

// place is where a queue stands. A queue is in exactly one place; the package documentation has the map.
type place uint8

const (
	idle     place = iota // nothing is known to be due
	waiting               // for an instant; in Scheduler.waiting
	ready                 // for its turn; in Scheduler.ready
	full                  // as ready, but it has as many places as it may have; in Scheduler.full
	claiming              // for Claimed; if backlogged, in Scheduler.returning
	blocked               // for a lease to end
)

// queue is what the scheduler knows of one queue.
//
// Invariants:
//   - A ready queue has something due, has no retry to wait for, has a token, and has room for one more lease. So Next
//     can grant the first one that may have a place of those that are free. The same holds for a full queue, which may not,
//     unless something has changed since it was looked at; see Scheduler.deal.
//   - budget is above 0 while the queue is claiming and not late, and 0 otherwise. kept is at most budget.
//   - bound is at most held, and held at most leases. If there are tasks ahead, the queue is in Scheduler.ahead.
//   - A forgotten queue has nothing due, and has leases or is claiming: with neither it is dropped.
type queue struct {
	name   string
	limits Limits // resolved
	bucket bucket

	place place
	index int       // in the heap of its place
	turn  uint64    // rises with each arrival at a place: among equals, first come, first served
	at    time.Time // while waiting: for when
	pass  pass
	// backlogged says, while the queue is ready, full or claiming, that it has come to ready straight from a claim: there is
	// more due than one claim takes.
	backlogged bool

	// due is when the first task is due that is known of; zero is none. While the queue is claiming it holds only what
	// was heard since the grant: the claim may have run before that task was stored.
	due time.Time
	// retry is the instant before which the queue is not claimed; zero is none.
	retry time.Time
	// refused says that the last claim met the concurrency limit. The end of a lease lifts it.
	refused bool
	// nearUntil is until when the concurrency limit counts as near because a claim has met it.
	nearUntil time.Time
	// relieved says that a lease has ended since the grant: a claim that was refused may have run before that.
	relieved bool
	// reset says that Reset was called since the grant.
	reset bool

	leases    int  // held by this process
	budget    int  // of the claim in flight
	held      int  // leases that have a place; the others wait for one
	kept      int  // places that are kept for what the claim in flight brings
	bound     int  // leases that may be worked on: held, but for places that go to others when their tasks end
	told      int  // bound as Bounds has told it last
	changed   bool // in Scheduler.changed
	listed    bool // in Scheduler.ahead
	forgotten bool
}

// presses says whether the queue wants more than it has, so that lighter ones are to leave it its part.
func (q *queue) presses() bool {
	return q.backlogged && (q.place == ready || q.place == full || q.place == claiming)
}

// room returns how many more leases the concurrency limit allows, as far as this process knows.
func (q *queue) room() int {
	if q.limits.Concurrent == 0 {
		return math.MaxInt
	}
	return q.limits.Concurrent - q.leases
}

// ahead returns how many of the tasks that the queue has or may get have no place.
func (q *queue) ahead() int { return q.leases + q.budget - q.held - q.kept }

// hear takes in that a task is due at an instant; zero is none.
func (q *queue) hear(at time.Time) {
	if !at.IsZero() && (q.due.IsZero() || at.Before(q.due)) {
		q.due = at
	}
}

// lift ends a refusal, and the wait that came with it.
func (q *queue) lift() {
	if q.refused {
		q.refused, q.retry = false, time.Time{}
	}
}

// standing says where the queue belongs at now if no claim is in flight and, if that is waiting, for when.
func (q *queue) standing(now time.Time) (place, time.Time) {
	switch {
	case q.due.IsZero():
		return idle, time.Time{}
	case q.room() <= 0, q.refused && q.retry.IsZero():
		return blocked, time.Time{}
	}
	at := later(later(q.due, q.retry), q.bucket.refilled(now))
	if at.After(now) {
		return waiting, at
	}
	return ready, time.Time{}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// sooner is the order of Scheduler.waiting.
func sooner(a, b *queue) bool {
	if c := a.at.Compare(b.at); c != 0 {
		return c < 0
	}
	return a.turn < b.turn
}

// lower is the order of Scheduler.ready, Scheduler.full and Scheduler.returning.
func lower(a, b *queue) bool {
	if a.pass != b.pass {
		return a.pass < b.pass
	}
	return a.turn < b.turn
}
