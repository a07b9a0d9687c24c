package scheduler

import "time"

// Reset drops what is believed of a queue's limits, and whatever claims have said that keeps it from being claimed:
// Claim.Retry, Claim.Blocked, the debt of its bucket, and the limits themselves, as SetLimits of none does. So it is
// claimed as soon as something is due and there is a place. What a claim in flight will say of that is not heeded either: it
// may have been made before what the reset is for. What is due, and what is leased, stay known.
func (s *Scheduler) Reset(queue string, now time.Time) {
	q := s.queues[queue]
	if q == nil {
		return
	}
	q.retry, q.refused = time.Time{}, false
	q.reset = q.place == claiming
	s.limit(q, Limits{}.resolved(), now)
	s.arrange(q, now)
}
