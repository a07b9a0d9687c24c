package dispatch_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

// lost makes a call whose answer is lost.
func lost(do func() error) error {
	if err := do(); err != nil {
		return err
	}
	return fmt.Errorf("%w: connection reset", dispatch.ErrUncertain)
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
