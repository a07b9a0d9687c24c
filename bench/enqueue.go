package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

// callers is how many goroutines enqueue one by one.
const callers = 64

// enqueueSingle stores tasks one by one from 64 goroutines.
func enqueueSingle(ctx context.Context, _ *env, store *redisstore.Store, n int) (float64, error) {
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := concurrently(ctx, callers, n, func(ctx context.Context, _ int) error {
		_, err := client.Enqueue(ctx, noop)
		return err
	}); err != nil {
		return 0, err
	}
	elapsed := time.Since(begin)
	return float64(n) / elapsed.Seconds(), requireReady(ctx, client, n)
}

// enqueueMany stores tasks with EnqueueMany, 10,000 a call.
func enqueueMany(ctx context.Context, _ *env, store *redisstore.Store, n int) (float64, error) {
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := fill(ctx, client, n, func(int) dispatch.Task { return noop }); err != nil {
		return 0, err
	}
	elapsed := time.Since(begin)
	return float64(n) / elapsed.Seconds(), requireReady(ctx, client, n)
}

// requireReady is nil if n tasks are due, and no others are there.
func requireReady(ctx context.Context, client *dispatch.Client, n int) error {
	c, err := client.Counts(ctx, queue)
	if err == nil && (c.Ready != int64(n) || c.Scheduled+c.Running != 0) {
		err = fmt.Errorf("%d tasks should be due: %+v", n, c)
	}
	return err
}

// concurrently calls do for 0 to n-1 from some goroutines, until one call fails.
func concurrently(ctx context.Context, goroutines, n int, do func(ctx context.Context, i int) error) error {
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range goroutines {
		group.Go(func() error {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := do(ctx, i); err != nil {
					return err
				}
			}
			return context.Cause(ctx)
		})
	}
	return group.Wait()
}
