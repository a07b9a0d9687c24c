package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

var errDown = errors.New("no connection")

func succeed(context.Context, *dispatch.Task) error { return nil }

// While the store is down a process tries now and then, says so once, and goes on when the store is back.
func TestOutage(t *testing.T) {
	for _, down := range []string{"Claim", "everything"} {
		t.Run(down, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				var log logged
				d := b.dispatcher(dispatch.Options{Logger: log.logger()})
				handle(d, "k", succeed)
				var ids []dispatch.TaskID
				for q := range 3 {
					ids = append(ids, b.enqueue(d, dispatch.Task{Kind: "k", Queue: fmt.Sprint("q", q)}))
				}
				b.store.on(func(_ context.Context, call string, do func() error) error {
					if down == "everything" || call == down {
						return errDown
					}
					return do()
				})
				b.ok(d.Start(t.Context()))
				time.Sleep(time.Minute)
				synctest.Wait()
				// Pauses of 50 ms doubling to 5 s, of which half is random: about 20 a minute and queue.
				if n := b.store.count("Claim"); n < 3*8 || n > 3*45 {
					t.Errorf("%d claims in a minute of outage: %v", n, b.store.snapshot())
				}
				if n := b.store.count(); n > 400 {
					t.Errorf("%d calls in a minute of outage: %v", n, b.store.snapshot())
				}
				if n := log.count("a call fails", "call=claim"); n != 1 {
					t.Errorf("%d warnings:\n%s", n, log.String())
				}
				b.store.on(nil)
				time.Sleep(10 * time.Second)
				for _, id := range ids {
					if b.seen.of(id) != "succeeded" {
						t.Errorf("after the outage: %q", b.seen.of(id))
					}
				}
				if log.count("succeeds again", "call=claim") != 1 {
					t.Errorf("recovery is not logged:\n%s", log.String())
				}
			})
		})
	}
}

// The server itself refuses: the same, through the store.
func TestServerOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", succeed)
		first := b.enqueue(d, dispatch.Task{Kind: "k"})
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Second)
		later := b.enqueue(d, dispatch.Task{Kind: "k", Delay: time.Second})
		b.server.SetError("LOADING Redis is loading the dataset in memory")
		time.Sleep(30 * time.Second)
		if _, err := d.Enqueue(t.Context(), dispatch.Task{Kind: "k"}); err == nil {
			t.Error("Enqueue succeeds during the outage")
		}
		b.server.SetError("")
		time.Sleep(15 * time.Second)
		if b.seen.of(first) != "succeeded" || b.seen.of(later) != "succeeded" {
			t.Errorf("outcomes %q and %q", b.seen.of(first), b.seen.of(later))
		}
	})
}

// Attempts that end while the store is down are settled when it is back, if their leases still stand.
func TestAttemptsThatEndDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		var runs atomic.Int64
		handle(d, "k", func(context.Context, *dispatch.Task) error {
			runs.Add(1)
			time.Sleep(5 * time.Second)
			return nil
		})
		var ids []dispatch.TaskID
		for range 10 {
			ids = append(ids, b.enqueue(d, dispatch.Task{Kind: "k", Timeout: time.Minute}))
		}
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Second)
		b.store.onCall("Settle", func(context.Context, func() error) error { return errDown })
		time.Sleep(40 * time.Second)
		if n := len(b.seen.list()); n != 0 {
			t.Errorf("%d outcomes are reported that the store does not have", n)
		}
		if n := b.store.count("Settle"); n > 40 {
			t.Errorf("%d settles during the outage", n)
		}
		b.store.on(nil)
		time.Sleep(6 * time.Second)
		for _, id := range ids {
			if b.seen.of(id) != "succeeded" {
				t.Errorf("after the outage: %q", b.seen.of(id))
			}
		}
		if runs.Load() != 10 {
			t.Errorf("%d runs, want 10", runs.Load())
		}
	})
}

// When the leases end during the outage, the outcomes are given up, once, and their places are free again.
func TestLeasesThatEndDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{GlobalConcurrency: 2, Queues: []string{dispatch.DefaultQueue}})
		var runs atomic.Int64
		handle(d, "k", func(context.Context, *dispatch.Task) error {
			runs.Add(1)
			return nil
		})
		var ids []dispatch.TaskID
		for range 2 {
			ids = append(ids, b.enqueue(d, dispatch.Task{Kind: "k", Timeout: 20 * time.Second}))
		}
		b.store.onCall("Settle", func(context.Context, func() error) error { return errDown })
		b.ok(d.Start(t.Context()))
		time.Sleep(60 * time.Second)
		for _, id := range ids {
			if b.seen.of(id) != "discarded" {
				t.Errorf("during the outage: %q", b.seen.of(id))
			}
		}
		b.store.on(nil)
		time.Sleep(30 * time.Second)
		for _, id := range ids {
			if b.seen.of(id) != "discarded retry succeeded" {
				t.Errorf("after the outage: %q, want the lost lease and the second attempt", b.seen.of(id))
			}
		}
		after := b.enqueue(d, dispatch.Task{Kind: "k"})
		time.Sleep(time.Second)
		if b.seen.of(after) != "succeeded" || runs.Load() != 5 {
			t.Errorf("a later task: %q; %d runs", b.seen.of(after), runs.Load())
		}
	})
}

// A queue that is deleted while it is claimed is no trouble, and comes back with its next task.
func TestQueueDeletedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		var log logged
		d := b.dispatcher(dispatch.Options{Logger: log.logger()})
		handle(d, "k", succeed)
		b.ok(d.Start(t.Context()))
		for range 3 {
			id := b.enqueue(d, dispatch.Task{Kind: "k", Queue: "q"})
			time.Sleep(time.Second)
			if b.seen.of(id) != "succeeded" {
				t.Errorf("outcomes %q", b.seen.of(id))
			}
			b.enqueue(d, dispatch.Task{Kind: "k", Queue: "q", Delay: time.Second})
			b.ok(d.DeleteQueue(t.Context(), "q"))
			time.Sleep(5 * time.Second)
		}
		if log.count("a call fails") > 0 {
			t.Errorf("logged:\n%s", log.String())
		}
		if n := b.store.count("Claim"); n > 20 {
			t.Errorf("%d claims", n)
		}
	})
}

// A sweep whose settle fails leaves the rest to the next one, however much there is.
func TestSweepDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", succeed)
		tasks := make([]dispatch.Task, 250)
		for i := range tasks {
			tasks[i] = dispatch.Task{Kind: "k", Timeout: time.Second}
		}
		_, err := d.EnqueueMany(t.Context(), tasks)
		b.ok(err)
		_, err = b.redis.Claim(t.Context(), dispatch.ClaimRequest{
			Queue: "default", Worker: "w-dead", Seq: 1, Budget: 250, Grace: time.Second})
		b.ok(err)
		b.store.onCall("Settle", func(context.Context, func() error) error { return errDown })
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		if n := b.store.count("Settle"); n < 5 || n > 20 {
			t.Errorf("%d settles in a minute, want about one per sweep", n)
		}
		if n := len(b.seen.list()); n != 0 {
			t.Errorf("the observer is told of %d attempts that nothing has come of", n)
		}
		b.store.on(nil)
		time.Sleep(time.Minute)
		if retried, done := b.seen.count(dispatch.Retry), b.seen.count(dispatch.Succeeded); retried != 250 || done != 250 {
			t.Errorf("after the outage %d leases are swept and %d tasks have run, want 250", retried, done)
		}
	})
}

// The backoff counts from the failure, however late the store hears of it.
func TestBackoffCountsFromTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", func(context.Context, *dispatch.Task) error { return errTest })
		b.store.onCall("Settle", func(context.Context, func() error) error { return errDown })
		id := b.enqueue(d, dispatch.Task{Kind: "k", Retry: &dispatch.RetryConfig{MinBackoff: time.Minute}})
		failed := time.Now()
		b.ok(d.Start(t.Context()))
		time.Sleep(20 * time.Second)
		b.store.on(nil)
		time.Sleep(10 * time.Second)
		info, err := d.Task(t.Context(), "default", id)
		b.ok(err)
		if late := info.Due.Sub(failed.Add(time.Minute)); late < 0 || late > 10*time.Millisecond {
			t.Errorf("due %v after the failure and its backoff", late)
		}
	})
}

// A queue whose outcomes the store does not take keeps no other queue from running, and is not claimed from meanwhile.
func TestPartOfTheStoreIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{GlobalConcurrency: 2})
		var runs record[string]
		handle(d, "k", func(_ context.Context, task *dispatch.Task) error {
			runs.add(task.Queue)
			return nil
		})
		b.store.onCall("Settle", func(ctx context.Context, do func() error) error {
			if ctx.Value(queueKey{}) == "bad" {
				return errDown
			}
			return do()
		})
		b.ok(d.Start(t.Context()))
		var bad, good []dispatch.TaskID
		for range 50 {
			bad = append(bad, b.enqueue(d, dispatch.Task{Kind: "k", Queue: "bad"}))
		}
		time.Sleep(5 * time.Second)
		for range 50 {
			good = append(good, b.enqueue(d, dispatch.Task{Kind: "k", Queue: "good"}))
		}
		time.Sleep(5 * time.Second)
		for _, id := range good {
			if b.seen.of(id) != "succeeded" {
				t.Errorf("a task of the good queue: %q", b.seen.of(id))
			}
		}
		if n := len(runs.all()) - len(good); n > 10 {
			t.Errorf("%d tasks of the bad queue have run and wait to be settled", n)
		}
		b.store.on(nil)
		time.Sleep(10 * time.Second)
		for _, id := range bad {
			if b.seen.of(id) != "succeeded" {
				t.Errorf("a task of the bad queue, in the end: %q", b.seen.of(id))
			}
		}
		if n := len(runs.all()); n != 100 {
			t.Errorf("%d runs of 100 tasks", n)
		}
	})
}
