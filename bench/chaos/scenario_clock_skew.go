package main

import (
	"context"
	"time"
)

func clockSkew() Scenario {
	return Scenario{
		Name: "clock-skew",
		Doc: "three workers, which enqueue as well, have clocks that are two minutes slow, right and two minutes fast, and jump by five " +
			"minutes again and again: nothing is early, nothing is lost, and each second of a cron entry makes one task",
		// A process whose clock goes back, the monotonic one too, beats late: others take it for dead, and it does not know.
		Bound: Bound{
			Recovery: 6 * time.Second, Duplicates: func(*Run) int { return -1 }, Overlaps: func(*Run) int { return -1 },
		},
		Run: runClockSkew,
	}
}

func runClockSkew(ctx context.Context, r *Run) error {
	load := Load{
		Queues: []string{"mail", "report", "image"}, Rate: 60, Batch: 2, Work: 30 * time.Millisecond, Timeout: 30 * time.Second,
		DelayShare: 0.6, Delay: 3 * time.Second, FlakyShare: 0.1, SnoozeShare: 0.05, NamedShare: 0.1,
	}
	var workers []*Process
	for _, skew := range []time.Duration{-2 * time.Minute, 0, 2 * time.Minute} {
		own := load
		own.Seed, own.Tasks = r.Rand.Uint64(), Pick(r, 400, 4_000) // it must have ended before the store is drained
		w, err := r.Worker(ctx, WorkerConfig{Skew: skew, Enqueues: &own})
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}
	ticks, err := r.Ticks(ctx, "second")
	if err != nil {
		return err
	}
	load.Seed = r.Rand.Uint64()
	producer, err := r.Producer(ctx, load)
	if err != nil {
		return err
	}
	if !Sleep(ctx, Pick(r, 2*time.Second, 20*time.Second)) { // the clocks only differ
		return context.Cause(ctx)
	}
	for range Pick(r, 6, 80) {
		step := 5 * time.Minute
		if r.Rand.IntN(2) == 0 {
			step = -step
		}
		if err := workers[r.Rand.IntN(len(workers))].StepClock(step); err != nil {
			return err
		}
		if !Sleep(ctx, time.Duration(200+r.Rand.IntN(800))*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	if err := r.Recovered(ctx); err != nil {
		return err
	}
	if err := producer.Finish(ctx); err != nil {
		return err
	}
	_, err = ticks.Finish(ctx, 20*time.Second, 40*time.Second)
	return err
}
