package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

// queue is where tasks wait unless a figure needs several queues.
const queue = "bench"

// backlog is tasks that wait already, and how one dispatcher works them off.
type backlog struct {
	n       int
	queues  []string       // empty means queue alone
	task    dispatch.Task  // empty means a no-op with the common payload
	queue   dispatch.Queue // settings of each queue
	named   bool           // each task gets a name of its own
	options dispatch.Options
	handle  func(context.Context) // nil does nothing
}

// worked is what it took, from the start of the dispatcher to the last settlement.
type worked struct {
	n        int
	elapsed  time.Duration
	redisCPU time.Duration
	mallocs  uint64 // of this process, on its heap
}

func (w worked) perSecond() float64 { return float64(w.n) / w.elapsed.Seconds() }

func (w worked) redisMicros() float64 { return float64(w.redisCPU.Nanoseconds()) / 1000 / float64(w.n) }

// work fills the queues and works them off. Afterwards each task was handled exactly once: all of them have succeeded,
// and there were no more calls of the handler than tasks. servers are those whose processor time counts.
func (b backlog) work(ctx context.Context, store *redisstore.Store, servers ...*redis.Client) (worked, error) {
	if len(b.queues) == 0 {
		b.queues = []string{queue}
	}
	if b.task.Kind == "" && b.task.URL == "" {
		b.task = noop
	}
	var settled, handled atomic.Int64
	all := make(chan struct{})
	b.options.Observer = func(e dispatch.Event) {
		if e.Outcome == dispatch.Succeeded && settled.Add(1) == int64(b.n) {
			close(all)
		}
	}
	d, err := dispatch.New(store, b.options)
	if err != nil {
		return worked{}, err
	}
	d.Handle(noop.Kind, dispatch.HandlerFunc(func(ctx context.Context, _ *dispatch.Task) error {
		handled.Add(1)
		if b.handle != nil {
			b.handle(ctx)
		}
		return nil
	}))
	if err := b.fill(ctx, d.Client); err != nil {
		return worked{}, err
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, err := redisCPU(ctx, servers...)
	if err != nil {
		return worked{}, err
	}
	begin := time.Now()
	if err := d.Start(ctx); err != nil {
		return worked{}, err
	}
	defer d.Stop()
	select {
	case <-all:
	case <-ctx.Done():
		return worked{}, fmt.Errorf("%d of %d tasks are settled: %w", settled.Load(), b.n, ctx.Err())
	}
	w := worked{n: b.n, elapsed: time.Since(begin)}
	runtime.ReadMemStats(&after)
	w.mallocs = after.Mallocs - before.Mallocs
	cpuAfter, err := redisCPU(ctx, servers...)
	if err != nil {
		return worked{}, err
	}
	w.redisCPU = cpuAfter - cpu
	if err := d.Stop(); err != nil {
		return worked{}, err
	}
	if calls := handled.Load(); b.task.Kind == noop.Kind && calls != int64(b.n) {
		return worked{}, fmt.Errorf("%d tasks were handled by %d calls", b.n, calls)
	}
	return w, requireDone(ctx, d.Client, b.queues, b.n)
}

// fill stores the tasks, in turn over the queues.
func (b backlog) fill(ctx context.Context, client *dispatch.Client) error {
	for _, name := range b.queues {
		b.queue.Name = name
		if _, err := client.EnsureQueue(ctx, b.queue); err != nil {
			return err
		}
	}
	return fill(ctx, client, b.n, func(i int) dispatch.Task {
		t := b.task
		t.Queue = b.queues[i%len(b.queues)]
		if b.named {
			t.ID = dispatch.TaskID(fmt.Sprintf("task-%015d", i)) // as long as an ID that is generated
		}
		return t
	})
}

// noop is the task that costs its contestant nothing but itself.
var noop = dispatch.Task{Queue: queue, Kind: "noop", Payload: payload}

// bulkCall is how many tasks one call of EnqueueMany stores.
const bulkCall = 10_000

// fill stores n tasks with EnqueueMany.
func fill(ctx context.Context, client *dispatch.Client, n int, task func(i int) dispatch.Task) error {
	tasks := make([]dispatch.Task, 0, min(n, bulkCall))
	for i := range n {
		if tasks = append(tasks, task(i)); len(tasks) < bulkCall && i < n-1 {
			continue
		}
		results, err := client.EnqueueMany(ctx, tasks)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(results, func(r dispatch.Result) bool { return r.Err != nil }); i >= 0 {
			return results[i].Err
		}
		tasks = tasks[:0]
	}
	return nil
}

// requireDone is nil if the queues have ended n tasks with success, and have nothing else.
func requireDone(ctx context.Context, client *dispatch.Client, queues []string, n int) error {
	var succeeded int64
	for _, name := range queues {
		c, err := client.Counts(ctx, name)
		if err != nil {
			return err
		}
		if c.Ready+c.Scheduled+c.Running+c.Dead+c.Cancelled != 0 || c.TotalRetried+c.TotalDead != 0 {
			return fmt.Errorf("queue %s is not done: %+v", name, c)
		}
		succeeded += c.TotalSucceeded
	}
	if succeeded != int64(n) {
		return fmt.Errorf("%d tasks have succeeded, want %d", succeeded, n)
	}
	return nil
}

// onStore gives an entry a store of its own.
func onStore(run func(ctx context.Context, e *env, store *redisstore.Store, n int) (float64, error)) func(context.Context, *env, int) (float64, error) {
	return func(ctx context.Context, e *env, n int) (_ float64, err error) {
		store, err := redisstore.Open(ctx, e.redisURL, redisstore.Options{})
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		return run(ctx, e, store, n)
	}
}
