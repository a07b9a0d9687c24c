package scheduler

import (
	"testing"
	"time"
)

// TestPace plays sequences of tasks that end, and asks how many to prefetch at the instant after each.
func TestPace(t *testing.T) {
	const ms = time.Millisecond
	type step struct {
		after    time.Duration
		done     int // 0 only asks
		prefetch int
	}
	for _, test := range []struct {
		name  string
		steps []step
	}{
		{"nothing has ended", []step{{0, 0, 0}}},
		{"no pace before a window is over", []step{{0, 100, 0}, {9 * ms, 100, 0}}},
		{"a window, which the next task ends", []step{{0, 10, 0}, {5 * ms, 10, 0}, {5 * ms, 100, 10}}},
		{"a window that lasts longer", []step{{0, 10, 0}, {8 * ms, 2, 0}, {8 * ms, 1, 3}}}, // 12 in 16 ms
		{"rounded down", []step{{0, 2, 0}, {5 * ms, 1, 0}, {5 * ms, 1, 1}}},                // 3 in 10 ms
		{"up and down with the pace", []step{
			{0, 4, 0}, {5 * ms, 4, 0}, {5 * ms, 20, 4}, {5 * ms, 20, 4}, {5 * ms, 2, 20}, {5 * ms, 0, 20}, {4 * ms, 2, 20},
			{1 * ms, 2, 2},
		}},
		{"a pause ends it at once", []step{{0, 10, 0}, {5 * ms, 10, 0}, {5 * ms, 10, 10}, {10*ms - 1, 0, 10}, {1, 0, 0}}},
		{"after a pause it begins anew", []step{
			{0, 10, 0}, {5 * ms, 10, 0}, {5 * ms, 10, 10}, {time.Second, 10, 0}, {5 * ms, 10, 0}, {5 * ms, 1, 10},
		}},
		{"no more than the places", []step{{0, 100, 0}, {5 * ms, 100, 0}, {5 * ms, 1, 64}}},
		{"slow tasks that end together", []step{
			{0, 64, 0}, {ms, 64, 0}, {time.Second, 64, 0}, {ms, 64, 0}, {time.Second, 64, 0},
		}},
		{"a clock that goes back", []step{
			{0, 10, 0}, {5 * ms, 10, 0}, {5 * ms, 10, 10}, {-time.Hour, 10, 10}, {time.Hour, 10, 0}, {5 * ms, 10, 0},
			{5 * ms, 1, 10},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var p pace
			now := time.Unix(1_700_000_000, 0)
			for i, s := range test.steps {
				now = now.Add(s.after)
				if s.done > 0 {
					p.done(s.done, now)
				}
				if got := p.prefetch(64, now); got != s.prefetch {
					t.Errorf("step %d: prefetch %d, want %d", i, got, s.prefetch)
				}
			}
		})
	}
}
