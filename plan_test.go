package dispatch_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/redisstore"
)

func TestNobodyLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		o := dispatch.Options{Leader: newElector()} // that nobody elects
		b.flows(b.fleet(3, o, nothing)[0])
	})
}

func TestStalePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		term, err := b.redis.BeginTerm(t.Context(), "w-gone")
		b.ok(err)
		b.ok(b.redis.PublishPlan(t.Context(), &cluster.Plan{Term: term, Workers: []cluster.PlanWorker{
			{ID: "w-gone", Concurrency: 64}, {ID: "w-too", Concurrency: 64}}}))
		b.flows(b.fleet(3, dispatch.Options{Leader: newElector()}, nothing)[0])
	})
}

func (b *bubble) flows(d *dispatch.Dispatcher) {
	b.Helper()
	for i, queue := range []string{"a", "b", "c", "d", "e", "f"} {
		before := b.seen.count(dispatch.Succeeded)
		b.enqueue(d, dispatch.Task{Queue: queue, Kind: "k"})
		time.Sleep(time.Second)
		if b.seen.count(dispatch.Succeeded) != before+1 {
			b.Errorf("task %d does not run within a second", i)
		}
	}
}

func TestLeadersPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		gate := make(chan struct{})
		var all []*dispatch.Dispatcher
		for range 4 {
			d := b.dispatcher(dispatch.Options{GlobalConcurrency: 2, Leader: b.redis.Elector(redisstore.ElectorOptions{})})
			d.Handle("k", nothing)
			d.Handle("wait", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { <-gate; return nil }))
			b.ok(d.Start(t.Context()))
			all = append(all, d)
		}
		plan := func() *cluster.Plan {
			t.Helper()
			time.Sleep(20 * time.Second)
			p, err := b.redis.Plan(t.Context())
			b.ok(err)
			if p == nil {
				t.Fatal("there is no plan")
			}
			return p
		}
		if p := plan(); len(p.Workers) != 4 || len(p.Spread) != 0 {
			t.Errorf("the plan is %+v", p)
		}
		c := b.client(dispatch.ClientOptions{})
		b.loneTasks(c, "lone", 20*time.Second)
		var backlog []dispatch.Task
		for range 100 {
			backlog = append(backlog, dispatch.Task{Queue: "busy", Kind: "wait"})
		}
		_, err := c.EnqueueMany(t.Context(), backlog)
		b.ok(err)
		if p := plan(); p.Spread["busy"] != 4 {
			t.Errorf("the plan is %+v", p)
		}
		close(gate)
		if p := plan(); len(p.Spread) != 0 {
			t.Errorf("the plan is %+v", p)
		}
		b.ok(all[0].Stop())
		if p := plan(); len(p.Workers) != 3 {
			t.Errorf("the plan is %+v", p)
		}
	})
}

func TestRateWithFullHomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		gate := make(chan struct{})
		for i := range 4 {
			o := dispatch.Options{GlobalConcurrency: 2, Leader: b.redis.Elector(redisstore.ElectorOptions{})}
			o.Queues = []string{"q", fmt.Sprint("own", i)}
			d := b.dispatcher(o)
			d.Handle("k", nothing)
			d.Handle("wait", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { <-gate; return nil }))
			b.ok(d.Start(t.Context()))
		}
		defer close(gate)
		c := b.client(dispatch.ClientOptions{})
		_, err := c.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Rate: 10, Burst: 2})
		b.ok(err)
		var tasks []dispatch.Task
		for range 1500 {
			tasks = append(tasks, dispatch.Task{Queue: "q", Kind: "k"})
		}
		for i := range 4 { // and two processes full
			tasks = append(tasks, dispatch.Task{Queue: fmt.Sprint("own", i%2), Kind: "wait"})
		}
		_, err = c.EnqueueMany(t.Context(), tasks)
		b.ok(err)
		time.Sleep(40 * time.Second) // the queue has four homes by now
		before := b.seen.count(dispatch.Succeeded)
		time.Sleep(50 * time.Second)
		if n := b.seen.count(dispatch.Succeeded) - before; n < 450 || n > 502 {
			t.Errorf("%d tasks in 50 s at 10 a second", n)
		}
	})
}

func TestRateCostsFewClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.fleet(5, dispatch.Options{}, nothing)
		c := b.client(dispatch.ClientOptions{})
		_, err := c.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Rate: 20})
		b.ok(err)
		tasks := make([]dispatch.Task, 1500)
		for i := range tasks {
			tasks[i] = dispatch.Task{Queue: "q", Kind: "k"}
		}
		_, err = c.EnqueueMany(t.Context(), tasks)
		b.ok(err)
		time.Sleep(20 * time.Second)
		done, claims := b.seen.count(dispatch.Succeeded), b.store.count("Claim")
		time.Sleep(50 * time.Second)
		done, claims = b.seen.count(dispatch.Succeeded)-done, b.store.count("Claim")-claims
		if done < 970 || done > 1020 {
			t.Errorf("%d tasks in 50 s at 20 a second", done)
		}
		if claims > 3*done {
			t.Errorf("%d claims for %d tasks", claims, done)
		}
	})
}
