package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

// counting registers a handler of "k" that succeeds at once.
func (e *env) counting() {
	e.handle("k", func(context.Context, *dispatch.Task) error { return nil })
}

// fill enqueues n tasks of kind "k".
func (e *env) fill(queue string, n int) {
	e.Helper()
	tasks := make([]dispatch.Task, n)
	for i := range tasks {
		tasks[i] = dispatch.Task{Kind: "k", Queue: queue}
	}
	results, err := e.d.EnqueueMany(e.Context(), tasks)
	e.ok(err)
	for _, r := range results {
		e.ok(r.Err)
	}
}

func (e *env) succeeded(want int) {
	e.Helper()
	if got := e.seen.count(dispatch.Succeeded); got != want {
		e.Fatalf("%d tasks have run, want %d", got, want)
	}
}

func TestPauseAndResume(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.counting()
	_, err := e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q"})
	e.ok(err)
	e.ok(e.d.PauseQueue(t.Context(), "q"))
	e.ok(e.d.PauseQueue(t.Context(), "q"))
	e.fill("q", 3)
	e.run()
	e.advance(10 * time.Second)
	e.advance(time.Hour)
	e.succeeded(0)
	if q, err := e.d.Queue(t.Context(), "q"); err != nil || !q.Paused {
		t.Errorf("Queue: %+v, %v", q, err)
	}
	e.ok(e.d.ResumeQueue(t.Context(), "q"))
	e.ok(e.d.ResumeQueue(t.Context(), "q"))
	e.run() // at once, not when the process would have looked again
	e.succeeded(3)
	e.fails(e.d.PauseQueue(t.Context(), "none"), dispatch.ErrQueueNotFound)
	e.fails(e.d.ResumeQueue(t.Context(), "none"), dispatch.ErrQueueNotFound)
}

// A retry that falls due in a paused queue waits; the attempt that runs while the queue is paused is settled.
func TestPauseDuringAnAttempt(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.handle("k", func(ctx context.Context, task *dispatch.Task) error {
		if a, _ := dispatch.AttemptFrom(ctx); a.Number > 1 {
			return nil
		}
		if err := e.d.PauseQueue(ctx, task.Queue); err != nil {
			t.Error(err)
		}
		return errTest
	})
	id := e.enqueue(dispatch.Task{Kind: "k"})
	e.run()
	e.advance(time.Minute)
	if e.seen.of(id) != "retry" {
		t.Errorf("outcomes %q", e.seen.of(id))
	}
	e.ok(e.d.ResumeQueue(t.Context(), dispatch.DefaultQueue))
	e.run()
	if e.seen.of(id) != "retry succeeded" {
		t.Errorf("outcomes %q after the queue was resumed", e.seen.of(id))
	}
}

func TestRateLimitIsExact(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.counting()
	_, err := e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Rate: 10, Burst: 5})
	e.ok(err)
	e.fill("q", 40)
	e.run()
	e.succeeded(5)
	for i := 1; i <= 10; i++ {
		e.advance(99 * time.Millisecond)
		e.succeeded(5 + i - 1)
		e.advance(time.Millisecond)
		e.succeeded(5 + i)
	}
	e.advance(time.Second / 2) // as many as have gathered: 5
	e.succeeded(20)
	e.advance(time.Hour) // and no more than the burst
	e.succeeded(25)
	e.check("q")
}

// The rate is the queue's, however many processes there are.
func TestRateLimitOverTwoProcesses(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.counting()
	other := another(t, e.store, dispatch.Options{Observer: e.seen.observe})
	other.counting()
	_, err := e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Rate: 1, Burst: 3})
	e.ok(err)
	e.fill("q", 20)
	e.run()
	other.run()
	e.succeeded(3)
	for i := 1; i <= 10; i++ {
		e.store.Advance(time.Second)
		e.run()
		other.run()
		e.succeeded(3 + i)
	}
}

func TestConcurrencyLimitIsExact(t *testing.T) {
	for _, c := range []struct {
		name                     string
		limit, processes, places int
	}{
		{"near: one process could fill it", 3, 2, 64},
		{"far for each process, and met by all together", 4, 6, 1},
	} {
		t.Run(c.name, func(t *testing.T) { concurrencyIsExact(t, c.limit, c.processes, c.places) })
	}
}

func concurrencyIsExact(t *testing.T, limit, processes, places int) {
	e := newEnv(t, dispatch.Options{GlobalConcurrency: places})
	all := []*env{e}
	for len(all) < processes {
		all = append(all, another(t, e.store, dispatch.Options{GlobalConcurrency: places, Observer: e.seen.observe}))
	}
	var mu sync.Mutex
	now, most := 0, 0
	for _, p := range all {
		p.handle("k", func(context.Context, *dispatch.Task) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			defer func() {
				mu.Lock()
				now--
				mu.Unlock()
			}()
			return nil
		})
	}
	_, err := e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", MaxConcurrent: limit})
	e.ok(err)
	e.fill("q", 60)
	for i := 0; i < 100 && e.seen.count(dispatch.Succeeded) < 60; i++ {
		for _, p := range all {
			p.run()
		}
		e.store.Advance(time.Second)
	}
	e.succeeded(60)
	if most > limit {
		t.Errorf("%d ran at once, want at most %d", most, limit)
	}
}

// One process that holds all places of a queue hands the next task out as soon as one is free.
func TestConcurrencyOfOneProcess(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	started, gate := make(chan struct{}, 10), make(chan struct{})
	e.handle("k", func(context.Context, *dispatch.Task) error {
		started <- struct{}{}
		<-gate
		return nil
	})
	_, err := e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", MaxConcurrent: 2})
	e.ok(err)
	e.fill("q", 5)
	e.ok(e.d.Start(t.Context()))
	within(t, "the first", started)
	within(t, "the second", started)
	for i := range 5 {
		if c := e.counts("q"); c.Running != int64(min(2, 5-i)) {
			t.Errorf("%d run, want %d", c.Running, min(2, 5-i))
		}
		gate <- struct{}{}
		if i < 3 {
			within(t, "the next", started)
		}
		if i == 3 {
			// The last but one ends; wait until that is settled.
			for e.counts("q").Running > 1 {
				continue
			}
		}
	}
	e.run()
	e.succeeded(5)
}

func TestUpdateQueueTakesEffectAtTheNextClaim(t *testing.T) {
	for _, c := range []struct {
		name   string
		before dispatch.Queue
		change func(*dispatch.Queue)
		first  int // run under the old limits
		then   int // run at once after the change
	}{
		{"a rate is lifted", dispatch.Queue{Rate: 0.001, Burst: 2}, func(q *dispatch.Queue) { q.Rate = -1 }, 2, 10},
		{"a burst is raised", dispatch.Queue{Rate: 0.001, Burst: 2}, func(q *dispatch.Queue) { q.Burst = 6 }, 2, 6},
		{"a rate is set", dispatch.Queue{}, func(q *dispatch.Queue) { q.Rate, q.Burst = 1, 4 }, 10, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnv(t, dispatch.Options{})
			e.counting()
			c.before.Name = "q"
			_, err := e.d.EnsureQueue(t.Context(), c.before)
			e.ok(err)
			e.fill("q", 10)
			e.run()
			e.succeeded(c.first)
			e.ok(e.d.UpdateQueue(t.Context(), "q", func(q *dispatch.Queue) error {
				c.change(q)
				return nil
			}))
			if c.first == 10 {
				e.fill("q", 10)
				e.run()
				e.succeeded(c.first + c.then)
				return
			}
			e.run() // at once, however long the old limits had the queue wait
			e.succeeded(c.then)
		})
	}
}

// A new process-wide limit of retries applies to attempts that are claimed after it.
func TestUpdateQueueChangesRetries(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.handle("k", func(context.Context, *dispatch.Task) error { return errTest })
	id := e.enqueue(dispatch.Task{Kind: "k"})
	e.run()
	e.ok(e.d.UpdateQueue(t.Context(), dispatch.DefaultQueue, func(q *dispatch.Queue) error {
		q.Retry.MaxAttempts = 2
		return nil
	}))
	e.advance(time.Second)
	if e.seen.of(id) != "retry dead" {
		t.Errorf("outcomes %q", e.seen.of(id))
	}
}

func TestGlobalConcurrency(t *testing.T) {
	e := newEnv(t, dispatch.Options{GlobalConcurrency: 3})
	var mu sync.Mutex
	now, most := 0, 0
	gather := sync.NewCond(&mu)
	e.handle("k", func(context.Context, *dispatch.Task) error {
		mu.Lock()
		defer mu.Unlock()
		now++
		most = max(most, now)
		gather.Broadcast()
		for most < 3 { // the first ones wait for each other
			gather.Wait()
		}
		now--
		return nil
	})
	for q := range 4 {
		e.fill(fmt.Sprint("q", q), 10)
	}
	e.run()
	e.succeeded(40)
	if most != 3 {
		t.Errorf("%d ran at once, want 3", most)
	}
}

func TestOnlyItsQueues(t *testing.T) {
	e := newEnv(t, dispatch.Options{Queues: []string{"a", "b"}})
	e.counting()
	e.fill("a", 1)
	e.fill("b", 1)
	e.fill("c", 1)
	e.run()
	e.advance(time.Minute)
	e.succeeded(2)
	if c := e.counts("c"); c.Ready != 1 {
		t.Errorf("queue c has %+v", c)
	}
	all := another(t, e.store, dispatch.Options{Observer: e.seen.observe})
	all.counting()
	all.run()
	e.succeeded(3)
}

func TestDelayedTasksAreNeverEarly(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	var at record[time.Time]
	e.handle("k", func(context.Context, *dispatch.Task) error {
		at.add(e.store.Clock.Now())
		return nil
	})
	delays := []time.Duration{0, time.Millisecond, 999 * time.Millisecond, time.Second, time.Minute, 24 * time.Hour, 1000 * 24 * time.Hour}
	for _, d := range delays {
		e.enqueue(dispatch.Task{Kind: "k", Delay: d})
		e.enqueue(dispatch.Task{Kind: "k", ScheduleTime: dispatchtest.Start.Add(d)})
	}
	e.enqueue(dispatch.Task{Kind: "k", ScheduleTime: dispatchtest.Start.Add(-time.Hour)})
	e.run()
	if n := len(at.all()); n != 3 {
		t.Fatalf("%d tasks run at once, want 3", n)
	}
	for _, d := range delays[1:] {
		before := len(at.all())
		e.advance(dispatchtest.Start.Add(d).Sub(e.store.Clock.Now()) - time.Millisecond)
		if n := len(at.all()); n != before {
			t.Fatalf("%d tasks run a millisecond before %v", n-before, d)
		}
		e.advance(time.Millisecond)
		if n := len(at.all()); n != before+2 {
			t.Fatalf("%d tasks run at %v, want 2", n-before, d)
		}
	}
}

// What is sub-millisecond is rounded up, never down.
func TestScheduleTimeIsRoundedUp(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.counting()
	id := e.enqueue(dispatch.Task{Kind: "k", ScheduleTime: dispatchtest.Start.Add(time.Second + time.Nanosecond)})
	e.enqueue(dispatch.Task{Kind: "k", Delay: time.Second + time.Nanosecond})
	if want := dispatchtest.Start.Add(time.Second + time.Millisecond); !e.task(id).Due.Equal(want) {
		t.Errorf("due %v, want %v", e.task(id).Due, want)
	}
	e.run()
	e.advance(time.Second)
	e.succeeded(0)
	e.advance(time.Millisecond)
	e.succeeded(2)
}

// No queue starves: with one place, tasks of all queues run, each in the order of its due times.
func TestQueuesTakeTurns(t *testing.T) {
	e := newEnv(t, dispatch.Options{GlobalConcurrency: 1, PerQueueClaimCap: 1})
	var order record[string]
	e.handle("k", func(_ context.Context, task *dispatch.Task) error {
		order.add(task.Queue)
		return nil
	})
	e.fill("busy", 50)
	e.fill("quiet", 5)
	e.run()
	all := order.all()
	if len(all) != 55 {
		t.Fatalf("%d tasks have run", len(all))
	}
	last := 0
	for i, queue := range all {
		if queue == "quiet" {
			last = i
		}
	}
	if last > 25 {
		t.Errorf("the quiet queue's last task ran as number %d of 55: %v", last+1, slices.Compact(all))
	}
}
