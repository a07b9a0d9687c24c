package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

func needs(kind string, r cluster.Resources) dispatch.Task {
	return dispatch.Task{Kind: kind, Requires: r}
}

func TestBadResources(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	many := make(cluster.Resources)
	for i := range 17 {
		many[strings.Repeat("x", i+1)] = 1
	}
	for _, bad := range []cluster.Resources{{"": 1}, {"a b": 1}, {"a=b": 1}, {"cpu": -1}, {"cpu": 1<<53 + 1},
		{strings.Repeat("n", 64): 1}, many} {
		_, err := e.d.Enqueue(t.Context(), needs("k", bad))
		requireField(t, err, "Task.Requires")
		_, err = e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Requires: bad})
		requireField(t, err, "Queue.Requires")
		_, err = dispatch.New(e.store, dispatch.Options{Capacity: bad})
		requireField(t, err, "Options.Capacity")
	}
}

// register puts a worker into the registry that this test plays.
func register(t testing.TB, store cluster.Store, w cluster.Worker) {
	t.Helper()
	if err := store.RegisterWorker(t.Context(), &w); err != nil {
		t.Fatal(err)
	}
}

func TestUnschedulable(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	two := needs("k", cluster.Resources{"cpu": 2000, "memory": 10})
	e.enqueue(two) // nobody is there: nobody can say
	register(t, e.store, cluster.Worker{ID: "w-small", Capacity: cluster.Resources{"cpu": 1000, "memory": 100}})
	register(t, e.store, cluster.Worker{ID: "w-other", Queues: []string{"other"}, Capacity: cluster.Resources{"cpu": 9000, "memory": 9}})
	e.store.Advance(10 * time.Second) // the client asks again
	_, err := e.d.Enqueue(t.Context(), two)
	e.fails(err, dispatch.ErrUnschedulable)
	var u *dispatch.UnschedulableError
	if !errors.As(err, &u) || *u != (dispatch.UnschedulableError{Queue: "default", Resource: "cpu", Need: 2000, Best: 1000, Worker: "w-small"}) {
		t.Errorf("the error is %+v", u)
	}
	two.Queue = "other"
	_, err = e.d.Enqueue(t.Context(), two)
	if !errors.As(err, &u) || u.Resource != "memory" || u.Need != 10 || u.Best != 9 || u.Worker != "w-other" {
		t.Errorf("the error is %+v", u)
	}
	results, err := e.d.EnqueueMany(t.Context(), []dispatch.Task{needs("k", nil), needs("k", cluster.Resources{"gpu": 1}),
		needs("k", cluster.Resources{"cpu": 1000})})
	e.ok(err)
	e.ok(results[0].Err)
	e.fails(results[1].Err, dispatch.ErrUnschedulable)
	e.ok(results[2].Err)

	// A requirement of the queue counts for tasks that say nothing of it.
	_, err = e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: "heavy", Requires: cluster.Resources{"cpu": 1500}})
	e.ok(err)
	_, err = e.d.Enqueue(t.Context(), dispatch.Task{Queue: "heavy", Kind: "k"})
	e.fails(err, dispatch.ErrUnschedulable)
	id, err := e.d.Enqueue(t.Context(), dispatch.Task{Queue: "heavy", Kind: "k", Requires: cluster.Resources{"cpu": 5, "memory": 1}})
	e.ok(err)
	info, err := e.d.Task(t.Context(), "heavy", id)
	e.ok(err)
	if len(info.Requires) != 2 || info.Requires["cpu"] != 5 {
		t.Errorf("the task requires %v", info.Requires)
	}
	e.ok(e.d.UpdateQueue(t.Context(), "heavy", func(q *dispatch.Queue) error { q.Requires = nil; return nil }))
	_, err = e.d.Enqueue(t.Context(), dispatch.Task{Queue: "heavy", Kind: "k"})
	e.ok(err)

	// One worker that states nothing may be able to do anything.
	register(t, e.store, cluster.Worker{ID: "w-unknown"})
	e.store.Advance(10 * time.Second)
	two.Queue = ""
	e.enqueue(two)
}

// A process runs at once only what fits, whatever the queues.
func TestCapacityBoundsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{Capacity: cluster.Resources{"cpu": 1000}})
		var used, most, ran atomic.Int64
		d.Handle("work", dispatch.HandlerFunc(func(ctx context.Context, task *dispatch.Task) error {
			now := used.Add(task.Requires["cpu"])
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			time.Sleep(100 * time.Millisecond)
			used.Add(-task.Requires["cpu"])
			ran.Add(1)
			return nil
		}))
		b.ok(d.Start(t.Context()))
		synctest.Wait()
		began := time.Now()
		for i := range 40 {
			task := needs("work", cluster.Resources{"cpu": 400})
			task.Queue = []string{"a", "b", "c"}[i%3]
			b.enqueue(d, task)
		}
		for ran.Load() < 40 {
			time.Sleep(10 * time.Millisecond)
		}
		if m := most.Load(); m != 800 {
			t.Errorf("%d of 1000 were in use at once, want 800", m)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("20 rounds of 100 ms took %v", took)
		}
		time.Sleep(time.Second)
		b.ok(b.redis.CheckInvariants(t.Context(), "a"))
	})
}

// Any number of tasks that fit nobody hide none that does, and somebody is told.
func TestUnfitTasksHideNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		var batch []dispatch.Task
		for range 1500 {
			batch = append(batch, needs("k", cluster.Resources{"cpu": 9000}))
		}
		for range 30 {
			batch = append(batch, needs("k", cluster.Resources{"cpu": 400}))
		}
		results, err := b.client(dispatch.ClientOptions{}).EnqueueMany(t.Context(), batch)
		b.ok(err)
		b.ok(results[1529].Err)
		var log logged
		d := b.dispatcher(dispatch.Options{
			Capacity: cluster.Resources{"cpu": 1000}, Logger: log.logger(), Queues: []string{dispatch.DefaultQueue}, // alone, it looks at more at once
		})
		d.Handle("k", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		}))
		b.ok(d.Start(t.Context()))
		time.Sleep(5 * time.Second)
		if n := b.seen.count(dispatch.Succeeded); n != 30 {
			t.Errorf("%d of 30 tasks that fit have run", n)
		}
		time.Sleep(time.Minute)
		if n := log.count("need more than this whole process has", "queue=default"); n != 1 {
			t.Errorf("warned %d times", n)
		}
		before := b.store.count("Claim")
		time.Sleep(time.Minute)
		if n := b.store.count("Claim") - before; n > 150 { // a few passes over all of them
			t.Errorf("%d claims in a minute for tasks that fit nobody", n)
		}
	})
}

// Tasks that do not fit at the moment keep their turn.
func TestCapacityKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		var ran record[dispatch.TaskID]
		d := b.dispatcher(dispatch.Options{Capacity: cluster.Resources{"cpu": 4000}})
		d.Handle("k", dispatch.HandlerFunc(func(_ context.Context, task *dispatch.Task) error {
			ran.add(task.ID)
			time.Sleep(100 * time.Millisecond)
			return nil
		}))
		var tasks []dispatch.Task
		for range 1000 {
			tasks = append(tasks, needs("k", cluster.Resources{"cpu": 1000}))
		}
		results, err := b.client(dispatch.ClientOptions{}).EnqueueMany(t.Context(), tasks)
		b.ok(err)
		place := make(map[dispatch.TaskID]int)
		for i, r := range results {
			place[r.ID] = i
		}
		b.ok(d.Start(t.Context()))
		time.Sleep(10 * time.Second)
		order := ran.all()
		if len(order) < 390 {
			t.Errorf("%d tasks have run, of the 400 that there was room for", len(order))
		}
		for n, id := range order {
			if i := place[id]; i > n+250 { // a batch of the enqueue is one instant, within which there is no order
				t.Fatalf("the task at place %d ran as number %d", i, n)
			}
		}
	})
}
