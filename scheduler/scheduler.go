package scheduler

import "time"

// Options are what one process can do. Values below 1 count as 1.
type Options struct {
	// Places is how many tasks the process can work on at once.
	Places int
	// ClaimCap is the most tasks that one claim asks for.
	ClaimCap int
}

// Scheduler decides which queue one process claims from, when, and how many tasks. Make one with New.
//
// It starts no goroutine, reads no clock and takes no lock: its callers take turns, and hand it the time. Each method
// says what has happened at now, or asks what to do at now. Instants that go back do no harm but delay: what was
// granted or counted stays.
//
// Each method takes O(log n) time, n being the number of queues; a queue whose instant has come is paid for by the
// call that notices, once. None allocates memory for a queue that is known.
type Scheduler struct {
	places   int
	claimCap int

	queues  map[string]*queue
	waiting heap // by instant
	ready   heap // by pass

	turns   uint64 // arrivals so far; see queue.turn
	virtual pass   // the highest pass that was granted: nobody who comes to ready stands before it
	pace    pace

	leases   int // held by the process; may exceed places
	claims   int // in flight
	reserved int // budgets of the claims in flight
}

// New returns a Scheduler that knows no queue.
func New(o Options) *Scheduler {
	return &Scheduler{
		places:   max(o.Places, 1),
		claimCap: max(o.ClaimCap, 1),
		queues:   make(map[string]*queue),
		waiting:  heap{less: sooner},
		ready:    heap{less: first},
	}
}

// SetLimits says what a queue allows from now on. A queue that was not known has no limits. The token bucket keeps what
// it has, or owes, up to the new burst; it starts full when the queue had no rate before. Limits that mean the same as
// those in force change nothing.
func (s *Scheduler) SetLimits(queue string, l Limits, now time.Time) {
	q := s.know(queue)
	l = l.resolved()
	if l == q.limits {
		return
	}
	switch {
	case l.Rate == 0:
		q.bucket = nil
	case q.bucket == nil:
		q.bucket = newBucket(l)
	default:
		q.bucket.set(l, now)
	}
	if l.Concurrent != q.limits.Concurrent {
		q.lift() // refused under another limit
	}
	q.limits = l
	s.arrange(q, now)
}

// Due says that a queue has a task that is due at an instant, which may be over. It only ever moves a queue earlier,
// and it brings back a queue that was forgotten.
func (s *Scheduler) Due(queue string, at, now time.Time) {
	q := s.know(queue)
	q.forgotten = false
	at = later(at, now) // also because the zero time means that nothing is due
	if q.due.IsZero() || at.Before(q.due) {
		q.due = at
		s.arrange(q, now)
	}
}

// Forget drops a queue, with its limits and what is known to be due in it. While it has leases or a claim in flight it
// is only kept from being granted, and dropped when they have ended.
func (s *Scheduler) Forget(queue string) {
	q := s.queues[queue]
	if q == nil {
		return
	}
	q.forgotten = true
	q.due = time.Time{}
	if q.place != claiming {
		s.move(q, idle, time.Time{})
	}
	s.dropForgotten(q)
}

// InFlight returns how many leases the process holds: by Claimed, and not yet by Done.
func (s *Scheduler) InFlight() int { return s.leases }

// Claiming returns how many grants have not been answered by Claimed.
func (s *Scheduler) Claiming() int { return s.claims }

// know returns a queue and makes it if it is new.
func (s *Scheduler) know(name string) *queue {
	q := s.queues[name]
	if q == nil {
		q = &queue{name: name, limits: Limits{}.resolved()}
		s.queues[name] = q
	}
	return q
}

// dropForgotten drops a queue that is forgotten and has nothing left to wait for.
func (s *Scheduler) dropForgotten(q *queue) {
	if q.forgotten && q.leases == 0 && q.place != claiming {
		delete(s.queues, q.name)
	}
}

// arrange moves a queue to where it belongs at now. Whoever has changed what a queue waits for calls it; while a claim
// is in flight it does nothing, because Claimed will.
func (s *Scheduler) arrange(q *queue, now time.Time) {
	if q.place == claiming {
		return
	}
	to, at := q.standing(now)
	s.move(q, to, at)
}

// move puts a queue into a place and takes it out of the one in which it was. at is for waiting.
func (s *Scheduler) move(q *queue, to place, at time.Time) {
	if q.place == to {
		if to == waiting && !at.Equal(q.at) {
			q.at = at
			s.waiting.fix(q)
		}
		return
	}
	switch q.place {
	case waiting:
		s.waiting.remove(q)
	case ready:
		s.ready.remove(q)
	}
	s.turns++
	q.place, q.turn, q.at = to, s.turns, at
	switch to {
	case waiting:
		s.waiting.push(q)
	case ready:
		// Who was away has saved up nothing: it would make the others wait for as long as it was away.
		q.pass = max(q.pass, s.virtual)
		s.ready.push(q)
	}
}
