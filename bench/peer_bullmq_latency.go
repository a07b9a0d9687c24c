package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// bullmqLatencyEntries are BullMQ's latencies: its worker waits for tasks in a blocking call.
func bullmqLatencyEntries(figureName string) []entry {
	return latencyEntries(figureName, "bullmq", "concurrency 50", map[string]measureLatency{
		"latency/idle_pickup": func(ctx context.Context, env *env, n int) (*histogram, error) {
			return bullmqLatency(ctx, env, fewer(env, n, idlePeerMost), idleRate, nil)
		},
		"latency/late": func(ctx context.Context, env *env, n int) (*histogram, error) {
			return bullmqLatency(ctx, env, fewer(env, n, latePeerMost), lateRate,
				map[string]any{"scheduled": true, "lead": lateLead.Milliseconds()})
		},
	})
}

// bullmqLatency gives the script its times and makes a histogram of the waits that it reports, in milliseconds.
func bullmqLatency(ctx context.Context, env *env, n int, rate float64, args map[string]any) (*histogram, error) {
	var at []float64
	for _, d := range poisson(n, rate, rand.Uint64()) {
		at = append(at, d.Seconds()*1000)
	}
	var figures struct {
		Waits []float64
		Early int
	}
	if err := bullmqRun(ctx, env, "latency.mjs", with(with(args, "at", at), "concurrency", 50), &figures); err != nil {
		return nil, err
	}
	if len(figures.Waits) != n || figures.Early > 0 {
		return nil, fmt.Errorf("%d of %d tasks started, %d of them early", len(figures.Waits), n, figures.Early)
	}
	waits := newHistogram()
	for _, ms := range figures.Waits {
		waits.record(time.Duration(ms * float64(time.Millisecond)))
	}
	return waits, nil
}
