package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func twoLeaders() Scenario {
	return Scenario{
		Name: "two-leaders",
		Doc: "two workers always lead, and the key of the leadership is deleted again and again under two others, while one of them " +
			"dies and a cron entry fires every second: each second makes one task, and nothing is settled twice",
		Bound: Bound{Recovery: 4 * time.Second, Duplicates: (*Run).Allowed},
		Run:   runTwoLeaders,
	}
}

func runTwoLeaders(ctx context.Context, r *Run) error {
	raw, err := r.Raw()
	if err != nil {
		return err
	}
	defer raw.Close()
	always, err := r.Workers(ctx, 2, WorkerConfig{Alone: true})
	if err != nil {
		return err
	}
	elected, err := r.Workers(ctx, 2, WorkerConfig{})
	if err != nil {
		return err
	}
	ticks, err := r.Ticks(ctx, "second")
	if err != nil {
		return err
	}
	producer, err := r.Producer(ctx, Load{
		Queues: []string{"mail", "report"}, Rate: 300, Batch: 3, Seed: r.Rand.Uint64(), Work: 40 * time.Millisecond,
		LongShare: 0.05, LongWork: time.Second, Timeout: 20 * time.Second, // all succeed: who is killed has no other outcomes to tell of
	})
	if err != nil {
		return err
	}
	heads := map[string]bool{} // whom the key has named
	for round := range Pick(r, 8, 80) {
		leader, err := r.Leader(ctx, elected)
		if err != nil {
			return err
		}
		heads[leader.Worker()] = true
		if !Sleep(ctx, time.Duration(300+r.Rand.IntN(900))*time.Millisecond) {
			return context.Cause(ctx)
		}
		r.Fault("usurp", r.Set.Primary().Addr())
		if err := raw.Del(ctx, key("~", "leader")).Err(); err != nil {
			return err
		}
		if round%8 != 3 {
			continue
		}
		// What a dead worker held is settled by three leaders at once.
		i := r.Rand.IntN(len(always))
		always[i].Kill()
		left, err := r.LeftBy(ctx, always[i])
		if err != nil {
			return err
		}
		r.Allow(left)
		r.Note("%s left %d tasks behind", always[i].Who, left)
		if always[i], err = r.Worker(ctx, WorkerConfig{Alone: true}); err != nil {
			return err
		}
	}
	if len(heads) < 2 {
		return errors.New("the leadership never changed hands, so nothing was shown")
	}
	if err := r.Recovered(ctx); err != nil {
		return err
	}
	if err := producer.Finish(ctx); err != nil {
		return err
	}
	late, err := ticks.Finish(ctx, 10*time.Second, 30*time.Second)
	if err == nil && late > 2*time.Second {
		err = fmt.Errorf("a tick was late by %v, with two workers that always lead", late)
	}
	return err
}
