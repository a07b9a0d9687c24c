package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

// idleProcesses is how many processes an idle fleet has.
const idleProcesses = 2

// settlingTime is how long they run before they are measured: a new leader looks around for half a minute. A quick run is
// not as patient.
const settlingTime = 32 * time.Second

// idleCommands is how many commands per second and process an idle fleet sends to Redis, while so many empty queues exist. n
// is the seconds that are counted.
func idleCommands(queues int) func(context.Context, *env, *redisstore.Store, int) (float64, error) {
	return func(ctx context.Context, e *env, store *redisstore.Store, n int) (float64, error) {
		if e.quick {
			queues = min(queues, 1000)
		}
		client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
		if err != nil {
			return 0, err
		}
		if err := concurrently(ctx, callers, queues, func(ctx context.Context, i int) error {
			_, err := client.EnsureQueue(ctx, dispatch.Queue{Name: fmt.Sprintf("idle-%05d", i)})
			return err
		}); err != nil {
			return 0, err
		}
		fleet, err := startFleet(ctx, idleProcesses, childConfig{RedisURL: e.redisURL, Elect: true})
		if err != nil {
			return 0, err
		}
		defer fleet.kill()
		if err := fleet.start(); err != nil {
			return 0, err
		}
		window := time.Duration(n) * time.Second
		if !sleepUntil(ctx, time.Now().Add(min(window/2, settlingTime))) { // until one leads and all have looked around
			return 0, context.Cause(ctx)
		}
		before, err := readCommandStats(ctx, e.redis())
		if err != nil {
			return 0, err
		}
		sent, err := startMonitor(ctx, e.redis())
		if err != nil {
			return 0, err
		}
		begin := time.Now()
		rested := sleepUntil(ctx, begin.Add(window))
		count := sent.stop()
		if !rested {
			return 0, context.Cause(ctx)
		}
		after, err := readCommandStats(ctx, e.redis())
		if err != nil {
			return 0, err
		}
		per := time.Since(begin).Seconds() * idleProcesses
		idle := after.since(before)
		e.note(fmt.Sprintf("idle, %d queues", queues), "executed per second and process in the last repeat, those inside scripts included: %s", idle.per(per))
		if _, err := fleet.stop(); err != nil {
			return 0, err
		}
		return float64(count) / per, nil
	}
}
