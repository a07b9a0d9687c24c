package dispatch_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

// stubborn registers a handler of "k" that runs until its context ends, and tells why that was.
func stubborn(d *dispatch.Dispatcher) (started chan struct{}, causes chan error) {
	started, causes = make(chan struct{}, 100), make(chan error, 100)
	handle(d, "k", func(ctx context.Context, _ *dispatch.Task) error {
		started <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return ctx.Err()
	})
	return started, causes
}

// openAttempt has an attempt run until its context ends, on a process that hears messages by now, and makes a client of a store.
func (b *bubble) openAttempt(store dispatch.Store, o dispatch.ClientOptions) (
	client *dispatch.Client, id dispatch.TaskID, started chan struct{}, causes chan error,
) {
	b.Helper()
	d := b.dispatcher(dispatch.Options{})
	started, causes = stubborn(d)
	b.ok(d.Start(b.Context()))
	o.Logger = silent
	client, err := dispatch.NewClient(store, o)
	b.ok(err)
	id = b.enqueue(d, dispatch.Task{Kind: "k", Timeout: 10 * time.Minute})
	<-started
	time.Sleep(time.Second)
	return client, id, started, causes
}

// An attempt that runs on another process ends within a second of the cancellation, as cancelled, and never again.
func TestCancelOfARunningTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		runs := b.dispatcher(dispatch.Options{})
		started, causes := stubborn(runs)
		b.ok(runs.Start(t.Context()))
		client, err := dispatch.NewClient(b.store, dispatch.ClientOptions{Logger: silent})
		b.ok(err)
		id, err := client.Enqueue(t.Context(), dispatch.Task{ID: "a", Kind: "k"})
		b.ok(err)
		<-started
		time.Sleep(3 * time.Second)
		begin := time.Now()
		b.ok(client.CancelTask(t.Context(), dispatch.DefaultQueue, id))
		if cause := <-causes; !errors.Is(cause, dispatch.ErrCancelled) || time.Since(begin) > time.Second {
			t.Errorf("the context ended %v later for %v", time.Since(begin), cause)
		}
		time.Sleep(time.Hour)
		info, err := client.Task(t.Context(), dispatch.DefaultQueue, id)
		b.ok(err)
		if info.State != dispatch.TaskCancelled || info.Progress.Attempts != 1 {
			t.Errorf("the task is %s after %d attempts", info.State, info.Progress.Attempts)
		}
		h := info.Progress.History[0]
		if h.ErrorKind != dispatch.KindCancelled || h.Duration != 3*time.Second || h.Worker != runs.Worker() {
			t.Errorf("the attempt is %+v", h)
		}
		if got := b.seen.of(id); got != "cancelled" {
			t.Errorf("outcomes %q", got)
		}
		if len(started) > 0 {
			t.Error("it ran again")
		}
		b.ok(client.CancelTask(t.Context(), dispatch.DefaultQueue, id)) // once more does nothing
		_, err = client.Enqueue(t.Context(), dispatch.Task{ID: "a", Kind: "k"})
		requireError(t, err, dispatch.ErrDuplicateTask)
		b.ok(b.redis.CheckInvariants(t.Context(), dispatch.DefaultQueue))
	})
}

// Without retention the task is gone, and its handler hears all the same why.
func TestCancelWithoutRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{RetentionFailed: -1})
		started, causes := stubborn(d)
		b.ok(d.Start(t.Context()))
		id := b.enqueue(d, dispatch.Task{Kind: "k"})
		<-started
		b.ok(d.CancelTask(t.Context(), dispatch.DefaultQueue, id))
		requireError(t, <-causes, dispatch.ErrCancelled)
		synctest.Wait()
		if got := b.seen.of(id); got != "cancelled" {
			t.Errorf("outcomes %q", got)
		}
		requireError(t, d.CancelTask(t.Context(), dispatch.DefaultQueue, id), dispatch.ErrTaskNotFound)
	})
}

// When the message is lost, the next heartbeat finds that the lease is gone.
func TestCancelWithoutItsMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{HeartbeatInterval: 5 * time.Second})
		started, causes := stubborn(d)
		b.ok(d.Start(t.Context()))
		for _, c := range []struct {
			want error
			end  func(dispatch.TaskID) error
		}{
			{dispatch.ErrCancelled, func(id dispatch.TaskID) error {
				l, err := b.redis.Lease(t.Context(), dispatch.DefaultQueue, id)
				b.ok(err)
				_, err = b.redis.CancelTask(t.Context(), dispatch.DefaultQueue,
					dispatch.Cancellation{ID: id, Lease: l.Lease, Retention: time.Hour})
				return err
			}},
			{dispatch.ErrLeaseLost, func(id dispatch.TaskID) error { return d.DeleteTask(t.Context(), dispatch.DefaultQueue, id) }},
		} {
			id := b.enqueue(d, dispatch.Task{Kind: "k"})
			<-started
			b.ok(c.end(id))
			begin := time.Now()
			if cause := <-causes; !errors.Is(cause, c.want) || time.Since(begin) > 10*time.Second {
				t.Errorf("the context ended %v later for %v, want %v", time.Since(begin), cause, c.want)
			}
		}
		b.enqueue(d, dispatch.Task{Kind: "k"})
		<-started
		time.Sleep(time.Minute)
		if len(causes) > 0 {
			t.Errorf("an attempt that holds its lease ended for %v", <-causes)
		}
	})
}

// A message that names a lease ends nothing by itself: anybody may write to the channel.
func TestForgedCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		started, causes := stubborn(d)
		b.ok(d.Start(t.Context()))
		b.enqueue(d, dispatch.Task{Kind: "k"})
		<-started
		for _, message := range []string{"0x-1 default", "0x1 default", "0x default", "0xx default", "0x99999999999999999999 default"} {
			b.server.Publish("dispatch:{~}:wake", message)
		}
		synctest.Wait()
		if len(causes) > 0 {
			t.Errorf("the attempt ended for %v", <-causes)
		}
	})
}

// The exchange with a receiver that hangs is aborted.
func TestCancelOfADelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		called, aborted := make(chan struct{}, 1), make(chan struct{}, 1)
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			called <- struct{}{}
			<-r.Context().Done()
			aborted <- struct{}{}
			return nil, r.Context().Err()
		})}
		d := b.dispatcher(dispatch.Options{HTTPClient: client})
		b.ok(d.Start(t.Context()))
		id := b.enqueue(d, dispatch.Task{URL: "http://receiver.test/"})
		<-called
		b.ok(d.CancelTask(t.Context(), dispatch.DefaultQueue, id))
		<-aborted
		synctest.Wait()
		if got := b.seen.of(id); got != "cancelled" {
			t.Errorf("outcomes %q", got)
		}
	})
}

// A handler that reports success after the cancellation is too late.
func TestCancelBeforeSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{RetentionFailed: time.Hour})
		started, goOn := make(chan struct{}), make(chan struct{})
		handle(d, "k", func(context.Context, *dispatch.Task) error {
			started <- struct{}{}
			<-goOn
			return nil
		})
		b.ok(d.Start(t.Context()))
		id := b.enqueue(d, dispatch.Task{Kind: "k"})
		<-started
		b.ok(d.CancelTask(t.Context(), dispatch.DefaultQueue, id))
		close(goOn)
		synctest.Wait()
		info, err := d.Task(t.Context(), dispatch.DefaultQueue, id)
		b.ok(err)
		if info.State != dispatch.TaskCancelled || time.Until(info.ExpiresAt).Round(time.Minute) != time.Hour {
			t.Errorf("the task is %s until %v", info.State, info.ExpiresAt)
		}
		counts, err := d.Counts(t.Context(), dispatch.DefaultQueue)
		b.ok(err)
		if counts.TotalSucceeded != 0 || counts.TotalCancelled != 1 {
			t.Errorf("counts %+v", counts)
		}
	})
}

func TestCancelRefuses(t *testing.T) {
	e := newEnv(t, dispatch.Options{RetentionSucceeded: 24 * time.Hour})
	e.d.Handle("k", nothing)
	waits := e.enqueue(dispatch.Task{Kind: "k", Delay: time.Hour})
	done := e.enqueue(dispatch.Task{Kind: "k"})
	e.run()
	e.ok(e.d.CancelTask(t.Context(), dispatch.DefaultQueue, waits))
	e.advance(2 * time.Hour)
	if e.seen.of(waits) != "" || e.task(waits).State != dispatch.TaskCancelled {
		t.Errorf("the task is %s, outcomes %q", e.task(waits).State, e.seen.of(waits))
	}
	e.fails(e.d.CancelTask(t.Context(), dispatch.DefaultQueue, done), dispatch.ErrTaskEnded)
	e.fails(e.d.CancelTask(t.Context(), dispatch.DefaultQueue, "none"), dispatch.ErrTaskNotFound)
	requireField(t, e.d.CancelTask(t.Context(), "~", done), "Task.Queue")
	requireField(t, e.d.CancelTask(t.Context(), "q", ""), "Task.ID")
}

// A task is not started that was cancelled between its claim and its start.
func TestCancelBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		started, _ := stubborn(d)
		claimed, answer := make(chan struct{}), make(chan struct{})
		b.store.onCall("Claim", func(_ context.Context, do func() error) error {
			err := do()
			if n, _ := b.redis.Counts(t.Context(), dispatch.DefaultQueue); n.Running > 0 {
				claimed <- struct{}{}
				<-answer
			}
			return err
		})
		b.ok(d.Start(t.Context()))
		go d.Enqueue(t.Context(), dispatch.Task{ID: "a", Kind: "k"})
		<-claimed
		b.ok(d.CancelTask(t.Context(), dispatch.DefaultQueue, "a"))
		b.store.on(nil)
		close(answer)
		time.Sleep(time.Minute)
		if len(started) > 0 {
			t.Error("it was started")
		}
		b.ok(b.redis.CheckInvariants(t.Context(), dispatch.DefaultQueue))
	})
}
