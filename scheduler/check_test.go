package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// check verifies what the comments call invariants. now is no earlier than any instant the scheduler was told.
func (s *Scheduler) check(now time.Time) error {
	var leases, claims, reserved, held, kept, heaped int
	var pressing weights
	for name, q := range s.queues {
		leases += q.leases
		reserved += q.budget
		held += q.held
		kept += q.kept
		if q.presses() {
			pressing.add(q.limits.Weight)
		}
		if q.place == claiming {
			claims++
		}
		if h := s.heapOf(q); h != nil {
			heaped++
			if q.index >= len(h.items) || h.items[q.index] != q {
				return fmt.Errorf("queue %s is not in the heap of its place", name)
			}
		}
		if name != q.name || q.leases < q.held || q.held < q.bound || q.bound < 0 || q.budget < q.kept || q.kept < 0 {
			return fmt.Errorf("queue %s is broken: %+v", name, *q)
		}
		if wrong := q.misplaced(now); wrong != "" {
			return fmt.Errorf("queue %s is in place %d and %s: %+v", name, q.place, wrong, *q)
		}
		if q.ahead() > 0 && (!q.listed || !slices.Contains(s.ahead, q)) {
			return fmt.Errorf("queue %s has tasks ahead and is not listed: %+v", name, *q)
		}
		if s.shared && q.told != q.bound && (!q.changed || !slices.Contains(s.changed, q)) {
			return fmt.Errorf("queue %s has a new part and is not listed: %+v", name, *q)
		}
		if q.place == ready && q.pass < s.floor(q) {
			return fmt.Errorf("queue %s has saved up turns: it stands at %d, others at %d", name, q.pass, s.virtual)
		}
	}
	for _, h := range []*heap{&s.waiting, &s.ready, &s.full, &s.returning} {
		heaped -= len(h.items)
		if err := h.check(); err != nil {
			return err
		}
	}
	if leases != s.leases || claims != s.claims || reserved != s.reserved || heaped != 0 {
		return fmt.Errorf("sums: leases %d, want %d; claims %d, want %d; reserved %d, want %d; heaps lack %d queues",
			s.leases, leases, s.claims, claims, s.reserved, reserved, heaped)
	}
	if held != s.held || kept != s.kept || held+kept > s.places {
		return fmt.Errorf("places: held %d, want %d; kept %d, want %d; of %d", s.held, held, s.kept, kept, s.places)
	}
	if pressing.heaviest != s.pressing.heaviest || !maps.Equal(pressing.count, s.pressing.count) {
		return fmt.Errorf("weights that press are %v, want %v", s.pressing, pressing)
	}
	return s.checkParts()
}

// checkParts verifies that any k queues leave at least the 4^k-th part of the places, rounded up, until that is less than
// two; and that a queue which has none and could have one is not left waiting while one is free.
func (s *Scheduler) checkParts() error {
	if !s.shared {
		return nil
	}
	var parts []int
	for _, q := range s.queues {
		parts = append(parts, q.held+q.kept)
	}
	slices.Sort(parts)
	left, promised := s.places, s.places
	for _, part := range slices.Backward(parts) {
		if promised < 2 {
			break
		}
		promised = (promised + 3) / 4
		if left -= part; left < promised {
			return fmt.Errorf("queues have %v of %d places", parts, s.places)
		}
	}
	for _, q := range s.full.items {
		if q.held+q.kept == 0 && s.free() > 0 {
			return fmt.Errorf("queue %s has no place, and is not let have one of %d", q.name, s.free())
		}
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
	noRoom := q.room() <= 0 || q.refused && q.retry.IsZero()
	switch {
	case noRoom != (q.place == blocked):
		return "is blocked with room for a lease, or not blocked without"
	case q.place == waiting && (q.at.Before(q.due) || q.at.Before(q.retry)):
		return "waits for less than it has to"
	case (q.place == ready || q.place == full) && (q.due.After(now) || q.retry.After(now) || q.bucket.tokens(now) < 1):
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
