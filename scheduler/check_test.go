package scheduler

import (
	"fmt"
	"time"
)

// check verifies what the comments call invariants. now is no earlier than any instant the scheduler was told.
func (s *Scheduler) check(now time.Time) error {
	var leases, claims, reserved, heaped int
	for name, q := range s.queues {
		leases += q.leases
		reserved += q.budget
		if q.place == claiming {
			claims++
		}
		if h := s.heapOf(q); h != nil {
			heaped++
			if q.index >= len(h.items) || h.items[q.index] != q {
				return fmt.Errorf("queue %s is not in the heap of its place", name)
			}
		}
		if name != q.name || q.leases < 0 {
			return fmt.Errorf("queue %s is broken: %+v", name, *q)
		}
		if wrong := q.misplaced(now); wrong != "" {
			return fmt.Errorf("queue %s is in place %d and %s: %+v", name, q.place, wrong, *q)
		}
		if q.place == ready && q.pass < s.floor(q) {
			return fmt.Errorf("queue %s has saved up turns: it stands at %d, others at %d", name, q.pass, s.virtual)
		}
	}
	for _, h := range []*heap{&s.waiting, &s.ready, &s.returning} {
		heaped -= len(h.items)
		if err := h.check(); err != nil {
			return err
		}
	}
	if leases != s.leases || claims != s.claims || reserved != s.reserved || heaped != 0 {
		return fmt.Errorf("sums: leases %d, want %d; claims %d, want %d; reserved %d, want %d; heaps lack %d queues",
			s.leases, leases, s.claims, claims, s.reserved, reserved, heaped)
	}
	return nil
}

// misplaced says what is wrong with a queue where it is, or returns "".
func (q *queue) misplaced(now time.Time) string {
	switch {
	case q.forgotten && !q.due.IsZero():
		return "is forgotten with something due"
	case q.forgotten && q.leases == 0 && q.place != claiming:
		return "is forgotten and still there"
	case q.budget < 0 || q.budget > 0 && q.place != claiming:
		return "has a budget without a claim"
	case q.place == claiming:
		return ""
	case q.due.IsZero() != (q.place == idle):
		return "is idle with something due, or not idle with nothing due"
	case q.place == idle:
		return ""
	}
	full := q.room() <= 0 || q.refused && q.retry.IsZero()
	switch {
	case full != (q.place == blocked):
		return "is blocked with room for a lease, or not blocked without"
	case q.place == waiting && (q.at.Before(q.due) || q.at.Before(q.retry)):
		return "waits for less than it has to"
	case q.place == ready && (q.due.After(now) || q.retry.After(now) || q.bucket.tokens(now) < 1):
		return "is ready before its instant"
	}
	return ""
}

// check verifies the heap's invariant.
func (h *heap) check() error {
	for i, q := range h.items {
		if q.index != i {
			return fmt.Errorf("queue %s is at %d in its heap and believes to be at %d", q.name, i, q.index)
		}
		if i > 0 && h.less(q, h.items[(i-1)/2]) {
			return fmt.Errorf("queue %s is below its parent in the heap, and before it in order", q.name)
		}
	}
	return nil
}
