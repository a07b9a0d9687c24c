package scheduler

import "time"

// Options are what one process can do. Values below 1 count as 1.
type Options struct {
	// Places is how many tasks the process can work on at once.
	Places int
	// ClaimCap is the most tasks that one claim asks for.
	ClaimCap int
	// Shared says that the process serves several queues. Then no queue may have all of its places; see the
	// package documentation. False lets each queue have as many as there are.
	Shared bool
}

// Scheduler decides from which queue one process claims, when, and how many tasks. Make one with New.
//
// It takes no lock: its methods are called one at a time. now is the time of the call; if it goes back, nothing breaks,
// and what was seen to be due stays so.
//
// No method takes more than O(log n) time for n queues, save that Next and NextAt take it once more for each queue
// whose instant has come, and, after a change, for each that has as many places as it may, or tasks without a place; there
// are no more of these than places. None but SetLimits and Reset allocates memory for a queue that is known.
type Scheduler struct {
	places   int
	claimCap int
	shared   bool

	queues    map[string]*queue
	waiting   heap // by instant
	ready     heap // by pass
	full      heap // by pass
	returning heap // by pass: the backlogged queues among those that are claiming

	turns   uint64 // arrivals at places so far
	virtual pass   // the highest that was granted: where a queue stands that has been away
	pace    pace

	leases   int // held by the process; above places while tasks are prefetched
	claims   int // in flight
	reserved int // sum of the budgets of the claims in flight

	held     int      // leases that have a place
	kept     int      // places that are kept for what the claims in flight bring; at most reserved
	ahead    []*queue // those with more tasks, held or on their way, than places
	pressing weights  // of queues that want more
	changed  []*queue // those whose bound may not be told yet
	stirred  bool     // something has changed since deal
}

// New returns a Scheduler that knows no queue.
func New(o Options) *Scheduler {
	return &Scheduler{
		places:    max(o.Places, 1),
		claimCap:  max(o.ClaimCap, 1),
		shared:    o.Shared,
		queues:    make(map[string]*queue),
		waiting:   heap{less: sooner},
		ready:     heap{less: lower},
		full:      heap{less: lower},
		returning: heap{less: lower},
	}
}

// SetLimits says what a queue allows from now on; until it is called, a queue has no limits. The token bucket keeps
// what it holds or owes, up to the new burst; it starts full if the queue had no rate. Limits that mean the same as
// those in force change nothing.
func (s *Scheduler) SetLimits(queue string, l Limits, now time.Time) {
	q := s.know(queue)
	l = l.resolved()
	if l == q.limits {
		return
	}
	if l.Concurrent != q.limits.Concurrent {
		q.lift() // what was refused was refused under another limit
	}
	s.limit(q, l, now)
	s.arrange(q, now)
}

// limit puts resolved limits in force.
func (s *Scheduler) limit(q *queue, l Limits, now time.Time) {
	if q.presses() {
		s.pressing.remove(q.limits.Weight)
		s.pressing.add(l.Weight)
	}
	q.bucket.set(l, now)
	q.limits = l
	s.stirred = true
}

// Due says that a queue has a task that is due at an instant, past or future. It only ever moves a queue earlier, and
// it never cuts short what Claim.Retry or Claim.Blocked has said. It brings a forgotten queue back.
func (s *Scheduler) Due(queue string, at, now time.Time) {
	q := s.know(queue)
	q.forgotten = false
	q.hear(later(at, now)) // now also stands for the zero time, which hear takes for none
	s.arrange(q, now)
}

// Forget drops a queue: its limits, and what is known to be due. While the queue has leases or a claim in flight they
// still count; it gets no grant, and is dropped when they have ended.
func (s *Scheduler) Forget(queue string) {
	q := s.queues[queue]
	if q == nil {
		return
	}
	q.forgotten = true
	q.due = time.Time{}
	s.stirred = true
	if q.place != claiming {
		s.move(q, idle, time.Time{})
	}
	s.drop(q)
}

// InFlight returns how many leases the process holds, by what Claimed and Done have said.
func (s *Scheduler) InFlight() int { return s.leases }

// Claiming returns how many grants Claimed has not answered yet.
func (s *Scheduler) Claiming() int { return s.claims }

// Full says whether there is no place for a task of a queue at the moment, whatever its limits. Places that are kept for
// what claims in flight may bring count as free, and tasks of this queue that wait for a place as if they had one.
func (s *Scheduler) Full(queue string) bool {
	s.deal()
	free, has := s.places-s.held, 0
	if q := s.queues[queue]; q != nil {
		has = q.leases
	}
	if s.shared {
		return !mayTake(has, free)
	}
	return free <= 0
}

// know returns a queue, and makes it if it is new.
func (s *Scheduler) know(name string) *queue {
	q := s.queues[name]
	if q == nil {
		q = &queue{name: name, limits: Limits{}.resolved()}
		s.queues[name] = q
	}
	return q
}

// drop lets go of a queue if it is forgotten and nothing of it is outstanding.
func (s *Scheduler) drop(q *queue) {
	if q.forgotten && q.leases == 0 && q.place != claiming {
		delete(s.queues, q.name)
	}
}

// arrange moves a queue to where it belongs at now. Who changes what a queue waits for calls it. It leaves a queue
// alone that is claiming: Claimed moves that.
func (s *Scheduler) arrange(q *queue, now time.Time) {
	if q.place != claiming {
		to, at := q.standing(now)
		s.move(q, to, at)
	}
}

// move takes a queue from its place to another; at is for waiting.
func (s *Scheduler) move(q *queue, to place, at time.Time) {
	from := q.place
	if from == full && to == ready {
		return // it still is, and has as many places as it had
	}
	if from == to {
		if to == waiting && !at.Equal(q.at) {
			q.at = at
			s.waiting.fix(q)
		}
		return
	}
	if h := s.heapOf(q); h != nil {
		h.remove(q)
	}
	pressed := q.presses()
	s.turns++
	q.place, q.turn, q.at = to, s.turns, at
	if to == ready {
		q.backlogged = from == claiming
		q.pass = max(q.pass, s.floor(q))
	}
	s.press(q, pressed)
	if h := s.heapOf(q); h != nil {
		h.push(q)
	}
}

// heapOf returns the heap in which a queue belongs by its place, or nil.
func (s *Scheduler) heapOf(q *queue) *heap {
	switch {
	case q.place == waiting:
		return &s.waiting
	case q.place == ready:
		return &s.ready
	case q.place == full:
		return &s.full
	case q.place == claiming && q.backlogged:
		return &s.returning
	}
	return nil
}

// floor returns the lowest pass with which a queue may become ready. One that was away has saved up nothing: else the
// others would wait for as long as it was away. One that was only claiming was never away and keeps its pass, or those
// that were granted meanwhile would make up for it, and weights would count for little; but it keeps no more than a
// full claim, or a store that answers slowly would do what being away must not.
func (s *Scheduler) floor(q *queue) pass {
	if q.backlogged {
		return s.virtual.less(s.claimCap)
	}
	return s.virtual
}
