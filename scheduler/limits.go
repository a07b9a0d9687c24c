package scheduler

import (
	"math"
	"time"
)

// Limits are what one queue allows, over all processes that serve it. The zero value sets no limit, with weight 1.
type Limits struct {
	// Rate is how many tasks may be leased per second. 0 is unlimited, and so is whatever is not a positive finite
	// number.
	Rate float64
	// Burst is how many tasks may be leased at once after a pause: the size of the token bucket. With a Rate, values
	// below 1 count as 1; without one it means nothing.
	Burst int
	// Concurrent is how many leases of the queue there may be at once. 0 or less is unlimited.
	Concurrent int
	// Weight is the queue's share of this process when several queues have tasks for its places: one of weight 3 gets
	// three times the tasks of one of weight 1. 0 or less counts as 1, and more than a million as a million.
	Weight int
}

// maxWeight keeps products of weights and places from overflowing.
const maxWeight = 1_000_000

// resolved returns the one form of all Limits that mean the same.
func (l Limits) resolved() Limits {
	if l.Rate > 0 && !math.IsInf(l.Rate, 1) {
		l.Burst = max(l.Burst, 1)
	} else {
		l.Rate, l.Burst = 0, 0
	}
	l.Concurrent = max(l.Concurrent, 0)
	l.Weight = min(max(l.Weight, 1), maxWeight)
	return l
}

// A concurrency limit is far while it is at least farPlaces times the process's places and the store has not refused for it
// within nearFor.
const (
	farPlaces = 4
	nearFor   = time.Minute
)

// Near says whether a queue has a concurrency limit that may be near. Until then a lease that nothing is done with, because
// its task waits for a place or its outcome is on its way, keeps no other task from running.
func (s *Scheduler) Near(queue string, now time.Time) bool {
	q := s.queues[queue]
	return q != nil && s.near(q, now)
}

func (s *Scheduler) near(q *queue, now time.Time) bool {
	limit := q.limits.Concurrent
	return limit > 0 && (limit/farPlaces < s.places || now.Before(q.nearUntil))
}

// limited says whether each lease counts against a limit. Tasks of such a queue are not prefetched: one that waits for a
// place uses the limit up and does nothing with it.
func (s *Scheduler) limited(q *queue, now time.Time) bool {
	return q.limits.Rate > 0 || s.near(q, now)
}
