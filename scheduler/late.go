package scheduler

// Late says that the claim of a queue takes long: the store, or the part of it that has this queue, may be in trouble.
// The places that were kept for what it brings go to other queues. If it brings something all the same, that is held
// beyond the places, as what is prefetched is. Without a grant it does nothing.
func (s *Scheduler) Late(queue string) {
	q := s.queues[queue]
	if q == nil || q.place != claiming {
		return
	}
	s.reserved -= q.budget
	s.kept -= q.kept
	q.budget, q.kept = 0, 0
	s.stirred = true
	if q.backlogged { // others do not wait for its return either
		s.returning.remove(q)
		q.backlogged = false
		s.press(q, true)
	}
}
