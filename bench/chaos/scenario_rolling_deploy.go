package main

import (
	"context"
	"time"
)

func rollingDeploy() Scenario {
	return Scenario{
		Name: "rolling-deploy",
		Doc: "three workers are stopped by SIGTERM one after another under load, and each is replaced when it is gone: nothing starts " +
			"twice, and no attempt is counted that was cut",
		Bound: Bound{Recovery: 2 * time.Second},
		Run:   runRollingDeploy,
	}
}

func runRollingDeploy(ctx context.Context, r *Run) error {
	workers, err := r.Workers(ctx, 3, WorkerConfig{})
	if err != nil {
		return err
	}
	producer, err := r.Producer(ctx, Load{
		Queues: []string{"mail", "report", "image"}, Rate: 1000, Batch: 5, Seed: r.Rand.Uint64(), Work: 100 * time.Millisecond,
		FlakyShare: 0.05, SnoozeShare: 0.02, FatalShare: 0.01, NamedShare: 0.1, DelayShare: 0.1, Delay: 2 * time.Second,
		Timeout: 30 * time.Second,
	})
	if err != nil {
		return err
	}
	for range Pick(r, 1, 20) {
		for i, w := range workers {
			if !Sleep(ctx, time.Duration(500+r.Rand.IntN(1000))*time.Millisecond) {
				return context.Cause(ctx)
			}
			if err := w.Term(); err != nil {
				return err
			}
			if err := w.Wait(ctx); err != nil {
				return err
			}
			if workers[i], err = r.Worker(ctx, WorkerConfig{}); err != nil {
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
