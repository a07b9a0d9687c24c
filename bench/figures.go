package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

const (
	queue        = "bench"
	payloadBytes = 128
	callers      = 64
)

var payload = make([]byte, payloadBytes)

// enqueueMany stores tasks with EnqueueMany, 10,000 a call.
func enqueueMany(ctx context.Context, store *redisstore.Store, n int) (float64, error) {
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := fill(ctx, client, n); err != nil {
		return 0, err
	}
	elapsed := time.Since(begin)
	return float64(n) / elapsed.Seconds(), requireReady(ctx, client, n)
}

func fill(ctx context.Context, client *dispatch.Client, n int) error {
	return fillWith(ctx, client, n, dispatch.Task{Queue: queue, Kind: "noop", Payload: payload})
}

func fillURL(ctx context.Context, client *dispatch.Client, n int, url string) error {
	return fillWith(ctx, client, n, dispatch.Task{Queue: queue, URL: url, Payload: payload})
}

func fillWith(ctx context.Context, client *dispatch.Client, n int, task dispatch.Task) error {
	const call = 10_000
	tasks := slices.Repeat([]dispatch.Task{task}, call)
	for left := n; left > 0; left -= call {
		results, err := client.EnqueueMany(ctx, tasks[:min(left, call)])
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
		}
	}
	return nil
}

// enqueueSingle stores tasks with Enqueue from 64 goroutines.
func enqueueSingle(ctx context.Context, store *redisstore.Store, n int) (float64, error) {
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		return 0, err
	}
	var wait sync.WaitGroup
	var failed atomic.Int64
	begin := time.Now()
	for range callers {
		wait.Go(func() {
			for range n / callers {
				if _, err := client.Enqueue(ctx, dispatch.Task{Queue: queue, Kind: "noop", Payload: payload}); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	wait.Wait()
	elapsed := time.Since(begin)
	if failed.Load() > 0 {
		return 0, fmt.Errorf("%d calls failed", failed.Load())
	}
	n = n / callers * callers
	return float64(n) / elapsed.Seconds(), requireReady(ctx, client, n)
}

func requireReady(ctx context.Context, client *dispatch.Client, n int) error {
	counts, err := client.Counts(ctx, queue)
	if err == nil && counts.Ready != int64(n) {
		err = fmt.Errorf("%d tasks stored, want %d", counts.Ready, n)
	}
	return err
}

// processNoop handles tasks that wait already, from the start of the dispatcher to the last settlement.
func processNoop(ctx context.Context, store *redisstore.Store, n int) (float64, error) {
	var settled atomic.Int64
	all := make(chan struct{})
	d, err := dispatch.New(store, dispatch.Options{Observer: func(e dispatch.Event) {
		if e.Outcome == dispatch.Succeeded && settled.Add(1) == int64(n) {
			close(all)
		}
	}})
	if err != nil {
		return 0, err
	}
	var handled atomic.Int64
	d.Handle("noop", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error {
		handled.Add(1)
		return nil
	}))
	if err := fill(ctx, d.Client, n); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := d.Start(ctx); err != nil {
		return 0, err
	}
	defer d.Stop()
	select {
	case <-all:
	case <-ctx.Done():
		return 0, fmt.Errorf("%d of %d settled: %w", settled.Load(), n, ctx.Err())
	}
	elapsed := time.Since(begin)
	if handled.Load() != int64(n) {
		return 0, fmt.Errorf("%d tasks handled, want %d", handled.Load(), n)
	}
	counts, err := d.Counts(ctx, queue)
	if err == nil && counts.Ready+counts.Scheduled+counts.Running != 0 {
		err = fmt.Errorf("left over: %+v", counts)
	}
	return float64(n) / elapsed.Seconds(), err
}
