package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/dispatchkit/dispatch"
)

// calibration is the part of a run's tasks that its closed loop has.
const calibration = 4

// halfLoad is how long tasks wait that arrive at half the rate which producer and worker reach together on this
// machine: a closed loop of 64 callers finds that rate first, with the dispatcher at work.
func halfLoad(ctx context.Context, e *env, n int) (*histogram, error) {
	capacity, err := closedLoop(ctx, e, max(n/calibration, loaders))
	if err != nil {
		return nil, err
	}
	if err := e.flush(ctx); err != nil {
		return nil, err
	}
	w, err := newWatch(ctx, e, n, dispatch.Options{})
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := w.dispatcher.Start(ctx); err != nil {
		return nil, err
	}
	rate := capacity / 2
	e.note("latency/load50_p99", "the last repeat sent %.0f tasks/s, half of a closed loop's %.0f", rate, capacity)
	err = openLoop(ctx, poisson(n, rate, rand.Uint64()), loaders, func(ctx context.Context, _ int, intended time.Time) error {
		return w.send(ctx, intended)
	})
	if err != nil {
		return nil, err
	}
	return w.finish(ctx)
}

// closedLoop is how many tasks a second are enqueued and processed at the same time, until the last has started.
func closedLoop(ctx context.Context, e *env, n int) (float64, error) {
	w, err := newWatch(ctx, e, n, dispatch.Options{})
	if err != nil {
		return 0, err
	}
	defer w.close()
	if err := w.dispatcher.Start(ctx); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := concurrently(ctx, loaders, n, func(ctx context.Context, _ int) error { return w.send(ctx, time.Now()) }); err != nil {
		return 0, err
	}
	if err := w.await(ctx); err != nil {
		return 0, err
	}
	elapsed := time.Since(begin)
	_, err = w.finish(ctx)
	return float64(n) / elapsed.Seconds(), err
}
