package main

import (
	"context"
	"time"
)

func failoverLoss() Scenario {
	return Scenario{
		Name: "failover-loss",
		Doc: "a primary is killed by SIGKILL whose replica lags behind, and the replica takes its place: of what was acknowledged only that " +
			"of the lag is lost, what it has forgotten is done once more, no token is given out twice, and nothing is stuck",
		Servers: Replicated,
		Bound:   Bound{Recovery: 4 * time.Second, MayLose: (*Run).Forgotten, Duplicates: (*Run).Allowed, Unexplained: (*Run).Allowed},
		Run:     runFailoverLoss,
	}
}

func runFailoverLoss(ctx context.Context, r *Run) error {
	if _, err := r.Workers(ctx, 2, patient); err != nil {
		return err
	}
	producer, err := r.Producer(ctx, Load{
		Queues: []string{"mail", "report", "image"}, Rate: 400, Batch: 4, Seed: r.Rand.Uint64(), Work: 10 * time.Millisecond,
		FlakyShare: 0.1, SnoozeShare: 0.05, NamedShare: 0.1, DelayShare: 0.3, Delay: 2 * time.Second,
	})
	if err != nil {
		return err
	}
	for range Pick(r, 1, 8) {
		if !Sleep(ctx, time.Duration(1500+r.Rand.IntN(1000))*time.Millisecond) {
			return context.Cause(ctx)
		}
		old := r.Set.Primary()
		l, err := r.failOverBehind(ctx, time.Duration(1500+r.Rand.IntN(1000))*time.Millisecond)
		if err != nil {
			return err
		}
		r.MayForget(l.paused, l.promoted, true, nil)
		if err := r.Recovered(ctx); err != nil {
			return err
		}
		f, err := r.forgot(l)
		if err != nil {
			return err
		}
		if f.tasks == 0 {
			return errNotBehind
		}
		r.Allow(f.attempts)
		if err := r.revivePrimary(ctx, old); err != nil {
			return err
		}
	}
	if err := producer.Finish(ctx); err != nil {
		return err
	}
	return r.Drain(ctx, 30*time.Second)
}
