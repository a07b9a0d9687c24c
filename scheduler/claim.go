package scheduler

import "time"

// Grant is the right, and the duty, to make one claim.
type Grant struct {
	// Queue is the queue to claim from.
	Queue string
	// Budget is the most tasks to ask for; at least 1.
	Budget int
}

// Claim is the answer to a Grant: what the store has said. The zero value is a claim that leased nothing from a queue
// in which nothing waits.
type Claim struct {
	// Leased is how many tasks were leased. It may exceed the budget, when a claim finds leases of an earlier one
	// whose answer was lost.
	Leased int
	// Next is when the queue's next task is due; it may be over. Zero is none known. After a claim that failed, nothing
	// is known to have been taken: then Next is now.
	Next time.Time
	// Blocked says that the store has refused because of the queue's concurrency limit: there is nothing to do before
	// Retry, or before a lease of this process ends. Where other processes may hold the leases, set Retry too: of
	// their leases the scheduler hears nothing.
	Blocked bool
	// Retry is the instant before which the queue is not to be claimed again, whatever is due: because its rate is used
	// up, because it is paused, because the store is in trouble. Zero is none.
	Retry time.Time
}

// Next grants a claim from the queue whose turn it is, or reports false. The queue gets no other grant until Claimed.
func (s *Scheduler) Next(now time.Time) (Grant, bool) {
	s.wake(now)
	q := s.ready.min()
	if q == nil {
		return Grant{}, false
	}
	budget := s.budget(q, now)
	if budget <= 0 {
		// A queue behind q that may be prefetched could still be granted. But one that is always busy would then fill
		// each place as it becomes free, and q, which must not be prefetched, would never see a free one.
		return Grant{}, false
	}
	s.virtual = q.pass
	s.move(q, claiming, time.Time{})
	q.budget, q.due, q.relieved = budget, time.Time{}, false
	s.claims++
	s.reserved += budget
	return Grant{Queue: q.name, Budget: budget}, true
}

// NextAt returns the instant at which to ask Next again if nothing happens until then; now, if Next would grant. It
// reports false when time alone changes nothing: then Due, Claimed or Done will.
func (s *Scheduler) NextAt(now time.Time) (time.Time, bool) {
	s.wake(now)
	if q := s.ready.min(); q != nil && s.budget(q, now) > 0 {
		return now, true
	}
	// Without a place no instant helps. With one, a queue that comes may stand before those that cannot be granted.
	if q := s.waiting.min(); q != nil && s.free()+s.pace.prefetch(s.places, now) > 0 {
		return q.at, true
	}
	return time.Time{}, false
}

// Claimed answers a grant. Without a grant it does nothing.
func (s *Scheduler) Claimed(queue string, c Claim, now time.Time) {
	q := s.queues[queue]
	if q == nil || q.place != claiming {
		return
	}
	leased := max(c.Leased, 0)
	s.claims--
	s.reserved -= q.budget
	s.leases += leased
	q.leases += leased
	q.budget = 0
	q.pass = q.pass.after(leased, q.limits.Weight)
	if q.bucket != nil {
		q.bucket.charge(leased, now)
	}

	if !q.forgotten && !c.Next.IsZero() && (q.due.IsZero() || c.Next.Before(q.due)) {
		q.due = c.Next
	}
	q.retry, q.refused = c.Retry, c.Blocked
	if q.relieved {
		q.lift()
	}
	to, at := q.standing(now)
	s.move(q, to, at)
	s.dropForgotten(q)
}

// Done says that n leases of a queue have ended: settled, released or given up for lost. It takes no more than there
// are.
func (s *Scheduler) Done(queue string, n int, now time.Time) {
	q := s.queues[queue]
	if q == nil {
		return
	}
	n = min(n, q.leases)
	if n <= 0 {
		return
	}
	s.leases -= n
	q.leases -= n
	s.pace.done(n, now)
	q.relieved = true
	q.lift()
	s.arrange(q, now)
	s.dropForgotten(q)
}

// wake moves the queues whose instant has come from waiting to ready.
func (s *Scheduler) wake(now time.Time) {
	for q := s.waiting.min(); q != nil && !q.at.After(now); q = s.waiting.min() {
		s.move(q, ready, time.Time{})
	}
}

// budget returns how many tasks may be claimed from a ready queue; 0 or less is none.
func (s *Scheduler) budget(q *queue, now time.Time) int {
	n := min(s.claimCap, s.free())
	if !q.limited() {
		return min(s.claimCap, s.free()+s.pace.prefetch(s.places, now))
	}
	if q.bucket != nil {
		n = min(n, max(q.bucket.tokens(now), 1)) // a ready queue has one, even by a clock that has gone back
	}
	if q.limits.Concurrent > 0 {
		n = min(n, q.room())
	}
	return n
}

// free returns how many places have no task and none on the way. It is below zero while tasks are prefetched.
func (s *Scheduler) free() int {
	return s.places - s.leases - s.reserved
}
