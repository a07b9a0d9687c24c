package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

// fleetPoll is how often a fleet is asked whether it is done. The time that counts is told by the processes.
const fleetPoll = 20 * time.Millisecond

// processFleet is how fast some processes together work off a backlog, with a handler that sleeps.
func processFleet(processes, places int, sleep time.Duration) func(context.Context, *env, *redisstore.Store, int) (float64, error) {
	return func(ctx context.Context, e *env, store *redisstore.Store, n int) (float64, error) {
		client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
		if err != nil {
			return 0, err
		}
		if err := fill(ctx, client, n, func(int) dispatch.Task { return noop }); err != nil {
			return 0, err
		}
		fleet, err := startFleet(ctx, processes, childConfig{
			RedisURL: e.redisURL, Queues: []string{queue}, Places: places, Sleep: sleep, Elect: true,
		})
		if err != nil {
			return 0, err
		}
		defer fleet.kill()
		begin := time.Now()
		if err := fleet.start(); err != nil {
			return 0, err
		}
		if err := awaitSucceeded(ctx, client, n); err != nil {
			return 0, err
		}
		reports, err := fleet.stop()
		if err != nil {
			return 0, err
		}
		var handled, settled int64
		last := begin
		for _, r := range reports {
			handled, settled = handled+r.Handled, settled+r.Settled
			if r.Last.After(last) {
				last = r.Last
			}
		}
		if handled != int64(n) || settled != int64(n) {
			return 0, fmt.Errorf("%d tasks were handled by %d calls and settled %d times", n, handled, settled)
		}
		return float64(n) / last.Sub(begin).Seconds(), requireDone(ctx, client, []string{queue}, n)
	}
}

// awaitSucceeded waits until the store has n successes, and a moment longer, in which observers are told.
func awaitSucceeded(ctx context.Context, client *dispatch.Client, n int) error {
	for {
		c, err := client.Counts(ctx, queue)
		if err != nil {
			return err
		}
		if !sleepUntil(ctx, time.Now().Add(fleetPoll)) {
			return fmt.Errorf("%d of %d tasks have succeeded: %w", c.TotalSucceeded, n, context.Cause(ctx))
		}
		if c.TotalSucceeded >= int64(n) {
			return nil
		}
	}
}

// fleet is some processes with a dispatcher each.
type fleet []*member

func startFleet(ctx context.Context, processes int, config childConfig) (fleet, error) {
	var f fleet
	for range processes {
		c, err := startMember(ctx, config)
		if err != nil {
			f.kill()
			return nil, err
		}
		f = append(f, c)
	}
	return f, nil
}

func (f fleet) start() error {
	for _, c := range f {
		if err := c.start(); err != nil {
			return err
		}
	}
	return nil
}

func (f fleet) stop() ([]childReport, error) {
	var reports []childReport
	for _, c := range f {
		r, err := c.stop()
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}

func (f fleet) kill() {
	for _, c := range f {
		c.kill()
	}
}
