package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

const idlePeerMost, latePeerMost = 500, 2000 // tasks of a peer's latency figures: 10 s each

// percentiles are what the names of latency figures end with.
var percentiles = map[string]float64{"_p50": 50, "_p99": 99}

// latencyEntries is a peer's entry of a latency figure, or none. Ways are measurements by the figures' names without the
// percentile; all percentiles of a repeat are of one run.
func latencyEntries(figureName, peer, how string, ways map[string]measureLatency) []entry {
	for suffix, percentile := range percentiles {
		name, isPercentile := strings.CutSuffix(figureName, suffix)
		measure := ways[name]
		if !isPercentile || measure == nil {
			continue
		}
		return []entry{{peer, how, func(ctx context.Context, env *env, n int) (float64, error) {
			waits, err := oncePerRepeat(env, peer+" "+name, func() (*histogram, error) { return measure(ctx, env, n) })
			if err != nil {
				return 0, err
			}
			return waits.ms(percentile), nil
		}}}
	}
	return nil
}

// pickups takes the time from the instant in each task's payload to its handler's start.
type pickups struct {
	*countdown
	wrong, early atomic.Int64
	waits        *histogram
}

func newPickups(n int) *pickups { return &pickups{countdown: newCountdown(n), waits: newHistogram()} }

// started is called by each task's handler, first of all.
func (p *pickups) started(payload []byte) {
	now := time.Now()
	at, err := stampOf(payload)
	if err != nil {
		p.wrong.Add(1)
	}
	if now.Before(at) {
		p.early.Add(1)
	}
	p.waits.record(now.Sub(at))
	p.add()
}

// histogram waits for the last task and returns what all have waited.
func (p *pickups) histogram(ctx context.Context) (*histogram, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	if wrong, early := p.wrong.Load(), p.early.Load(); wrong+early > 0 {
		return nil, fmt.Errorf("%d tasks started early, %d with another payload", early, wrong)
	}
	return p.waits, p.exact()
}

// sendIdle sends all tasks to a queue that is idle between them.
func (p *pickups) sendIdle(ctx context.Context, send func(ctx context.Context, intended time.Time) error) error {
	return openLoop(ctx, poisson(p.n, idleRate, rand.Uint64()), sleepers,
		func(ctx context.Context, _ int, intended time.Time) error { return send(ctx, intended) })
}

// dueTimes are for when the tasks are scheduled that are all stored at once, a while before the first.
func (p *pickups) dueTimes() []time.Time {
	first := time.Now().Add(lateLead)
	due := make([]time.Time, 0, p.n)
	for _, at := range poisson(p.n, lateRate, rand.Uint64()) {
		due = append(due, first.Add(at))
	}
	return due
}
