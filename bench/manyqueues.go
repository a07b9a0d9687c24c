package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

const (
	// manySeconds is how long each of the queues has a task per second; quickSeconds in a quick run.
	manySeconds, quickSeconds = 20, 3
	// storingRate is how many tasks per second the preparation stores at the least.
	storingRate = 15_000
)

// manyQueues is what one dispatcher, in a process of its own, makes of many queues with one task per second each.
type manyQueues struct {
	lateP50, lateP99, lateMax float64 // ms
	rate                      float64 // tasks/s
	cores                     float64 // processor time of the process per time
}

// onManyQueues has n queues. Their tasks are stored before the first is due, each queue at a phase of its own.
func onManyQueues(ctx context.Context, e *env, store *redisstore.Store, n int) (manyQueues, error) {
	return oncePerRepeat(e, "scale/queues", func() (manyQueues, error) {
		seconds := manySeconds
		if e.quick {
			seconds = quickSeconds
		}
		fleet, err := startFleet(ctx, 1, childConfig{RedisURL: e.redisURL})
		if err != nil {
			return manyQueues{}, err
		}
		defer fleet.kill()
		first := time.Now().Add(time.Second + time.Duration(float64(n*seconds)/storingRate*float64(time.Second)))
		if err := storePhases(ctx, store, n, seconds, first); err != nil {
			return manyQueues{}, err
		}
		if err := fleet.start(); err != nil {
			return manyQueues{}, err
		}
		if time.Until(first) < time.Second/2 {
			return manyQueues{}, fmt.Errorf("the tasks of %d queues were not stored in time", n)
		}
		m, err := watchPhases(ctx, fleet[0], first, seconds, n)
		if err == nil {
			e.note("scale/queues_10k", "lateness of the last repeat, in ms: p50 %.2f, p99 %.2f, max %.2f", m.lateP50, m.lateP99, m.lateMax)
		}
		return m, err
	})
}

// storePhases stores the tasks of each queue in one call to the store.
func storePhases(ctx context.Context, store *redisstore.Store, n, seconds int, first time.Time) error {
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		return err
	}
	var phase time.Duration
	return fill(ctx, client, n*seconds, func(i int) dispatch.Task {
		if i%seconds == 0 {
			phase = rand.N(time.Second)
		}
		due := first.Add(phase + time.Duration(i%seconds)*time.Second)
		return dispatch.Task{
			Queue: fmt.Sprintf("many-%05d", i/seconds), Kind: noop.Kind, Payload: stamped(due), ScheduleTime: due,
		}
	})
}

// watchPhases takes the process's time while tasks are due, and waits until all are settled.
func watchPhases(ctx context.Context, process *member, first time.Time, seconds, n int) (m manyQueues, err error) {
	if !sleepUntil(ctx, first) {
		return m, context.Cause(ctx)
	}
	begin := time.Now()
	before, err := process.report()
	if err != nil {
		return m, err
	}
	if !sleepUntil(ctx, first.Add(time.Duration(seconds)*time.Second)) {
		return m, context.Cause(ctx)
	}
	after, err := process.report()
	if err != nil {
		return m, err
	}
	m.cores = (after.CPU - before.CPU).Seconds() / time.Since(begin).Seconds()
	total := int64(n * seconds)
	for after.Settled < total {
		if !sleepUntil(ctx, time.Now().Add(fleetPoll)) {
			return m, fmt.Errorf("%d of %d tasks are settled: %w", after.Settled, total, context.Cause(ctx))
		}
		if after, err = process.report(); err != nil {
			return m, err
		}
	}
	if after, err = process.stop(); err != nil {
		return m, err
	}
	if after.Handled != total || after.Settled != total || after.Early > 0 {
		return m, fmt.Errorf("%d tasks were handled by %d calls and settled %d times, %d started early",
			total, after.Handled, after.Settled, after.Early)
	}
	m.rate = float64(total) / after.Last.Sub(first).Seconds()
	m.lateP50, m.lateP99, m.lateMax = after.LateP50, after.LateP99, after.LateMax
	return m, nil
}

// manyQueuesFigure is one number of them.
func manyQueuesFigure(pick func(manyQueues) float64) func(context.Context, *env, *redisstore.Store, int) (float64, error) {
	return func(ctx context.Context, e *env, store *redisstore.Store, n int) (float64, error) {
		m, err := onManyQueues(ctx, e, store, n)
		return pick(m), err
	}
}
