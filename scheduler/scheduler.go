package scheduler

import "time"

// Options say what one process can do.
type Options struct {
	// Places is how many deliveries run at once in this process; below 1 counts as 1.
	Places int
	// ClaimCap is the most tasks of one claim; below 1 counts as 1.
	ClaimCap int
}

// Scheduler is the pure core of one process's claim loop. It is not safe for concurrent use. No operation takes more
// than the logarithm of the number of queues.
type Scheduler struct {
	places, claimCap int

	queues  map[string]*queue
	waiting heap // by at
	ready   heap // by pass, then by name

	inFlight int    // leases held: the sum of leased
	reserved int    // the sum of the budgets of claims in flight
	claims   int    // claims in flight
	virtual  uint64 // pass of the queue that was granted last: where a queue that was away starts
	pace     pace
}

// New makes a scheduler that knows no queue.
func New(o Options) *Scheduler {
	return &Scheduler{
		places:   max(o.Places, 1),
		claimCap: max(o.ClaimCap, 1),
		queues:   make(map[string]*queue),
		waiting:  heap{less: func(a, b *queue) bool { return a.at.Before(b.at) }},
		ready: heap{less: func(a, b *queue) bool {
			return a.pass < b.pass || a.pass == b.pass && a.name < b.name
		}},
	}
}

// SetLimits gives a queue its limits, at first or anew. It costs nothing when they are the same.
func (s *Scheduler) SetLimits(name string, l Limits, now time.Time) {
	q := s.queue(name)
	if q.limits == l {
		return
	}
	q.limits = l
	q.bucket.set(l.Rate, l.Burst, now)
	s.place(q, now)
}

// Due says that a queue has a task due at an instant. It only ever moves the queue earlier: a claim is what finds out
// that there is nothing.
func (s *Scheduler) Due(name string, at, now time.Time) {
	q := s.queue(name)
	q.leaving = false
	if q.state == claiming {
		// The claim may have run before the task was stored, so its answer must not hide the task.
		if q.woken.IsZero() || at.Before(q.woken) {
			q.woken = at
		}
		return
	}
	q.hear(at)
	s.place(q, now)
}

// Grant allows one claim.
type Grant struct {
	// Queue is to be claimed from, for up to Budget tasks, at least 1.
	Queue  string
	Budget int
}

// Next grants a claim of the queue whose turn it is, or reports false. Until Claimed the queue gets no other one.
func (s *Scheduler) Next(now time.Time) (Grant, bool) {
	s.promote(now)
	for {
		q := s.ready.first()
		if q == nil {
			return Grant{}, false
		}
		budget := s.budget(q, now)
		if budget < 1 {
			if s.place(q, now); q.state == ready {
				return Grant{}, false // the process is full
			}
			continue // the queue's tokens are used up
		}
		s.virtual = q.pass
		s.move(q, claiming)
		q.reserved = budget
		s.reserved += budget
		s.claims++
		return Grant{Queue: q.name, Budget: budget}, true
	}
}

// budget is how many tasks a ready queue may claim. When the queue whose turn it is is limited and no place is free, it is
// nobody's turn: were an unlimited queue behind it served by prefetch, its tasks would take every place that gets free,
// and the limited queue would wait for ever.
func (s *Scheduler) budget(q *queue, now time.Time) int {
	free := s.places - s.inFlight - s.reserved
	if !q.limits.limited() {
		return min(s.claimCap, free+min(s.pace.prefetch(now), s.places))
	}
	budget := min(s.claimCap, free, q.bucket.whole(now))
	if q.limits.Concurrent > 0 {
		budget = min(budget, q.limits.Concurrent-q.leased)
	}
	return budget
}

// NextAt is when Next should be asked again if nothing else happens before. It reports false when only an event can
// help: Due, Claimed or Done.
func (s *Scheduler) NextAt(now time.Time) (time.Time, bool) {
	s.promote(now)
	if q := s.ready.first(); q != nil && s.budget(q, now) > 0 {
		return now, true
	}
	if q := s.waiting.first(); q != nil {
		return q.at, true
	}
	return time.Time{}, false
}

// Claim is what the store answered.
type Claim struct {
	// Leased is how many tasks were leased.
	Leased int
	// Next is when the queue's next task is due; zero is never, as far as the store knew.
	Next time.Time
	// Blocked says that all places of the queue are taken, by whichever process. It is tried again at Retry, or when a
	// lease of it ends here.
	Blocked bool
	// Retry is when the queue may be tried again at the earliest; zero is at once.
	Retry time.Time
}

// Claimed ends a grant. A queue without one in flight is left alone.
func (s *Scheduler) Claimed(name string, c Claim, now time.Time) {
	q := s.queues[name]
	if q == nil || q.state != claiming {
		return
	}
	s.reserved -= q.reserved
	s.claims--
	s.inFlight += c.Leased
	q.leased += c.Leased
	q.pass += q.cost(c.Leased)
	q.bucket.charge(c.Leased, now)

	q.reserved, q.due, q.retry, q.refused = 0, c.Next, c.Retry, c.Blocked
	if !q.woken.IsZero() {
		q.hear(q.woken)
		q.woken = time.Time{}
	}
	s.move(q, idle)
	s.place(q, now)
}

// Done says that n leases of a queue have ended.
func (s *Scheduler) Done(name string, n int, now time.Time) {
	q := s.queues[name]
	if q == nil {
		return
	}
	n = min(n, q.leased)
	q.leased -= n
	s.inFlight -= n
	s.pace.ended(n, now)
	if q.refused && n > 0 {
		q.refused, q.retry = false, time.Time{}
	}
	if q.state != claiming {
		s.place(q, now)
	}
}

// Forget drops what is known of a queue, at once or when its claim and its leases have ended. A Due takes it back.
func (s *Scheduler) Forget(name string) {
	q := s.queues[name]
	if q == nil {
		return
	}
	q.leaving = true
	if q.state != claiming {
		q.due = time.Time{}
		s.place(q, time.Time{})
	}
}

// InFlight is how many leases the process holds.
func (s *Scheduler) InFlight() int { return s.inFlight }

// Claiming is how many claims are in flight.
func (s *Scheduler) Claiming() int { return s.claims }

// queue finds a queue, or takes it in.
func (s *Scheduler) queue(name string) *queue {
	q := s.queues[name]
	if q == nil {
		q = &queue{name: name}
		s.queues[name] = q
	}
	return q
}

// promote moves queues whose time has come to where they belong now.
func (s *Scheduler) promote(now time.Time) {
	for q := s.waiting.first(); q != nil && !q.at.After(now); q = s.waiting.first() {
		s.place(q, now)
	}
}

// place puts a queue that is not claiming where it belongs.
func (s *Scheduler) place(q *queue, now time.Time) {
	switch {
	case q.state == claiming:
	case q.due.IsZero():
		s.move(q, idle)
		if q.leaving && q.leased == 0 {
			delete(s.queues, q.name)
		}
	case q.full(), q.refused && q.retry.IsZero():
		s.move(q, blocked)
	default:
		at := q.eligibleAt(now)
		if at.After(now) {
			s.move(q, idle)
			q.at = at
			s.move(q, waiting)
		} else if q.state != ready {
			q.pass = max(q.pass, s.virtual)
			s.move(q, ready)
		}
	}
}

// move changes a queue's state, and with it the heap that holds it.
func (s *Scheduler) move(q *queue, to state) {
	switch q.state {
	case waiting:
		s.waiting.remove(q)
	case ready:
		s.ready.remove(q)
	}
	q.state = to
	switch to {
	case waiting:
		s.waiting.add(q)
	case ready:
		s.ready.add(q)
	}
}
