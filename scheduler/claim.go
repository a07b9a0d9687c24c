package scheduler

import "time"

// Grant is the right, and the duty, to make one claim.
type Grant struct {
	// Queue is the queue to claim from.
	Queue string
	// Budget is the most tasks to ask for, at least 1.
	Budget int
}

// Claim is the answer to a Grant: what the store has said. The zero value is a claim that has leased nothing, from a
// queue in which nothing waits.
type Claim struct {
	// Leased is how many tasks were leased. It may exceed the budget: a claim may find leases of an earlier one whose
	// answer was lost.
	Leased int
	// Next is when the queue's next task is due, past or future. Zero is none known. After a claim that failed it is
	// the time of the grant, because what was due may still be there.
	Next time.Time
	// Blocked says that the store has refused for the queue's concurrency limit: there is nothing to do before Retry,
	// or before a lease of this process ends. Where other processes may hold the leases, set Retry too: of theirs the
	// scheduler hears nothing.
	Blocked bool
	// Retry is the instant before which the queue is not to be claimed, whatever is due: its rate is used up, it is
	// paused, the store is in trouble. Zero is none.
	Retry time.Time
}

// Next grants a claim of the queue whose turn it is, or reports false. The queue gets no other grant until Claimed.
func (s *Scheduler) Next(now time.Time) (Grant, bool) {
	s.wake(now)
	q := s.ready.min()
	if q == nil {
		return Grant{}, false
	}
	budget := s.budget(q, now)
	if budget <= 0 {
		// q waits for a place, and nobody is let past it. A queue behind it may still be prefetched, but one that is
		// always busy would take each place before it is free, and q, if it is limited, would never see a free one.
		return Grant{}, false
	}
	s.virtual = max(s.virtual, q.pass)
	s.move(q, claiming, time.Time{})
	q.budget, q.due, q.relieved = budget, time.Time{}, false
	s.claims++
	s.reserved += budget
	return Grant{Queue: q.name, Budget: budget}, true
}

// NextAt returns the instant at which to ask Next again if nothing happens until then; that is now, if Next would
// grant. It reports false when time alone changes nothing, and only a call of another method can.
func (s *Scheduler) NextAt(now time.Time) (time.Time, bool) {
	s.wake(now)
	if q := s.ready.min(); q != nil && s.budget(q, now) > 0 {
		return now, true
	}
	// With a place left, if only for prefetch, the next queue that becomes ready may come before those that cannot be
	// granted. With none it does not matter who comes.
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
	q.budget = 0
	q.leases += leased
	q.bucket.charge(leased, now)
	q.pass = q.pass.after(leased, q.limits.Weight) // q may be in returning, and leaves it before it is compared again

	q.retry, q.refused = c.Retry, c.Blocked
	if q.relieved {
		q.lift()
	}
	if !q.forgotten {
		q.hear(c.Next)
	}
	to, at := q.standing(now)
	s.move(q, to, at)
	s.drop(q)
}

// Done says that n leases of a queue have ended: settled, given back, or given up for lost. More than there are count
// as all.
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
	s.pace.done(n, now)
	q.leases -= n
	q.relieved = true
	q.lift()
	s.arrange(q, now)
	s.drop(q)
}

// wake makes the queues ready whose instant has come.
func (s *Scheduler) wake(now time.Time) {
	for q := s.waiting.min(); q != nil && !q.at.After(now); q = s.waiting.min() {
		s.move(q, ready, time.Time{})
	}
}

// budget returns how many tasks the first ready queue may claim; none is 0 or less.
func (s *Scheduler) budget(q *queue, now time.Time) int {
	if q.limits.limited() {
		tokens := max(q.bucket.tokens(now), 1) // it was seen, even if now has gone back
		return min(s.claimCap, s.free(), tokens, q.room())
	}
	places := s.free()
	if !s.overtakes(q) {
		places += s.pace.prefetch(s.places, now)
	}
	return min(s.claimCap, places)
}

// overtakes says whether q comes before its turn, because the queue whose turn it is has a claim in flight and will be
// back for more. A free place is q's all the same. But were q prefetched, it would take the places that become free
// meanwhile, so that two busy queues would take turns claim by claim, whatever their weights.
func (s *Scheduler) overtakes(q *queue) bool {
	r := s.returning.min()
	return r != nil && r.pass < q.pass
}

// free returns how many places have no task, and none on the way. It is below 0 while tasks are prefetched.
func (s *Scheduler) free() int {
	return s.places - s.leases - s.reserved
}
