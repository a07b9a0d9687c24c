package dispatch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/dispatchtest"
	"github.com/dispatchkit/dispatch/redisstore"
)

// A process registers as it is, drains as "draining" with heartbeats going on, and is gone in the end.
func TestRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{
			Queues: []string{"a", "b"}, GlobalConcurrency: 7, Capacity: cluster.Resources{"cpu": 500},
			Metadata: map[string]string{"zone": "x"},
		})
		d.Handle("long", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error {
			time.Sleep(20 * time.Second)
			return nil
		}))
		b.ok(d.Start(t.Context()))
		b.enqueue(d, dispatch.Task{Queue: "a", Kind: "long"})
		time.Sleep(time.Second)
		w := b.worker(d.Worker())
		if w.State != cluster.StateActive || len(w.Queues) != 2 || w.Concurrency != 7 || w.Capacity["cpu"] != 500 ||
			w.Metadata["zone"] != "x" || w.Hostname == "" {
			t.Errorf("the worker is %+v", w)
		}
		stopped := make(chan error)
		go func() { stopped <- d.Stop() }()
		time.Sleep(time.Second)
		if w := b.worker(d.Worker()); w.State != cluster.StateDraining {
			t.Errorf("while it stops the worker is %s", w.State)
		}
		time.Sleep(15 * time.Second)
		if w := b.worker(d.Worker()); w.State != cluster.StateDraining || time.Since(w.LastSeen) > 11*time.Second {
			t.Errorf("while it stops the worker is %s, seen %v ago", w.State, time.Since(w.LastSeen))
		}
		b.ok(<-stopped)
		_, err := b.redis.GetWorker(t.Context(), d.Worker())
		requireError(t, err, dispatch.ErrWorkerNotFound)
		if n := b.seen.count(dispatch.Succeeded); n != 1 {
			t.Errorf("%d tasks succeeded, want 1", n)
		}
	})
}

// A worker whose row is lost registers again, as created when it was.
func TestLostRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		before := b.worker(d.Worker())
		b.server.FlushAll()
		time.Sleep(11 * time.Second)
		if after := b.worker(d.Worker()); !after.CreatedAt.Equal(before.CreatedAt) || !after.LastSeen.After(before.LastSeen) {
			t.Errorf("the row is %+v, was %+v", after, before)
		}
	})
}

// Nothing is left of a hundred lives: no goroutine, no row, no leader.
func TestStartAndStopAHundredTimes(t *testing.T) {
	store := dispatchtest.NewStore(t)
	for i := range 100 {
		d, err := dispatch.New(store, dispatch.Options{Logger: silent, Leader: store.Elector(redisstore.ElectorOptions{})})
		if err != nil {
			t.Fatal(err)
		}
		d.Handle("k", nothing)
		if err := d.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i%3 > 0 {
			if _, err := d.Enqueue(t.Context(), dispatch.Task{Kind: "k"}); err != nil {
				t.Fatal(err)
			}
		}
		for i%3 == 2 && d.Role() != "leader" {
			time.Sleep(time.Millisecond)
		}
		if err := d.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	workers, err := store.ListWorkers(t.Context())
	if err != nil || len(workers) > 0 {
		t.Errorf("%d workers are left, %v", len(workers), err)
	}
	leader, err := store.GetLeader(t.Context())
	if err != nil || leader != nil {
		t.Errorf("the leader is %+v, %v", leader, err)
	}
}
