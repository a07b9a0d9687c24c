package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

const (
	idleRate = 50  // tasks per second of a queue that is idle in between
	lateRate = 200 // scheduled tasks per second
	// lateLead is how long before the first of them is due they are stored.
	lateLead = time.Second
	// sleepers send tasks of which one at a time is under way, loaders those of which many are.
	sleepers, loaders = 4, 64
)

// measureLatency is a way to get all percentiles of one latency.
type measureLatency func(ctx context.Context, e *env, n int) (*histogram, error)

// percentileOf is one of them; the others of the same repeat come from the same run.
func percentileOf(name string, percentile float64, measure measureLatency) func(context.Context, *env, int) (float64, error) {
	return func(ctx context.Context, e *env, n int) (float64, error) {
		waits, err := oncePerRepeat(e, name, func() (*histogram, error) {
			waits, err := measure(ctx, e, n)
			if err == nil {
				e.curve(name, waits)
			}
			return waits, err
		})
		if err != nil {
			return 0, err
		}
		return waits.ms(percentile), nil
	}
}

// watch is a dispatcher whose handler takes the time since the instant in each payload, and the client that sends them:
// one on connections of its own, as another process has.
type watch struct {
	n              int
	handled, early atomic.Int64
	waits          *histogram
	all            chan struct{}
	dispatcher     *dispatch.Dispatcher
	client         *dispatch.Client
	stores         []*redisstore.Store
}

func newWatch(ctx context.Context, e *env, n int, options dispatch.Options) (_ *watch, err error) {
	w := &watch{n: n, waits: newHistogram(), all: make(chan struct{})}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	for range 2 {
		store, err := redisstore.Open(ctx, e.redisURL, redisstore.Options{})
		if err != nil {
			return nil, err
		}
		w.stores = append(w.stores, store)
	}
	if w.client, err = dispatch.NewClient(w.stores[0], dispatch.ClientOptions{}); err != nil {
		return nil, err
	}
	if w.dispatcher, err = dispatch.New(w.stores[1], options); err != nil {
		return nil, err
	}
	w.dispatcher.Handle(noop.Kind, dispatch.HandlerFunc(w.handle))
	return w, nil
}

func (w *watch) handle(_ context.Context, t *dispatch.Task) error {
	now := time.Now()
	at, err := stampOf(t.Payload)
	if err != nil {
		return dispatch.SkipRetry(err)
	}
	if now.Before(at) {
		w.early.Add(1)
	}
	w.waits.record(now.Sub(at))
	if w.handled.Add(1) == int64(w.n) {
		close(w.all)
	}
	return nil
}

// send enqueues a task that carries the instant.
func (w *watch) send(ctx context.Context, at time.Time) error {
	_, err := w.client.Enqueue(ctx, dispatch.Task{Queue: queue, Kind: noop.Kind, Payload: stamped(at)})
	return err
}

// await waits until all tasks have started.
func (w *watch) await(ctx context.Context) error {
	select {
	case <-w.all:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d of %d tasks were started: %w", w.handled.Load(), w.n, ctx.Err())
	}
}

// finish waits for all tasks, stops the dispatcher, and requires that each was handled once and none early.
func (w *watch) finish(ctx context.Context) (*histogram, error) {
	if err := w.await(ctx); err != nil {
		return nil, err
	}
	if err := w.dispatcher.Stop(); err != nil {
		return nil, err
	}
	if calls := w.handled.Load(); calls != int64(w.n) {
		return nil, fmt.Errorf("%d tasks were handled by %d calls", w.n, calls)
	}
	if early := w.early.Load(); early > 0 {
		return nil, fmt.Errorf("%d of %d tasks started early", early, w.n)
	}
	return w.waits, requireDone(ctx, w.client, []string{queue}, w.n)
}

func (w *watch) close() error {
	var errs []error
	if w.dispatcher != nil {
		errs = append(errs, w.dispatcher.Stop())
	}
	for _, store := range w.stores {
		errs = append(errs, store.Close())
	}
	return errors.Join(errs...)
}

// idlePickup is how long a task waits for its start in a process that has nothing else to do.
func idlePickup(ctx context.Context, e *env, n int) (*histogram, error) {
	w, err := newWatch(ctx, e, n, dispatch.Options{})
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := w.dispatcher.Start(ctx); err != nil {
		return nil, err
	}
	err = openLoop(ctx, poisson(n, idleRate, rand.Uint64()), sleepers, func(ctx context.Context, _ int, intended time.Time) error {
		return w.send(ctx, intended)
	})
	if err != nil {
		return nil, err
	}
	return w.finish(ctx)
}

// lateness is how long after their times scheduled tasks start.
func lateness(ctx context.Context, e *env, n int) (*histogram, error) {
	w, err := newWatch(ctx, e, n, dispatch.Options{})
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := w.dispatcher.Start(ctx); err != nil {
		return nil, err
	}
	first, at := time.Now().Add(lateLead), poisson(n, lateRate, rand.Uint64())
	if err := fill(ctx, w.client, n, func(i int) dispatch.Task {
		due := first.Add(at[i])
		return dispatch.Task{Queue: queue, Kind: noop.Kind, Payload: stamped(due), ScheduleTime: due}
	}); err != nil {
		return nil, err
	}
	if time.Now().After(first) {
		return nil, fmt.Errorf("the tasks were stored after the first was due")
	}
	return w.finish(ctx)
}
