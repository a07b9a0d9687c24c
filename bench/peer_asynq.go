package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

const (
	asynqQueue = "default"
	asynqMost  = 40_000 // tasks of a run
	// asynqPoll is how often it is asked whether the last acknowledgement has arrived, once all handlers have returned.
	asynqPoll = time.Millisecond
)

func init() { peers = append(peers, asynqEntries) }

// asynqEntries are asynq's ways of getting a figure. asynq is one server, asynq-best four of them in one process, which
// take tasks side by side: one server takes them one by one. It has no call that enqueues many.
func asynqEntries(figureName string) []entry {
	switch figureName {
	case "enqueue/single64":
		return []entry{{"asynq", "Enqueue from 64 goroutines", asynqEnqueue}}
	case "process/noop":
		return asynqNoopEntries()
	case "memory/pending":
		return []entry{{"asynq", "payload included", asynqMemory(0)}}
	case "memory/scheduled":
		return []entry{{"asynq", "payload included", asynqMemory(24 * time.Hour)}}
	}
	return asynqLatencyEntries(figureName)
}

func asynqNoopEntries() []entry {
	var entries []entry
	for _, c := range []struct {
		peer    string
		servers int
		how     string
	}{{"asynq", 1, "1 server"}, {"asynq-best", 4, "4 servers"}} {
		for _, concurrency := range []int{10, 50, 200} {
			how := fmt.Sprintf("%s, concurrency %d", c.how, concurrency)
			entries = append(entries, entry{c.peer, how, func(ctx context.Context, env *env, n int) (float64, error) {
				return asynqNoop(ctx, env, fewer(env, n, asynqMost), c.servers, concurrency)
			}})
		}
	}
	return entries
}

// asynqEnqueue stores n tasks with Enqueue from 64 goroutines.
func asynqEnqueue(ctx context.Context, env *env, n int) (float64, error) {
	begin := time.Now()
	if err := asynqFill(ctx, env, n); err != nil {
		return 0, err
	}
	elapsed := time.Since(begin)
	return float64(n) / elapsed.Seconds(), asynqRequire(env, func(q *asynq.QueueInfo) bool { return q.Pending == n })
}

// asynqFill enqueues n tasks as fast as asynq can.
func asynqFill(ctx context.Context, env *env, n int, options ...asynq.Option) error {
	client := asynq.NewClient(asynqRedis(env))
	defer client.Close()
	task := asynq.NewTask("noop", payload)
	return concurrently(ctx, callers, n, func(ctx context.Context, _ int) error {
		_, err := client.EnqueueContext(ctx, task, options...)
		return err
	})
}

// asynqNoop is how many waiting tasks a second the servers handle, from their start to the last acknowledgement.
func asynqNoop(ctx context.Context, env *env, n, servers, concurrency int) (float64, error) {
	if err := asynqFill(ctx, env, n); err != nil {
		return 0, err
	}
	handled := newCountdown(n)
	handler := asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		handled.add()
		return nil
	})
	begin := time.Now()
	stop, err := asynqServe(env, servers, asynq.Config{Concurrency: concurrency}, handler)
	defer stop()
	if err != nil {
		return 0, err
	}
	if err := handled.wait(ctx); err != nil {
		return 0, err
	}
	if err := asynqDone(ctx, env, n); err != nil {
		return 0, err
	}
	elapsed := time.Since(begin)
	return float64(n) / elapsed.Seconds(), handled.exact()
}

// asynqDone returns when asynq itself counts n tasks as processed, none as failed, and holds no more.
func asynqDone(ctx context.Context, env *env, n int) error {
	for {
		err := asynqRequire(env, func(q *asynq.QueueInfo) bool {
			return q.Size == 0 && q.ProcessedTotal == n && q.FailedTotal == 0
		})
		if err == nil {
			return nil
		}
		select {
		case <-time.After(asynqPoll):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// asynqRequire asks asynq for the state of its queue.
func asynqRequire(env *env, holds func(*asynq.QueueInfo) bool) error {
	inspector := asynq.NewInspectorFromRedisClient(env.redis())
	info, err := inspector.GetQueueInfo(asynqQueue)
	if err == nil && !holds(info) {
		err = fmt.Errorf("unexpected state of the queue: %+v", *info)
	}
	return err
}

// asynqServe starts servers of one configuration, each with its own connections. stop is never nil.
func asynqServe(env *env, servers int, config asynq.Config, handler asynq.Handler) (stop func(), err error) {
	config.Logger = silent{}
	var running []*asynq.Server
	stop = func() {
		var wait sync.WaitGroup
		for _, s := range running {
			wait.Go(s.Shutdown)
		}
		wait.Wait()
	}
	for range servers {
		s := asynq.NewServer(asynqRedis(env), config)
		if err := s.Start(handler); err != nil {
			return stop, err
		}
		running = append(running, s)
	}
	return stop, nil
}

// asynqRedis says how to reach the server. The pool has its default size: neither a smaller nor a larger one is faster.
func asynqRedis(env *env) asynq.RedisClientOpt {
	o := env.redis().Options()
	return asynq.RedisClientOpt{
		Network: o.Network, Addr: o.Addr, Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig,
	}
}

// asynqMemory is what a task that waits takes in Redis.
func asynqMemory(delay time.Duration) func(context.Context, *env, int) (float64, error) {
	return func(ctx context.Context, env *env, n int) (float64, error) {
		return peerMemory(ctx, env, n, func() error { return asynqFill(ctx, env, n, asynq.ProcessIn(delay)) })
	}
}

// silent is a logger for peers: theirs would write lines into the table.
type silent struct{}

func (silent) Debug(...any) {}
func (silent) Info(...any)  {}
func (silent) Warn(...any)  {}
func (silent) Error(...any) {}
func (silent) Fatal(...any) {}
