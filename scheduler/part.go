package scheduler

// A process with several queues lets none of them have all of its places: attempts may hang, and then the others must
// find one that is free. How many that takes nobody can say beforehand; so the bound moves, as it does for the queues that
// share the buffer of a switch: what a queue may have is a multiple of what it leaves free. One busy queue may so have
// three quarters of the places, two together nearly 7/8, and a queue that comes when they have as much as they may finds a
// free place all the same.
//
// Queues that come one after another, and hang, each take up to three quarters of what those before have left. So any k
// queues leave at least the 4^k-th part of the places, rounded up, until that is less than two: of 64 places, three
// queues leave one.

// timesFree is how many places a queue may have for each that it leaves free.
const timesFree = 3

// mayTake says whether, in a process with several queues, a queue that has so many places may take one more of those that
// are free: if it then has at most three times as many as it leaves free. A queue that has none may take any free one, the
// last too. So one queue may have 48 of 64 places, 2 of 3, and 1 of 2; of one place there is no part to keep.
func mayTake(has, free int) bool {
	return free > 0 && (has == 0 || has+1 <= timesFree*(free-1))
}

// more returns how many of the free places a queue may take: as mayTake says, if all queues are of one weight. While a
// heavier one wants more, it is fewer, so that places are shared by weight where each has as many as it may; but it may
// always have as many as it leaves free, because what a heavy queue cannot take does it no good.
func (s *Scheduler) more(q *queue) int {
	free := s.free()
	if !s.shared || free == 0 {
		return free
	}
	// The n-th place may be taken if has + n is at most times/heaviest of free - n.
	has, times, heaviest := q.held+q.kept, s.times(q.limits.Weight), s.heaviest(q.limits.Weight)
	n := (times*free - heaviest*has) / (heaviest + times)
	if has == 0 {
		return max(n, 1)
	}
	return max(n, 0)
}

// heaviest returns the weight of the heaviest queue that wants more, or that of a queue if it is heavier.
func (s *Scheduler) heaviest(weight int) int { return max(s.pressing.heaviest, weight) }

// times is to heaviest as is timesFree to 1, for a queue of this weight.
func (s *Scheduler) times(weight int) int { return max(timesFree*weight, s.heaviest(weight)) }

// free returns how many places no lease has, and none is kept for by a claim in flight.
func (s *Scheduler) free() int {
	return s.places - s.held - s.kept
}

// Bounds tells how many of a queue's leases may be worked on at once, for each queue for which that has changed since it was
// told last. Other leases of the queue wait. tell must not call the scheduler. Who works on tasks goes on to the next one of
// the same queue by itself, without asking, as long as that keeps to the number. Without Options.Shared there is nothing to
// tell.
func (s *Scheduler) Bounds(tell func(queue string, places int)) {
	s.deal()
	for i, q := range s.changed {
		s.changed[i] = nil
		q.changed = false
		if q.told != q.bound {
			q.told = q.bound
			tell(q.name, q.bound)
		}
	}
	s.changed = s.changed[:0]
}

// Working corrects Done, right after which it is called: so many of a queue's leases are worked on now, and no other one will
// be until Bounds has told how many may. Where tasks have ended and others have begun in their places before Done said so,
// these are not free. They are the queue's for as long as these tasks last, and for longer only if it has no more than its
// part.
func (s *Scheduler) Working(queue string, n int) {
	q := s.queues[queue]
	if q == nil || !s.shared {
		return
	}
	q.told = 0
	s.entitle(q, 0)
	missing := min(min(n, q.leases)-q.held, s.free())
	if missing <= 0 {
		return
	}
	s.held += missing
	q.held += missing
	if s.times(q.limits.Weight)*s.free() >= s.heaviest(q.limits.Weight)*(q.held+q.kept) {
		s.entitle(q, q.held-q.bound)
	}
}

// entitle lets so many more of a queue's leases be worked on.
func (s *Scheduler) entitle(q *queue, more int) {
	q.bound += more
	if s.shared && !q.changed && q.bound != q.told {
		q.changed = true
		s.changed = append(s.changed, q)
	}
}

// deal gives free places to leases that wait for one, as the process does by itself, and to those on their way, and has
// queues that had as much as they might compete again. It is called before anybody is picked, and does nothing unless
// something has changed.
func (s *Scheduler) deal() {
	if !s.stirred {
		return
	}
	s.stirred = false
	kept := s.ahead[:0]
	for _, q := range s.ahead {
		n := min(q.ahead(), s.more(q))
		placed := min(n, q.leases-q.held)
		q.held += placed
		s.held += placed
		if placed > 0 { // it has no more than its part, so what it has had beyond its bound is its own, too
			s.entitle(q, q.held-q.bound)
		}
		q.kept += n - placed
		s.kept += n - placed
		if q.listed = q.ahead() > 0; q.listed {
			kept = append(kept, q)
		}
	}
	clear(s.ahead[len(kept):])
	s.ahead = kept
	for q := s.full.min(); q != nil; q = s.full.min() {
		s.full.remove(q)
		q.place, q.pass = ready, max(q.pass, s.floor(q))
		s.ready.push(q)
	}
}

// list notes that a queue has tasks ahead, if it has any.
func (s *Scheduler) list(q *queue) {
	if !q.listed && q.ahead() > 0 {
		q.listed = true
		s.ahead = append(s.ahead, q)
	}
}

// setAside takes a ready queue out of the competition that has as many places as it may have, until deal.
func (s *Scheduler) setAside(q *queue) {
	s.ready.remove(q)
	q.place = full
	s.full.push(q)
}

// press keeps count of the weights of queues that want more, after a change of q. before is what q.presses said before.
func (s *Scheduler) press(q *queue, before bool) {
	switch after := q.presses(); {
	case after && !before:
		s.pressing.add(q.limits.Weight)
	case before && !after:
		s.pressing.remove(q.limits.Weight)
	}
}

// weights counts queues by their weights. The zero value is empty.
type weights struct {
	count    map[int]int
	heaviest int // 0 if there are none
}

func (w *weights) add(weight int) {
	if w.count == nil {
		w.count = make(map[int]int)
	}
	w.count[weight]++
	w.heaviest = max(w.heaviest, weight)
}

// remove takes back one add. It takes time for each different weight when the last of the heaviest goes.
func (w *weights) remove(weight int) {
	if w.count[weight]--; w.count[weight] > 0 {
		return
	}
	delete(w.count, weight)
	if weight < w.heaviest {
		return
	}
	w.heaviest = 0
	for other := range w.count {
		w.heaviest = max(w.heaviest, other)
	}
}
