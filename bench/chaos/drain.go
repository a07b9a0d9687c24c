package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// Drain waits until no task waits or runs, for at most limit. Then it has the workers stop in order, so that all they know is in the
// ledger, and takes a snapshot of the keys. It is the last thing that a scenario does. Tasks that are still there after limit are no
// error: the checker finds them lost. A frozen process must have been thawed, and whoever enqueues must have ended.
func (r *Run) Drain(ctx context.Context, limit time.Duration) error {
	if err := r.Quiet(ctx, limit, "due", "leased"); err != nil {
		return err
	}
	if err := r.stopAll(ctx); err != nil {
		return err
	}
	raw, err := r.Raw()
	if err != nil {
		return err
	}
	defer raw.Close()
	snap, err := audit.Snapshot(ctx, raw, prefix)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.snap = snap
	return nil
}

// Quiet waits, for at most limit, until these sorted sets of all queues are empty. That they are not is no error, but noted: the
// checker has the last word.
func (r *Run) Quiet(ctx context.Context, limit time.Duration, parts ...string) error {
	raw, err := r.Raw()
	if err != nil {
		return err
	}
	defer raw.Close()
	var left int64
	var last error
	err = Until(ctx, limit, "quiet", func() (bool, error) {
		left, last = members(ctx, raw, parts...)
		return last == nil && left == 0, nil
	})
	if last != nil || ctx.Err() != nil {
		return errors.Join(err, last)
	}
	if left > 0 {
		r.Note("after %v there are %d tasks in %v", limit, left, parts)
	}
	return nil
}

// Live is how many tasks wait or run, over all queues.
func (r *Run) Live(ctx context.Context) (int64, error) {
	raw, err := r.Raw()
	if err != nil {
		return 0, err
	}
	defer raw.Close()
	return members(ctx, raw, "due", "leased")
}

// members is how many members these sorted sets have, over all queues.
func members(ctx context.Context, raw redis.UniversalClient, parts ...string) (int64, error) {
	queues, err := queuesOf(ctx, raw)
	if err != nil {
		return 0, err
	}
	var total int64
	for _, queue := range queues {
		// A server takes what came together in one go, so no task that goes from one to the other is in neither. A transaction would be
		// refused by a full one.
		counts, err := raw.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, part := range parts {
				p.ZCard(ctx, key(queue, part))
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		for _, n := range counts {
			total += n.(*redis.IntCmd).Val()
		}
	}
	return total, nil
}

// stopAll has all processes that still run stop in order, and waits for them.
func (r *Run) stopAll(ctx context.Context) error {
	r.mu.Lock()
	processes := append([]*Process(nil), r.processes...)
	r.mu.Unlock()
	var running []*Process
	for _, p := range processes {
		select {
		case <-p.done:
		default:
			if err := p.Term(); err != nil {
				return err
			}
			running = append(running, p)
		}
	}
	for _, p := range running {
		if err := p.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
