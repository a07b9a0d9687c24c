package dispatch

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
)

// BenchmarkGroupCommit is what an item costs that is handed over from one of many goroutines and sent with others.
func BenchmarkGroupCommit(b *testing.B) {
	for _, second := range []int{0, enqueueSecond} {
		b.Run(fmt.Sprintf("second=%d", second), func(b *testing.B) {
			g := groupCommit[chan struct{}]{
				maxItems: enqueueBatchTasks, maxBytes: enqueueBatchBytes, second: second,
				size: func(chan struct{}) int { return 1 },
				send: func(_ string, batch []chan struct{}) {
					for _, done := range batch {
						done <- struct{}{}
					}
				},
			}
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				done := make(chan struct{}, 1)
				for pb.Next() {
					g.add("key", done)
					<-done
				}
			})
		})
	}
}

// BenchmarkAttemptContext is an attempt of a handler that does not ask when to stop, and of one that waits for it.
func BenchmarkAttemptContext(b *testing.B) {
	clock := clockwork.NewRealClock()
	for _, waits := range []bool{false, true} {
		b.Run(fmt.Sprintf("waits=%v", waits), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run := new(running)
				run.attempt.begin(clock, run, clock.Now().Add(time.Minute))
				if waits {
					run.attempt.Done()
				}
				run.attempt.end(context.Canceled)
			}
		})
	}
}

// BenchmarkID makes the ID of a task.
func BenchmarkID(b *testing.B) {
	var ids idSource
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		ids.next(now)
	}
}
