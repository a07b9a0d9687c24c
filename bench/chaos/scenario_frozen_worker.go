package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/cluster"
)

func frozenWorker() Scenario {
	return Scenario{
		Name: "frozen-worker",
		Doc: "a worker is frozen by SIGSTOP until it is taken for dead, and thawed: others take over what it held, under leases that " +
			"would have lasted longer, and it registers again as who it was and works on",
		Bound: Bound{Recovery: 4 * time.Second, Duplicates: (*Run).Allowed},
		Run:   runFrozenWorker,
	}
}

func runFrozenWorker(ctx context.Context, r *Run) error {
	workers, err := r.Workers(ctx, 3, WorkerConfig{Stale: 2500 * time.Millisecond})
	if err != nil {
		return err
	}
	producer, err := r.Producer(ctx, Load{
		Queues: []string{"mail", "report", "image"}, Rate: 300, Batch: 3, Seed: r.Rand.Uint64(), Work: 40 * time.Millisecond,
		LongShare: 0.05, LongWork: 1500 * time.Millisecond, Timeout: 30 * time.Second,
		FlakyShare: 0.05, SnoozeShare: 0.05, NamedShare: 0.1, DelayShare: 0.1, Delay: 2 * time.Second,
	})
	if err != nil {
		return err
	}
	for round := range Pick(r, 1, 15) {
		victim := workers[r.Rand.IntN(len(workers))]
		if round%3 == 1 { // at times it is the leader, who finds the dead
			if victim, err = r.Leader(ctx, workers); err != nil {
				return err
			}
		}
		if !Sleep(ctx, time.Duration(800+r.Rand.IntN(800))*time.Millisecond) {
			return context.Cause(ctx)
		}
		if err := r.freeze(ctx, victim, time.Duration(r.Rand.IntN(1500))*time.Millisecond); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	if err := producer.Finish(ctx); err != nil {
		return err
	}
	return r.Drain(ctx, 30*time.Second)
}

// freeze stops a worker until it is dead to the others and holds nothing any more, and for some time beyond that. Then it thaws it
// and waits until it works as before.
func (r *Run) freeze(ctx context.Context, victim *Process, beyond time.Duration) error {
	id := cluster.WorkerID(victim.Worker())
	before, err := r.store.GetWorker(ctx, id)
	if err != nil {
		return err
	}
	if err := victim.Stop(); err != nil {
		return err
	}
	// What was on its way to the server when it froze is carried out now.
	if !Sleep(ctx, 100*time.Millisecond) {
		return context.Cause(ctx)
	}
	held, err := r.Held(ctx, victim)
	if err != nil {
		return err
	}
	if len(held) == 0 {
		return errors.New("the worker held nothing when it was frozen, so nothing can be shown")
	}
	r.Allow(len(held))
	r.Note("%s was frozen with %d leases", victim.Who, len(held))
	err = Until(ctx, 15*time.Second, "the frozen worker is dead and holds nothing", func() (bool, error) {
		w, err := r.store.GetWorker(ctx, id)
		if err != nil || w.State != cluster.StateDead {
			return false, err
		}
		held, err := r.Held(ctx, victim)
		return len(held) == 0, err
	})
	if err != nil {
		return err
	}
	if err := r.Recovered(ctx); err != nil { // for the others
		return err
	}
	if !Sleep(ctx, beyond) {
		return context.Cause(ctx)
	}
	thawed := time.Now()
	if err := victim.Cont(); err != nil {
		return err
	}
	if err := r.Recovered(ctx); err != nil {
		return err
	}
	err = Until(ctx, 10*time.Second, "the thawed worker is registered again", func() (bool, error) {
		w, err := r.store.GetWorker(ctx, id)
		return err == nil && w.State == cluster.StateActive, err
	})
	if err != nil {
		return err
	}
	if after, err := r.store.GetWorker(ctx, id); err != nil || !after.CreatedAt.Equal(before.CreatedAt) {
		return fmt.Errorf("it has registered as another one: created at %v, and before at %v, %w", after.CreatedAt, before.CreatedAt, err)
	}
	return r.Await(ctx, 10*time.Second, "the thawed worker gets work", func(h *audit.History) bool {
		return count(h, func(e *audit.Event) bool {
			return e.Kind == audit.KindStart && e.Who == victim.Who && e.At > thawed.Add(time.Second/2).UnixMicro()
		}) > 0
	})
}
