package dispatch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

// An idle process makes less than a call a second, with however many queues: it sleeps until something happens.
func TestIdleCostsNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		queues int // that have had a task
	}{{"without queues", 0}, {"with a queue", 1}, {"with a hundred queues", 100}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				d := b.dispatcher(dispatch.Options{})
				d.Handle("k", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { return nil }))
				b.ok(d.Start(t.Context()))
				for q := range c.queues {
					b.enqueue(d, dispatch.Task{Kind: "k", Queue: "q" + string(rune('a'+q%26)) + string(rune('a'+q/26))})
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := b.seen.count(dispatch.Succeeded); n != c.queues {
					t.Fatalf("%d tasks have run, want %d", n, c.queues)
				}
				for minute := range 3 {
					before, calls := b.store.count(), b.store.snapshot()
					time.Sleep(time.Minute)
					synctest.Wait()
					if n := b.store.count() - before; n > 60 {
						t.Errorf("minute %d: %d calls while idle, want at most 60: %v", minute, n, b.store.since(calls))
					}
				}
				time.Sleep(10 * time.Minute) // until the last lease would have ended
				if n := d.KnownQueues(); n != 0 {
					t.Errorf("%d idle queues are remembered", n)
				}
			})
		})
	}
}

// A delayed task, a paused queue, and one whose rate is used up are slept through, not polled.
func TestWaitingCostsNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		queue dispatch.Queue
		pause bool
		delay time.Duration
	}{
		{name: "delayed", delay: time.Hour},
		{name: "paused", pause: true},
		{name: "rate used up", queue: dispatch.Queue{Rate: 0.001, Burst: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				d := b.dispatcher(dispatch.Options{})
				d.Handle("k", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { return nil }))
				c.queue.Name = "q"
				_, err := d.EnsureQueue(t.Context(), c.queue)
				b.ok(err)
				if c.pause {
					b.ok(d.PauseQueue(t.Context(), "q"))
				}
				b.ok(d.Start(t.Context()))
				for range 5 {
					b.enqueue(d, dispatch.Task{Kind: "k", Queue: "q", Delay: c.delay})
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				before, calls := b.store.count(), b.store.snapshot()
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := b.store.count() - before; n > 60 {
					t.Errorf("%d calls in a minute, want at most 60: %v", n, b.store.since(calls))
				}
			})
		})
	}
}

// A running handler costs nothing either: nothing is renewed per task.
func TestRunningCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		d.Handle("k", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error {
			time.Sleep(5 * time.Minute)
			return nil
		}))
		b.ok(d.Start(t.Context()))
		for range 20 {
			b.enqueue(d, dispatch.Task{Kind: "k"})
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		before, calls := b.store.count(), b.store.snapshot()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := b.store.count() - before; n > 60 {
			t.Errorf("%d calls in a minute, want at most 60: %v", n, b.store.since(calls))
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := b.seen.count(dispatch.Succeeded); n != 20 {
			t.Errorf("%d tasks have run, want 20", n)
		}
	})
}
