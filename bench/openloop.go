package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// poisson fixes n send times in advance: distances are exponential with the given mean rate per second, so that
// arrivals fall into no rhythm with the timers of what is measured. The same seed gives the same times.
func poisson(n int, perSecond float64, seed uint64) []time.Duration {
	random := rand.New(rand.NewPCG(seed, seed))
	at := make([]time.Duration, n)
	var sum float64
	for i := range at {
		sum += random.ExpFloat64() / perSecond
		at[i] = time.Duration(sum * float64(time.Second))
	}
	return at
}

// openLoop calls send for each of the times, counted from now, from some goroutines. It never skips or moves a time: a send that is
// late, because those before it took long, is still told the time it was meant for, so whoever measures from that time forgives no stall.
// The first error ends the loop.
func openLoop(ctx context.Context, at []time.Duration, senders int, send func(ctx context.Context, i int, intended time.Time) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wait sync.WaitGroup
	begin := time.Now()
	for range senders {
		wait.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(at) {
					return
				}
				intended := begin.Add(at[i])
				if !sleepUntil(ctx, intended) {
					return
				}
				if err := send(ctx, i, intended); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}

// sleepUntil reports false if ctx ended first.
func sleepUntil(ctx context.Context, t time.Time) bool {
	left := time.Until(t)
	if left <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
