package main

import (
	"context"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

// noopRun works off n no-op tasks with the default options. Three figures come from it, so they belong together.
func noopRun(ctx context.Context, e *env, store *redisstore.Store, n int) (worked, error) {
	return oncePerRepeat(e, "process/noop", func() (worked, error) {
		return backlog{n: n, options: placesFor(manyPlaces)}.work(ctx, store, e.redis())
	})
}

func processNoop(ctx context.Context, e *env, store *redisstore.Store, n int) (float64, error) {
	w, err := noopRun(ctx, e, store, n)
	return w.perSecond(), err
}

func redisPerTask(ctx context.Context, e *env, store *redisstore.Store, n int) (float64, error) {
	w, err := noopRun(ctx, e, store, n)
	return w.redisMicros(), err
}

func allocsPerTask(ctx context.Context, e *env, store *redisstore.Store, n int) (float64, error) {
	w, err := noopRun(ctx, e, store, n)
	return float64(w.mallocs) / float64(n), err
}

// processWith is how fast one dispatcher with other settings works off no-op tasks.
func processWith(settings backlog) func(context.Context, *env, *redisstore.Store, int) (float64, error) {
	return func(ctx context.Context, _ *env, store *redisstore.Store, n int) (float64, error) {
		settings.n = n
		w, err := settings.work(ctx, store)
		return w.perSecond(), err
	}
}

// placesFor are the options of a process that gives all its places to the one queue it serves.
func placesFor(places int) dispatch.Options {
	return dispatch.Options{GlobalConcurrency: places, Queues: []string{queue}}
}
