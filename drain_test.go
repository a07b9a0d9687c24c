package dispatch_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

// The end of Run's context, and Stop, let running handlers finish.
func TestRunDrains(t *testing.T) {
	for _, by := range []string{"context", "Stop"} {
		t.Run(by, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				d := b.dispatcher(dispatch.Options{})
				handle(d, "k", func(ctx context.Context, _ *dispatch.Task) error {
					time.Sleep(20 * time.Second)
					return ctx.Err()
				})
				id := b.enqueue(d, dispatch.Task{Kind: "k"})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- d.Run(ctx) }()
				time.Sleep(time.Second)
				if by == "Stop" {
					go d.Stop()
				} else {
					cancel()
				}
				time.Sleep(time.Second)
				late := b.enqueue(d, dispatch.Task{Kind: "k"}) // a client still, but no worker
				begin := time.Now()
				if err := <-ended; err != nil {
					t.Errorf("Run: %v", err)
				}
				if took := time.Since(begin); took != 18*time.Second {
					t.Errorf("the drain ended %v after the handler was done", took-18*time.Second)
				}
				if b.seen.of(id) != "succeeded" {
					t.Errorf("outcomes %q", b.seen.of(id))
				}
				if info, err := d.Task(t.Context(), "default", late); err != nil || info.State != dispatch.TaskWaiting {
					t.Errorf("the task that came during the drain: %+v, %v", info, err)
				}
			})
		})
	}
}

// When the drain is over and handlers still run, their contexts end with ErrDraining and their tasks are given back,
// without an attempt counted.
func TestDrainTimeoutEndsContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{DrainTimeout: 10 * time.Second})
		causes := make(chan error, 2)
		handle(d, "k", func(ctx context.Context, task *dispatch.Task) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			if string(task.Payload) == "says so" {
				return fmt.Errorf("stopped: %w", ctx.Err())
			}
			return nil // done all the same
		})
		told := b.enqueue(d, dispatch.Task{Kind: "k", Payload: []byte("says so"), Retry: &dispatch.RetryConfig{MaxAttempts: 1}})
		done := b.enqueue(d, dispatch.Task{Kind: "k"})
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Second)
		begin := time.Now()
		if err := d.Stop(); err != nil {
			t.Errorf("Stop: %v, although the handlers obeyed", err)
		}
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("Stop took %v", took)
		}
		for range 2 {
			requireError(t, <-causes, dispatch.ErrDraining)
		}
		if b.seen.of(told) != "released" || b.seen.of(done) != "succeeded" {
			t.Errorf("outcomes %q and %q", b.seen.of(told), b.seen.of(done))
		}
		info, err := d.Task(t.Context(), "default", told)
		if err != nil || info.State != dispatch.TaskWaiting || info.Progress.Attempts != 0 {
			t.Errorf("the task is %+v, %v", info, err)
		}
	})
}

// A handler that ignores the end of its context costs Stop a second more and the error; its task goes to others, and
// what it reports later is not settled.
func TestHandlerThatIgnoresTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		var log logged
		d := b.dispatcher(dispatch.Options{DrainTimeout: 10 * time.Second, Logger: log.logger()})
		release, started := make(chan struct{}), make(chan struct{})
		handle(d, "k", func(context.Context, *dispatch.Task) error {
			close(started)
			<-release
			return nil
		})
		id := b.enqueue(d, dispatch.Task{Kind: "k"})
		ended := make(chan error, 1)
		go func() { ended <- d.Run(t.Context()) }()
		<-started
		begin := time.Now()
		requireError(t, d.Stop(), dispatch.ErrDrainTimeout)
		requireError(t, <-ended, dispatch.ErrDrainTimeout)
		requireError(t, d.Stop(), dispatch.ErrDrainTimeout)
		if took := time.Since(begin); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("Stop took %v", took)
		}
		if b.seen.of(id) != "released" || log.count("handlers ignore", "handlers=1") != 1 {
			t.Errorf("outcomes %q, logged:\n%s", b.seen.of(id), log.String())
		}
		info, err := d.Task(t.Context(), "default", id)
		if err != nil || info.State != dispatch.TaskWaiting || info.Progress.Attempts != 0 {
			t.Errorf("the task is %+v, %v", info, err)
		}

		other := b.dispatcher(dispatch.Options{})
		handle(other, "k", func(context.Context, *dispatch.Task) error { return nil })
		b.ok(other.Start(t.Context()))
		time.Sleep(time.Second)
		if b.seen.of(id) != "released succeeded" {
			t.Errorf("outcomes %q", b.seen.of(id))
		}
		close(release)
		synctest.Wait()
		if b.seen.of(id) != "released succeeded" {
			t.Errorf("outcomes %q once the handler has returned", b.seen.of(id))
		}
	})
}

// prefetching starts a dispatcher with four places, and has it hold more than four of twenty slow tasks: after many quick
// ones it has learnt that prefetching pays.
func (b *bubble) prefetching() *dispatch.Dispatcher {
	b.Helper()
	d := b.dispatcher(dispatch.Options{GlobalConcurrency: 4, Queues: []string{dispatch.DefaultQueue}})
	handle(d, "quick", func(context.Context, *dispatch.Task) error { time.Sleep(time.Millisecond); return nil })
	handle(d, "slow", func(context.Context, *dispatch.Task) error { time.Sleep(10 * time.Second); return nil })
	var tasks []dispatch.Task
	for range 200 {
		tasks = append(tasks, dispatch.Task{Kind: "quick"})
	}
	for range 20 {
		tasks = append(tasks, dispatch.Task{Kind: "slow", Delay: time.Millisecond, Retry: &dispatch.RetryConfig{MaxAttempts: 1}})
	}
	_, err := d.EnqueueMany(b.Context(), tasks)
	b.ok(err)
	time.Sleep(time.Millisecond)
	b.ok(d.Start(b.Context()))
	time.Sleep(500 * time.Millisecond)
	if c := b.counts(d); c.TotalSucceeded != 200 || c.Running <= 4 || c.Running > 8 {
		b.Fatalf("counts are %+v, want 200 succeeded and 5 to 8 held", c)
	}
	return d
}

func (b *bubble) counts(d *dispatch.Dispatcher) dispatch.Counts {
	b.Helper()
	counts, err := d.Counts(b.Context(), dispatch.DefaultQueue)
	b.ok(err)
	return counts
}

// What was claimed and has not started is given back at once, and costs no attempt.
func TestDrainReleasesWhatHasNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.prefetching()
		stopped := make(chan error)
		go func() { stopped <- d.Stop() }()
		synctest.Wait()
		if c := b.counts(d); c.Running != 4 || c.Ready != 16 {
			t.Errorf("at once: %+v, want 4 running and 16 ready", c)
		}
		b.ok(<-stopped)
		if c := b.counts(d); c.Running != 0 || c.Ready != 16 || c.TotalSucceeded != 204 {
			t.Errorf("in the end: %+v, want 4 more succeeded", c)
		}
		for task, err := range d.Tasks(t.Context(), dispatch.DefaultQueue, dispatch.Filter{}) {
			if err != nil || task.Progress.Attempts != 0 {
				t.Errorf("a task that has not started: %+v, %v", task, err)
			}
		}
		b.ok(b.redis.CheckInvariants(t.Context(), dispatch.DefaultQueue))
	})
}

// A prefetched task that finds no place within a second is given back, for a process that has one.
func TestPrefetchedTasksAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.prefetching()
		time.Sleep(time.Second)
		synctest.Wait()
		if c := b.counts(d); c.Running != 4 || c.Ready != 16 {
			t.Errorf("counts are %+v, want 4 running and 16 ready", c)
		}
		time.Sleep(time.Minute)
		if n := b.seen.count(dispatch.Succeeded); n != 220 {
			t.Errorf("%d tasks have run, want 220", n)
		}
	})
}

// A claim that is answered while the dispatcher drains is given back, and one that is never answered does not hold it up
// for ever.
func TestDrainWithAClaimInFlight(t *testing.T) {
	for _, answered := range []bool{true, false} {
		t.Run(fmt.Sprint("answered ", answered), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				d := b.dispatcher(dispatch.Options{})
				handle(d, "k", func(context.Context, *dispatch.Task) error {
					t.Error("the handler was called")
					return nil
				})
				id := b.enqueue(d, dispatch.Task{Kind: "k"})
				gate := make(chan struct{})
				b.store.onCall("Claim", func(ctx context.Context, do func() error) error {
					if !answered {
						<-ctx.Done()
						return fmt.Errorf("%w: %w", dispatch.ErrUncertain, ctx.Err())
					}
					<-gate
					return do()
				})
				b.ok(d.Start(t.Context()))
				synctest.Wait()
				stopped := make(chan error, 1)
				go func() { stopped <- d.Stop() }()
				synctest.Wait()
				close(gate)
				begin := time.Now()
				if err := <-stopped; err != nil {
					t.Errorf("Stop: %v", err)
				}
				if took := time.Since(begin); took > 15*time.Second {
					t.Errorf("Stop took %v", took)
				}
				info, err := d.Task(t.Context(), "default", id)
				if err != nil || info.State != dispatch.TaskWaiting || info.Progress.Attempts != 0 {
					t.Errorf("the task is %+v, %v", info, err)
				}
				want := "released"
				if !answered {
					want = ""
				}
				if b.seen.of(id) != want {
					t.Errorf("outcomes %q, want %q", b.seen.of(id), want)
				}
			})
		})
	}
}
