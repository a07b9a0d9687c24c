package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
)

// noisy is the tenant that has far more to do than anybody else. The others are quiet.
const noisy = "tenant-0000"

func name(tenant int) string { return fmt.Sprintf("tenant-%04d", tenant) }

// tenants are n queues.
type tenants struct {
	client *dispatch.Client
	n      int
}

// signUp makes a queue for each tenant, with what its contract says. Some have none: their first task makes the queue.
func (ts tenants) signUp(ctx context.Context) error {
	for i := range ts.n {
		q := dispatch.Queue{Name: name(i)}
		switch i % 3 {
		case 0:
			q.MaxConcurrent = contract
		case 1:
			q.Rate = 50 // per second
		case 2:
			continue
		}
		if _, err := ts.client.EnsureQueue(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// setLimit changes how many tasks of a tenant may run at once; 0 is no limit.
func (ts tenants) setLimit(ctx context.Context, tenant string, limit int) error {
	return ts.client.UpdateQueue(ctx, tenant, func(q *dispatch.Queue) error {
		q.MaxConcurrent = limit
		return nil
	})
}

// sendQuiet sends a task for each quiet tenant, one after the other.
func (ts tenants) sendQuiet(ctx context.Context) error {
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for i := 1; i < ts.n; i++ {
		if _, err := receive(ctx, pace.C); err != nil {
			return err
		}
		task, err := dispatch.NewTask(quickJob, time.Now())
		if err != nil {
			return err
		}
		task.Queue = name(i)
		if _, err := ts.client.Enqueue(ctx, task); err != nil {
			return err
		}
	}
	return nil
}

// makeNoise gives the noisy tenant its slow tasks, and returns when the first of them runs.
func (ts tenants) makeNoise(ctx context.Context, w *worker) error {
	begun := w.expectNoise()
	tasks := make([]dispatch.Task, backlog)
	for i := range tasks {
		tasks[i] = dispatch.Task{Queue: noisy, Kind: slowJob}
	}
	results, err := ts.client.EnqueueMany(ctx, tasks)
	if err != nil {
		return err
	}
	for _, result := range results {
		if result.Err != nil {
			return result.Err
		}
	}
	_, err = receive(ctx, begun)
	return err
}

// endNoise drops what the noisy tenant has left to do, and returns when nothing of it runs. It fails if nothing was left.
func (ts tenants) endNoise(ctx context.Context) error {
	counts, err := ts.client.Counts(ctx, noisy)
	if err != nil {
		return err
	}
	if counts.Ready == 0 {
		return fmt.Errorf("%s was silent too early", noisy)
	}
	if err := ts.client.PurgeQueue(ctx, noisy); err != nil {
		return err
	}
	if err := ts.client.DrainQueue(ctx, noisy); err != nil {
		return err
	}
	return ts.client.ResumeQueue(ctx, noisy)
}
