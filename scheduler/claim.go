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
	// Uncharged is how many of these count against no rate.
	Uncharged int
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
	q, budget := s.pick(now)
	if q == nil {
		return Grant{}, false
	}
	s.virtual = max(s.virtual, q.pass)
	s.move(q, claiming, time.Time{})
	q.budget, q.kept = budget, min(budget, s.more(q))
	q.due, q.relieved, q.reset = time.Time{}, false, false
	s.claims++
	s.reserved += budget
	s.kept += q.kept
	s.list(q)
	if s.free() == 0 {
		s.stirred = true // none is let past a queue that has been set aside either, now that all wait for a place
	}
	return Grant{Queue: q.name, Budget: budget}, true
}

// NextAt returns the instant at which to ask Next again if nothing happens until then; that is now, if Next would
// grant. It reports false when time alone changes nothing, and only a call of another method can.
func (s *Scheduler) NextAt(now time.Time) (time.Time, bool) {
	if q, _ := s.pick(now); q != nil {
		return now, true
	}
	// With a place left, if only for prefetch, the next queue that becomes ready may come before those that cannot be
	// granted. With none it does not matter who comes.
	if q := s.waiting.min(); q != nil && s.free()+s.beyond(0, now) > 0 {
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
	s.kept -= q.kept
	placed := min(leased, q.kept)
	s.held += placed
	q.held += placed
	s.entitle(q, placed)
	q.budget, q.kept = 0, 0
	s.list(q)
	s.stirred = true
	q.bucket.charge(max(leased-c.Uncharged, 0), now)
	q.pass = q.pass.after(leased, q.limits.Weight) // q may be in returning, and leaves it before it is compared again

	q.retry, q.refused = c.Retry, c.Blocked
	if c.Blocked {
		q.nearUntil = now.Add(nearFor)
	}
	if q.relieved {
		q.lift()
	}
	if q.reset {
		q.retry, q.refused, q.reset = time.Time{}, false, false
	}
	if !q.forgotten {
		q.hear(c.Next)
	}
	to, at := q.standing(now)
	s.move(q, to, at)
	s.drop(q)
}

// Done says that n leases of a queue have ended whose tasks were worked on: settled, given back, or given up for lost. More
// than there are count as all.
func (s *Scheduler) Done(queue string, n int, now time.Time) {
	q := s.queues[queue]
	if q == nil {
		return
	}
	if n = min(n, q.leases); n > 0 {
		s.pace.done(n, now)
		s.end(q, n, min(n, q.held), now)
	}
}

// Returned says that n leases of a queue have ended without a beginning: their tasks were given back. Those that waited
// for a place come first. It tells nothing of the pace of tasks.
func (s *Scheduler) Returned(queue string, n int, now time.Time) {
	q := s.queues[queue]
	if q == nil {
		return
	}
	if n = min(n, q.leases); n > 0 {
		s.end(q, n, max(n-(q.leases-q.held), 0), now)
	}
}

// end takes n leases from a queue, of which so many had a place.
func (s *Scheduler) end(q *queue, n, placed int, now time.Time) {
	s.leases -= n
	q.leases -= n
	s.held -= placed
	q.held -= placed
	s.entitle(q, min(q.bound, q.held)-q.bound)
	s.stirred = true
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

// pick returns the queue whose turn it is and how many tasks it may claim; nil is nobody.
func (s *Scheduler) pick(now time.Time) (*queue, int) {
	s.wake(now)
	s.deal()
	for q := s.ready.min(); q != nil; q = s.ready.min() {
		if budget := s.budget(q, now); budget > 0 {
			return q, budget
		}
		if s.free() == 0 {
			// q waits for a place, and nobody is let past it. A queue behind it may still be prefetched, but one that is
			// always busy would take each place before it is free, and q, if it is limited, would never see a free one.
			break
		}
		s.setAside(q) // the free places are for others
	}
	return nil, 0
}

// budget returns how many tasks the first ready queue may claim; none is 0 or less.
func (s *Scheduler) budget(q *queue, now time.Time) int {
	places := s.more(q)
	if s.limited(q, now) {
		tokens := max(q.bucket.tokens(now), 1) // it was seen, even if now has gone back
		return min(s.claimCap, places, tokens, q.room())
	}
	if !s.overtakes(q) {
		places += s.beyond(places, now)
	}
	return min(s.claimCap, places, q.room())
}

// beyond returns how many more tasks to hold that find no place, once so many of the free places are taken. It is as many
// as the pace calls for, as long as the process does not hold more than twice as many tasks as it has places. They are
// fetched when half of them have found a place: a claim costs the store as much as a dozen tasks.
func (s *Scheduler) beyond(places int, now time.Time) int {
	ahead := s.leases + s.reserved - s.held - s.kept
	most := s.pace.prefetch(2*s.places-s.held-s.kept-places, now)
	if ahead > most/2 {
		return 0
	}
	return max(most-ahead, 0)
}

// overtakes says whether q comes before its turn, because the queue whose turn it is has a claim in flight and will be
// back for more. A free place is q's all the same. But were q prefetched, it would take the places that become free
// meanwhile, so that two busy queues would take turns claim by claim, whatever their weights.
func (s *Scheduler) overtakes(q *queue) bool {
	r := s.returning.min()
	return r != nil && r.pass < q.pass
}
