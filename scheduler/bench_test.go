package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkCycle is a grant, its answer and the end of its leases, with n queues that all have a backlog.
func BenchmarkCycle(b *testing.B) {
	for _, limits := range []struct {
		name string
		Limits
		shared bool
	}{
		{"unlimited", Limits{}, false},
		{"limited", Limits{Rate: 1e6, Burst: 1000, Concurrent: 100}, false},
		{"shared", Limits{}, true},
	} {
		for _, n := range []int{1, 100, 10_000} {
			b.Run(fmt.Sprintf("%s/queues=%d", limits.name, n), func(b *testing.B) {
				now := time.Unix(1_700_000_000, 0)
				s := New(Options{Places: 64, ClaimCap: 100, Shared: limits.shared})
				for i := range n {
					name := fmt.Sprintf("queue-%d", i)
					s.SetLimits(name, limits.Limits, now)
					s.Due(name, now, now)
				}
				b.ReportAllocs()
				for b.Loop() {
					now = now.Add(100 * time.Microsecond)
					g, ok := s.Next(now)
					if !ok {
						b.Fatal("no grant")
					}
					s.Claimed(g.Queue, Claim{Leased: g.Budget, Next: now}, now)
					s.Done(g.Queue, g.Budget, now)
				}
			})
		}
	}
}

// BenchmarkWake is a queue that waits for its instant, is granted, and has nothing until the next one; with n queues
// whose instants are spread.
func BenchmarkWake(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("queues=%d", n), func(b *testing.B) {
			now := time.Unix(1_700_000_000, 0)
			s := New(Options{Places: 64, ClaimCap: 100})
			for i := range n {
				s.Due(fmt.Sprintf("queue-%d", i), now.Add(time.Duration(i)*time.Millisecond), now)
			}
			b.ReportAllocs()
			for b.Loop() {
				at, ok := s.NextAt(now)
				if !ok {
					b.Fatal("nothing waits")
				}
				now = at
				g, _ := s.Next(now)
				s.Claimed(g.Queue, Claim{Leased: 1, Next: now.Add(time.Duration(n) * time.Millisecond)}, now)
				s.Done(g.Queue, 1, now)
			}
		})
	}
}
