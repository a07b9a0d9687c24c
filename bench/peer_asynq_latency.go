package main

import (
	"context"
	"strings"
	"time"

	"github.com/hibiken/asynq"
)

// asynqTuned is how often the server of asynq-best looks for tasks. The defaults are 1 s and, for scheduled tasks, 5 s;
// asynq's documentation warns of the load that small values put on Redis.
const asynqTuned = 10 * time.Millisecond

// asynqLatencyEntries are asynq with its defaults, and as asynq-best one that polls a hundred times as often.
func asynqLatencyEntries(figureName string) []entry {
	defaults := asynq.Config{Concurrency: 50}
	tuned := asynq.Config{Concurrency: 50, TaskCheckInterval: asynqTuned, DelayedTaskCheckInterval: asynqTuned}
	own, best := "checks every 1 s, its default", "checks every 10 ms"
	if strings.HasPrefix(figureName, "latency/late_") {
		const seconds = "; due at whole seconds, the finest it knows"
		own, best = "checks every 5 s, its default"+seconds, best+seconds
	}
	return append(
		latencyEntries(figureName, "asynq", own, asynqWays(defaults)),
		latencyEntries(figureName, "asynq-best", best, asynqWays(tuned))...)
}

func asynqWays(config asynq.Config) map[string]measureLatency {
	return map[string]measureLatency{
		"latency/idle_pickup": func(ctx context.Context, env *env, n int) (*histogram, error) {
			return asynqLatency(ctx, env, config, fewer(env, n, idlePeerMost), asynqSendIdle)
		},
		"latency/late": func(ctx context.Context, env *env, n int) (*histogram, error) {
			return asynqLatency(ctx, env, config, fewer(env, n, latePeerMost), asynqSendScheduled)
		},
	}
}

func asynqSendIdle(ctx context.Context, p *pickups, client *asynq.Client) error {
	return p.sendIdle(ctx, func(ctx context.Context, intended time.Time) error {
		_, err := client.EnqueueContext(ctx, asynq.NewTask("noop", stamped(intended)))
		return err
	})
}

// asynqSendScheduled rounds due times up: asynq cuts off fractions of a second, and would start the tasks early.
func asynqSendScheduled(ctx context.Context, p *pickups, client *asynq.Client) error {
	due := p.dueTimes()
	return concurrently(ctx, callers, p.n, func(ctx context.Context, i int) error {
		at := due[i].Truncate(time.Second).Add(time.Second)
		_, err := client.EnqueueContext(ctx, asynq.NewTask("noop", stamped(at)), asynq.ProcessAt(at))
		return err
	})
}

// asynqLatency runs a server while send sends n tasks, and returns what they waited.
func asynqLatency(ctx context.Context, env *env, config asynq.Config, n int,
	send func(context.Context, *pickups, *asynq.Client) error,
) (*histogram, error) {
	p := newPickups(n)
	stop, err := asynqServe(env, 1, config, asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		p.started(t.Payload())
		return nil
	}))
	defer stop()
	if err != nil {
		return nil, err
	}
	client := asynq.NewClient(asynqRedis(env))
	defer client.Close()
	if err := send(ctx, p, client); err != nil {
		return nil, err
	}
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	if err := asynqDone(ctx, env, n); err != nil {
		return nil, err
	}
	return p.histogram(ctx)
}
