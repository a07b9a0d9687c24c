package main

import (
	"context"
	"fmt"
	"time"
)

func cronHandover() Scenario {
	return Scenario{
		Name: "cron-handover",
		Doc: "an entry fires every second, and the leader is killed or frozen again and again just before the second: each second makes " +
			"its task, once, and what was missed for longer than a minute is dealt with as its entry says",
		Bound: Bound{Recovery: 5 * time.Second, Duplicates: (*Run).Allowed},
		Run:   runCronHandover,
	}
}

func runCronHandover(ctx context.Context, r *Run) error {
	missed, err := r.Missed(ctx)
	if err != nil {
		return err
	}
	config := WorkerConfig{LeaderTTL: 900 * time.Millisecond, LeaderRetry: 100 * time.Millisecond}
	workers, err := r.Workers(ctx, 3, config)
	if err != nil {
		return err
	}
	if err := missed.End(ctx); err != nil {
		return err
	}
	ticks, err := r.Ticks(ctx, "second")
	if err != nil {
		return err
	}
	for round := range Pick(r, 4, 60) {
		leader, err := r.beforeTheSecond(ctx, workers)
		if err != nil {
			return err
		}
		if round%2 == 0 {
			workers, err = r.replace(ctx, workers, leader, config)
		} else {
			err = r.outlast(ctx, workers, leader)
		}
		if err != nil {
			return err
		}
		if err := r.Recovered(ctx); err != nil {
			return err
		}
	}
	_, err = ticks.Finish(ctx, 15*time.Second, 20*time.Second)
	return err
}

// beforeTheSecond waits for a leader, and with it until a moment before the next second.
func (r *Run) beforeTheSecond(ctx context.Context, workers []*Process) (*Process, error) {
	for {
		if _, err := r.Leader(ctx, workers); err != nil {
			return nil, err
		}
		before := time.Duration(r.Rand.IntN(40)) * time.Millisecond
		until := time.Now().Add(200 * time.Millisecond).Truncate(time.Second).Add(time.Second - before)
		if !Sleep(ctx, time.Until(until)) {
			return nil, context.Cause(ctx)
		}
		leader, err := r.Leader(ctx, workers) // it may have changed meanwhile
		if err != nil || time.Since(until) < time.Second/4 {
			return leader, err
		}
	}
}

// replace kills the leader and puts another worker in its place.
func (r *Run) replace(ctx context.Context, workers []*Process, leader *Process, config WorkerConfig) ([]*Process, error) {
	leader.Kill()
	left, err := r.LeftBy(ctx, leader)
	if err != nil {
		return nil, err
	}
	r.Allow(left)
	fresh, err := r.Worker(ctx, config)
	if err != nil {
		return nil, err
	}
	after := []*Process{fresh}
	for _, w := range workers {
		if w != leader {
			after = append(after, w)
		}
	}
	return after, nil
}

// outlast freezes the leader until another one leads, and for a while longer, so that it wakes up in the middle of what it did.
func (r *Run) outlast(ctx context.Context, workers []*Process, leader *Process) error {
	if err := leader.Stop(); err != nil {
		return err
	}
	held, err := r.Held(ctx, leader)
	if err != nil {
		return err
	}
	r.Allow(len(held))
	var others []*Process
	for _, w := range workers {
		if w != leader {
			others = append(others, w)
		}
	}
	next, err := r.Leader(ctx, others)
	if err != nil {
		return fmt.Errorf("after the leader was frozen: %w", err)
	}
	r.Note("%s leads after %s", next.Who, leader.Who)
	if !Sleep(ctx, time.Duration(r.Rand.IntN(600))*time.Millisecond) {
		return context.Cause(ctx)
	}
	return leader.Cont()
}
