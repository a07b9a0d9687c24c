package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

// scheduledLead is how long before they are due the tasks of memory/scheduled are stored; quickLead in a quick run.
const scheduledLead, quickLead = 4 * time.Second, time.Second

// memoryPending is the memory of a task that is due, its payload included.
func memoryPending(ctx context.Context, e *env, n int) (float64, error) {
	return storedMemory(ctx, e, n, time.Time{})
}

// memoryScheduled is the memory of a task that is due later.
func memoryScheduled(ctx context.Context, e *env, n int) (float64, error) {
	lead := scheduledLead
	if e.quick {
		lead = quickLead
	}
	return storedMemory(ctx, e, n, time.Now().Add(lead))
}

// storedMemory stores tasks, takes their memory, has them processed, and requires that nothing is left of them. With a
// due time they are due in the second after it.
func storedMemory(ctx context.Context, e *env, n int, due time.Time) (float64, error) {
	before, err := memoryInUse(ctx, e, 0)
	if err != nil {
		return 0, err
	}
	clients := before.clients
	if err := withClient(ctx, e, func(client *dispatch.Client) error {
		if err := fill(ctx, client, n, func(int) dispatch.Task {
			t := noop
			if !due.IsZero() {
				t.ScheduleTime = due.Add(rand.N(time.Second))
			}
			return t
		}); err != nil {
			return err
		}
		c, err := client.Counts(ctx, queue)
		if err == nil && (due.IsZero() && c.Ready != int64(n) || !due.IsZero() && c.Scheduled != int64(n)) {
			err = fmt.Errorf("not all of %d tasks wait as they should: %+v", n, c)
		}
		return err
	}); err != nil {
		return 0, err
	}
	after, err := memoryInUse(ctx, e, clients)
	if err != nil {
		return 0, err
	}
	if err := workOff(ctx, e, n, dispatch.Options{}); err != nil {
		return 0, err
	}
	return (after.bytes - before.bytes) / float64(n), requireNothingLeft(ctx, e)
}

// memoryRetained is the memory of a task that has succeeded and is retained.
func memoryRetained(ctx context.Context, e *env, n int) (float64, error) {
	before, err := memoryInUse(ctx, e, 0)
	if err != nil {
		return 0, err
	}
	if err := withClient(ctx, e, func(client *dispatch.Client) error {
		return fill(ctx, client, n, func(int) dispatch.Task { return noop })
	}); err != nil {
		return 0, err
	}
	if err := workOff(ctx, e, n, dispatch.Options{RetentionSucceeded: time.Hour}); err != nil {
		return 0, err
	}
	after, err := memoryInUse(ctx, e, before.clients)
	return (after.bytes - before.bytes) / float64(n), err
}

func withClient(ctx context.Context, e *env, do func(*dispatch.Client) error) error {
	store, err := redisstore.Open(ctx, e.redisURL, redisstore.Options{})
	if err != nil {
		return err
	}
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err == nil {
		err = do(client)
	}
	return errors.Join(err, store.Close())
}

// workOff runs a dispatcher until n tasks have succeeded.
func workOff(ctx context.Context, e *env, n int, options dispatch.Options) (err error) {
	store, err := redisstore.Open(ctx, e.redisURL, redisstore.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	d, err := dispatch.New(store, options)
	if err != nil {
		return err
	}
	d.Handle(noop.Kind, dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { return nil }))
	if err := d.Start(ctx); err != nil {
		return err
	}
	err = awaitSucceeded(ctx, d.Client, n)
	if err := errors.Join(err, d.Stop()); err != nil {
		return err
	}
	return requireDone(ctx, d.Client, []string{queue}, n)
}

// memoryUse is a server's memory, and the number of clients among whose buffers it is.
type memoryUse struct{ bytes, clients float64 }

// memoryInUse waits until no more than so many clients are connected, for the buffers of those that have just left are
// no task's; 0 waits for nothing.
func memoryInUse(ctx context.Context, e *env, clients float64) (m memoryUse, err error) {
	for {
		if m.clients, err = infoNumber(ctx, e.redis(), "clients", "connected_clients"); err != nil {
			return m, err
		}
		if clients == 0 || m.clients <= clients {
			m.bytes, err = infoNumber(ctx, e.redis(), "memory", "used_memory")
			return m, err
		}
		if !sleepUntil(ctx, time.Now().Add(fleetPoll)) {
			return m, context.Cause(ctx)
		}
	}
}

// requireNothingLeft is nil if the store holds nothing but the settings of queues, what is the fleet's, and keys that
// soon expire by themselves.
func requireNothingLeft(ctx context.Context, e *env) error {
	keys := e.redis().Scan(ctx, 0, "*", 1000).Iterator()
	for keys.Next(ctx) {
		key := keys.Val()
		if strings.Contains(key, ":{~}:") || strings.HasSuffix(key, "}:meta") {
			continue
		}
		ttl, err := e.redis().PTTL(ctx, key).Result()
		if err != nil {
			return err
		}
		if ttl == -1 {
			return fmt.Errorf("key %s is left, and does not expire", key)
		}
	}
	return keys.Err()
}
