package dispatch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
)

// inBubble runs f with an attempt context of one minute on the bubble's clock, which ends when f returns.
func inBubble(t *testing.T, f func(t *testing.T, ctx *attemptContext, run *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clock := clockwork.NewRealClock()
		run := &running{leaseUntil: clock.Now().Add(70 * time.Second)}
		ctx := &run.attempt
		ctx.begin(clock, run, clock.Now().Add(time.Minute))
		f(t, ctx, run)
		ctx.end(context.Canceled)
	})
}

func requireOpen(t *testing.T, ctx context.Context) {
	t.Helper()
	synctest.Wait()
	select {
	case <-ctx.Done():
		t.Fatalf("the context has ended: %v", context.Cause(ctx))
	default:
	}
	if ctx.Err() != nil || context.Cause(ctx) != nil {
		t.Fatalf("an open context has Err %v and cause %v", ctx.Err(), context.Cause(ctx))
	}
}

func requireEnded(t *testing.T, ctx context.Context, err, cause error) {
	t.Helper()
	synctest.Wait()
	select {
	case <-ctx.Done():
	default:
		t.Fatal("the context has not ended")
	}
	if ctx.Err() != err || context.Cause(ctx) != cause {
		t.Fatalf("Err is %v and the cause %v, want %v and %v", ctx.Err(), context.Cause(ctx), err, cause)
	}
}

func TestAttemptContextDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx *attemptContext, run *running) {
		want := time.Now().Add(time.Minute)
		if got, ok := ctx.Deadline(); !ok || !got.Equal(want) {
			t.Errorf("Deadline is %v, %v; want %v", got, ok, want)
		}
		time.Sleep(time.Minute - 1)
		requireOpen(t, ctx)
		time.Sleep(time.Nanosecond)
		requireEnded(t, ctx, context.DeadlineExceeded, context.DeadlineExceeded)
		ctx.end(ErrDraining)
		requireEnded(t, ctx, context.DeadlineExceeded, context.DeadlineExceeded)
	})
}

func TestAttemptContextCauses(t *testing.T) {
	for _, cause := range []error{ErrDraining, ErrLeaseLost, context.Canceled} {
		inBubble(t, func(t *testing.T, ctx *attemptContext, _ *running) {
			ctx.end(cause)
			requireEnded(t, ctx, context.Canceled, cause)
			time.Sleep(time.Hour) // its timer is stopped, and the first cause stays
			ctx.end(context.DeadlineExceeded)
			requireEnded(t, ctx, context.Canceled, cause)
		})
	}
}

func TestAttemptContextMoves(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx *attemptContext, run *running) {
		move := func(d time.Duration) {
			now := time.Now()
			ctx.move(now.Add(d), now.Add(d+10*time.Second))
			if got, _ := ctx.Deadline(); !got.Equal(now.Add(d)) {
				t.Errorf("Deadline is %v after a move to %v", got, now.Add(d))
			}
			if got := ctx.leaseUntil(); !got.Equal(now.Add(d + 10*time.Second)) {
				t.Errorf("the lease ends %v, want 10 s after the deadline", got)
			}
		}
		time.Sleep(30 * time.Second)
		move(time.Hour) // later
		time.Sleep(time.Hour - 1)
		requireOpen(t, ctx)
		move(2 * time.Hour)
		ctx.expire() // by the timer before, which had fired already
		requireOpen(t, ctx)
		move(time.Minute) // and sooner again
		time.Sleep(time.Minute - 1)
		requireOpen(t, ctx)
		time.Sleep(time.Nanosecond)
		requireEnded(t, ctx, context.DeadlineExceeded, context.DeadlineExceeded)
		ctx.move(time.Now().Add(time.Hour), time.Now().Add(time.Hour)) // too late
		requireEnded(t, ctx, context.DeadlineExceeded, context.DeadlineExceeded)
	})
}

func TestAttemptContextMovedIntoThePast(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx *attemptContext, _ *running) {
		ctx.move(time.Now().Add(-time.Second), time.Now())
		requireEnded(t, ctx, context.DeadlineExceeded, context.DeadlineExceeded)
	})
}

// A move after the end starts no timer: nothing would stop it.
func TestAttemptContextMovedAfterItsEnd(t *testing.T) {
	clock := clockwork.NewFakeClockAt(start)
	run := new(running)
	ctx := &run.attempt
	ctx.begin(clock, run, start.Add(time.Minute))
	ctx.end(context.Canceled)
	ctx.move(start.Add(time.Hour), start.Add(time.Hour))
	ctx.expire()
	clock.Advance(2 * time.Hour)
	if context.Cause(ctx) != context.Canceled {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}

func TestAttemptContextChildren(t *testing.T) {
	type key struct{}
	for _, cause := range []error{context.DeadlineExceeded, ErrDraining, ErrLeaseLost} {
		inBubble(t, func(t *testing.T, ctx *attemptContext, run *running) {
			valued := context.WithValue(ctx, key{}, "v")
			child, cancel := context.WithTimeout(valued, time.Hour)
			defer cancel()
			stopped := make(chan struct{})
			defer context.AfterFunc(child, func() { close(stopped) })()
			if got, _ := child.Deadline(); !got.Equal(time.Now().Add(time.Minute)) {
				t.Errorf("the child ends %v, want its parent's deadline", got)
			}
			if child.Value(attemptKey{}) != run || child.Value(key{}) != "v" || ctx.Value(key{}) != nil {
				t.Error("the attempt or the value is not found")
			}
			requireOpen(t, child)
			ctx.end(cause)
			<-stopped
			if child.Err() == nil || context.Cause(child) != cause || context.Cause(valued) != cause {
				t.Errorf("the child ends with %v for %v, want %v", child.Err(), context.Cause(child), cause)
			}
		})
	}
}

// A child that is given up does not end the attempt.
func TestAttemptContextOutlivesItsChildren(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx *attemptContext, _ *running) {
		child, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		time.Sleep(time.Second)
		requireEnded(t, child, context.DeadlineExceeded, context.DeadlineExceeded)
		requireOpen(t, ctx)
	})
}

func TestAttemptContextRaces(t *testing.T) {
	for range 200 {
		clock := clockwork.NewRealClock()
		run := new(running)
		ctx := &run.attempt
		ctx.begin(clock, run, clock.Now().Add(time.Microsecond))
		go ctx.move(clock.Now().Add(time.Hour), clock.Now().Add(time.Hour))
		go ctx.Deadline()
		go ctx.end(ErrDraining)
		<-ctx.Done()
		if cause := context.Cause(ctx); cause != ErrDraining && !errors.Is(cause, context.DeadlineExceeded) {
			t.Fatalf("the cause is %v", cause)
		}
		ctx.end(context.Canceled)
	}
}

func TestOutsideOfAHandler(t *testing.T) {
	if _, ok := AttemptFrom(t.Context()); ok {
		t.Error("AttemptFrom finds an attempt in a test's context")
	}
	requireField(t, Extend(t.Context(), time.Minute), "Extend.ctx")
	ctx := context.WithValue(t.Context(), attemptKey{}, &running{})
	for _, d := range []time.Duration{-1, 0, time.Second - 1, 24*time.Hour + 1} {
		requireField(t, Extend(ctx, d), "Extend.d")
	}
}
