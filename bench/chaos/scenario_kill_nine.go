package main

import (
	"context"
	"time"
)

func killNine() Scenario {
	return Scenario{
		Name: "kill-nine",
		Doc: "three workers are killed by SIGKILL one after another under load, and replaced: every acknowledged task ends, and what " +
			"starts twice is at most what the killed left behind",
		Bound: Bound{Recovery: 3 * time.Second, Duplicates: (*Run).Allowed, Unexplained: (*Run).Allowed},
		Run:   runKillNine,
	}
}

func runKillNine(ctx context.Context, r *Run) error {
	var config WorkerConfig
	workers, err := r.Workers(ctx, 3, config)
	if err != nil {
		return err
	}
	load := Load{
		Queues: []string{"mail", "report", "image"}, Rate: 1000, Batch: 5, Seed: r.Rand.Uint64(), Work: 40 * time.Millisecond,
		FlakyShare: 0.05, SnoozeShare: 0.02, FatalShare: 0.01, NamedShare: 0.1, DelayShare: 0.1, Delay: 2 * time.Second,
	}
	producer, err := r.Producer(ctx, load)
	if err != nil {
		return err
	}
	for round := range Pick(r, 1, 20) {
		for i, w := range workers {
			if !Sleep(ctx, time.Duration(500+r.Rand.IntN(1000))*time.Millisecond) {
				return context.Cause(ctx)
			}
			w.Kill()
			left, err := r.LeftBy(ctx, w)
			if err != nil {
				return err
			}
			r.Allow(left)
			r.Note("round %d: %s left %d tasks behind", round, w.Who, left)
			if workers[i], err = r.Worker(ctx, config); err != nil {
				return err
			}
			if err := r.Recovered(ctx); err != nil {
				return err
			}
		}
	}
	if err := producer.Finish(ctx); err != nil {
		return err
	}
	return r.Drain(ctx, 20*time.Second)
}
