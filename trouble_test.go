package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

var errDown = errors.New("no connection")

// lost makes a call whose answer is lost.
func lost(do func() error) error {
	if err := do(); err != nil {
		return err
	}
	return fmt.Errorf("%w: connection reset", dispatch.ErrUncertain)
}

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

// A claim whose answer is lost has leased tasks. Repeating it finds them: each runs once, and none waits for its lease
// to end.
func TestLostClaimReply(t *testing.T) {
	for _, losses := range []int{1, 5} {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t)
			d := b.dispatcher(dispatch.Options{})
			var runs record[dispatch.TaskID]
			handle(d, "k", func(_ context.Context, task *dispatch.Task) error {
				runs.add(task.ID)
				return nil
			})
			for range 30 {
				b.enqueue(d, dispatch.Task{Kind: "k"})
			}
			var calls atomic.Int64
			b.store.onCall("Claim", func(_ context.Context, do func() error) error {
				if calls.Add(1) <= int64(losses) {
					return lost(do)
				}
				return do()
			})
			b.ok(d.Start(t.Context()))
			time.Sleep(30 * time.Second)
			seen := make(map[dispatch.TaskID]bool)
			for _, id := range runs.all() {
				if seen[id] {
					t.Errorf("task %s has run twice", id)
				}
				seen[id] = true
			}
			if len(seen) != 30 || b.seen.count(dispatch.Succeeded) != 30 || len(b.seen.list()) != 30 {
				t.Errorf("%d tasks have run, %d events", len(seen), len(b.seen.list()))
			}
			b.ok(b.redis.CheckInvariants(t.Context(), "default"))
		})
	}
}

// A claim that never arrived, but might have: its repetition leases nothing twice either.
func TestClaimThatNeverArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", succeed)
		id := b.enqueue(d, dispatch.Task{Kind: "k"})
		var once sync.Once
		b.store.onCall("Claim", func(_ context.Context, do func() error) error {
			err := error(nil)
			once.Do(func() { err = dispatch.ErrUncertain })
			if err != nil {
				return err
			}
			return do()
		})
		b.ok(d.Start(t.Context()))
		time.Sleep(10 * time.Second)
		if b.seen.of(id) != "succeeded" {
			t.Errorf("outcomes %q", b.seen.of(id))
		}
	})
}

// A settle whose answer is lost is repeated, applied once, and reported as what it was.
func TestLostSettleReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "ok", succeed)
		handle(d, "bad", func(context.Context, *dispatch.Task) error { return errTest })
		var calls atomic.Int64
		b.store.onCall("Settle", func(_ context.Context, do func() error) error {
			if calls.Add(1)%3 != 0 {
				return lost(do)
			}
			return do()
		})
		b.ok(d.Start(t.Context()))
		good := b.enqueue(d, dispatch.Task{Kind: "ok"})
		bad := b.enqueue(d, dispatch.Task{Kind: "bad", Retry: &dispatch.RetryConfig{MinBackoff: time.Hour}})
		dead := b.enqueue(d, dispatch.Task{Kind: "bad", Retry: &dispatch.RetryConfig{MaxAttempts: 1}})
		time.Sleep(30 * time.Second)
		if b.seen.of(good) != "succeeded" || b.seen.of(bad) != "retry" || b.seen.of(dead) != "dead" {
			t.Errorf("outcomes %q, %q, %q", b.seen.of(good), b.seen.of(bad), b.seen.of(dead))
		}
		counts, err := d.Counts(t.Context(), "default")
		b.ok(err)
		if counts.TotalSucceeded != 1 || counts.TotalRetried != 1 || counts.TotalDead != 1 || counts.Running != 0 {
			t.Errorf("the store has counted %+v", counts)
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

// When nobody can be told of tasks, they are found all the same: the process looks at one queue every two seconds.
func TestLostAnnouncements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", succeed)
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		var log logged
		producer, err := dispatch.NewClient(b.store, dispatch.ClientOptions{Logger: log.logger()})
		b.ok(err)
		b.store.onCall("Announce", func(context.Context, func() error) error { return errDown })
		var ids []dispatch.TaskID
		for q := range 3 {
			id, err := producer.Enqueue(t.Context(), dispatch.Task{Kind: "k", Queue: fmt.Sprint("q", q)})
			b.ok(err)
			ids = append(ids, id)
		}
		if log.count("could not be told") == 0 {
			t.Errorf("logged:\n%s", log.String())
		}
		time.Sleep(30 * time.Second)
		for _, id := range ids {
			if b.seen.of(id) != "succeeded" {
				t.Errorf("after half a minute: %q", b.seen.of(id))
			}
		}
	})
}

// A process that cannot listen finds its work in the notes.
func TestWithoutMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.store.onCall("Listen", func(context.Context, func() error) error { return errDown })
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", succeed)
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		if n := b.store.count("Listen"); n > 45 {
			t.Errorf("%d tries to listen in a minute", n)
		}
		producer, err := dispatch.NewClient(b.store, dispatch.ClientOptions{})
		b.ok(err)
		id, err := producer.Enqueue(t.Context(), dispatch.Task{Kind: "k"})
		b.ok(err)
		time.Sleep(6 * time.Second) // the notes are read every 5 s at the latest
		if b.seen.of(id) != "succeeded" {
			t.Errorf("after ReconcileInterval: %q", b.seen.of(id))
		}
	})
}

// After a subscription was interrupted the notes are read at once.
func TestReconcilesAfterAnInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{ReconcileInterval: time.Hour})
		handle(d, "k", succeed)
		interrupt := make(chan struct{})
		var calls atomic.Int64
		b.store.onCall("Listen", func(_ context.Context, do func() error) error {
			if calls.Add(1) > 1 {
				return do()
			}
			<-interrupt
			return errDown
		})
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Second)
		producer, err := dispatch.NewClient(b.store, dispatch.ClientOptions{})
		b.ok(err)
		id, err := producer.Enqueue(t.Context(), dispatch.Task{Kind: "k"})
		b.ok(err)
		begin := time.Now()
		close(interrupt)
		for b.seen.of(id) == "" && time.Since(begin) < time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(begin); b.seen.of(id) != "succeeded" || took > 200*time.Millisecond {
			t.Errorf("found after %v: %q", took, b.seen.of(id))
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

// Tasks of a claim that was answered so late that little is left of their leases are given back instead of started.
func TestLateClaimReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{LeaseGrace: time.Second})
		handle(d, "k", func(ctx context.Context, _ *dispatch.Task) error {
			if deadline, _ := ctx.Deadline(); time.Until(deadline) < 3*time.Second {
				t.Errorf("started with %v left", time.Until(deadline))
			}
			return nil
		})
		id := b.enqueue(d, dispatch.Task{Kind: "k", Timeout: 4 * time.Second})
		var once sync.Once
		b.store.onCall("Claim", func(_ context.Context, do func() error) error {
			err := do()
			once.Do(func() { time.Sleep(4500 * time.Millisecond) })
			return err
		})
		b.ok(d.Start(t.Context()))
		time.Sleep(10 * time.Second)
		if b.seen.of(id) != "released succeeded" {
			t.Errorf("outcomes %q", b.seen.of(id))
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
