package scheduler

import "time"

// place is where a queue stands. A queue is in exactly one place; doc.go has the map.
type place uint8

const (
	idle     place = iota // nothing is known to be due
	waiting               // in Scheduler.waiting, for an instant
	ready                 // in Scheduler.ready, for its turn
	claiming              // granted, for Claimed
	blocked               // something is due, for a lease to end
)

// queue is what the scheduler knows of one queue.
//
// Invariants:
//   - ready means that something is due, that no Retry holds the queue back, that its bucket has a token, and that its
//     own leases leave room for one more. Next relies on it: the head of ready can be granted if the process has a place.
//   - budget is above 0 while the queue is claiming, and 0 otherwise.
//   - A forgotten queue has leases or is claiming, and nothing due.
type queue struct {
	name   string
	limits Limits  // resolved
	bucket *bucket // nil without a rate

	place place
	index int       // in the heap of its place
	turn  uint64    // rises with each arrival at a place: among equals, first come, first served
	at    time.Time // while waiting: until when
	pass  pass

	// due is when the first task is due that is known of; zero is none. While the queue is claiming it holds only what
	// was heard since the grant: the claim may have run before that task was stored.
	due time.Time
	// retry is the instant before which the queue is not claimed; zero is none.
	retry time.Time
	// refused says that the last claim met the concurrency limit. The end of a lease, or retry, lifts it.
	refused bool
	// relieved says that a lease has ended since the grant: a claim that is refused may have run before that.
	relieved bool

	leases    int // held by this process
	budget    int // of the claim in flight
	forgotten bool
}

// limited says whether the queue has a limit that leases count against. Its tasks are not prefetched: one that waits
// for a place would use up the limit without using it.
func (q *queue) limited() bool {
	return q.bucket != nil || q.limits.Concurrent > 0
}

// room returns how many leases the concurrency limit leaves, as far as this process knows.
// It is called only for a queue with such a limit.
func (q *queue) room() int { return q.limits.Concurrent - q.leases }

// standing says where the queue belongs at now when no claim is in flight and, if that is waiting, until when.
func (q *queue) standing(now time.Time) (place, time.Time) {
	switch {
	case q.due.IsZero():
		return idle, time.Time{}
	case q.limits.Concurrent > 0 && q.room() <= 0:
		return blocked, time.Time{}
	case q.refused && q.retry.IsZero():
		return blocked, time.Time{}
	}
	at := later(q.due, q.retry)
	if q.bucket != nil {
		at = later(at, q.bucket.refilled(now))
	}
	if at.After(now) {
		return waiting, at
	}
	return ready, time.Time{}
}

// lift ends a refusal, and with it the wait that came with it.
func (q *queue) lift() {
	if q.refused {
		q.refused, q.retry = false, time.Time{}
	}
}

// sooner is the order of the waiting queues.
func sooner(a, b *queue) bool {
	if c := a.at.Compare(b.at); c != 0 {
		return c < 0
	}
	return a.turn < b.turn
}

// first is the order of the ready queues.
func first(a, b *queue) bool {
	if a.pass != b.pass {
		return a.pass < b.pass
	}
	return a.turn < b.turn
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
