package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

func handle(d *dispatch.Dispatcher, kind string, f func(context.Context, *dispatch.Task) error) {
	d.Handle(kind, dispatch.HandlerFunc(f))
}

func TestStartTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBubble(t).dispatcher(dispatch.Options{})
		if err := d.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		requireError(t, d.Start(t.Context()), dispatch.ErrStarted)
		requireError(t, d.Run(t.Context()), dispatch.ErrStarted)
		if err := d.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
		requireError(t, d.Start(t.Context()), dispatch.ErrStarted)
	})
}

func TestStopBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBubble(t).dispatcher(dispatch.Options{})
		for range 2 {
			if err := d.Stop(); err != nil {
				t.Errorf("Stop before Start: %v", err)
			}
		}
		requireError(t, d.Start(t.Context()), dispatch.ErrStarted)
		requireError(t, d.Run(t.Context()), dispatch.ErrStarted)
	})
}

func TestStartWithAnEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestStopIsIdempotentAndConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", func(ctx context.Context, _ *dispatch.Task) error {
			time.Sleep(5 * time.Second)
			return nil
		})
		id := b.enqueue(d, dispatch.Task{Kind: "k"})
		ctx, cancel := context.WithCancel(t.Context())
		b.ok(d.Start(ctx))
		time.Sleep(time.Second)
		var wait sync.WaitGroup
		for range 10 {
			wait.Go(func() {
				if err := d.Stop(); err != nil {
					t.Errorf("Stop: %v", err)
				}
				if b.seen.of(id) != "succeeded" {
					t.Errorf("Stop returns before the handler is done: %q", b.seen.of(id))
				}
			})
		}
		cancel()
		wait.Wait()
	})
}

// Stop does not hang on a store that does not answer, and says in the log what was lost.
func TestStopDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		var log logged
		d := b.dispatcher(dispatch.Options{Logger: log.logger()})
		handle(d, "k", func(context.Context, *dispatch.Task) error { time.Sleep(time.Second); return nil })
		id := b.enqueue(d, dispatch.Task{Kind: "k"})
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Millisecond)
		b.store.on(func(context.Context, string, func() error) error { return errors.New("no connection") })
		begin := time.Now()
		if err := d.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if took := time.Since(begin); took > 15*time.Second {
			t.Errorf("Stop took %v", took)
		}
		// No synctest.Wait: what is given up is told before Stop returns.
		if b.seen.of(id) != "discarded" || log.count("stopped before all outcomes were stored") != 1 {
			t.Errorf("outcomes %q, logged:\n%s", b.seen.of(id), log.String())
		}
	})
}

// What a drain gives back is announced before Stop returns: after it the process may end.
func TestStopWaitsForItsAnnouncements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{DrainTimeout: time.Second})
		handle(d, "k", func(ctx context.Context, _ *dispatch.Task) error {
			<-ctx.Done()
			return ctx.Err()
		})
		b.enqueue(d, dispatch.Task{Kind: "k"})
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Second)
		announced := false
		b.store.onCall("Announce", func(_ context.Context, do func() error) error {
			time.Sleep(time.Second)
			announced = true
			return do()
		})
		b.ok(d.Stop())
		if !announced {
			t.Error("Stop returns before the announcement is out")
		}
	})
}

// Starting and stopping leaves nothing behind: neither a goroutine nor a lock that somebody waits for.
func TestStartStopLeavesNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.ok(b.store.Announce(t.Context(), []dispatch.Hint{{Queue: "q"}})) // connects
		synctest.Wait()
		before := goroutinesOfOurs()
		for i := range 100 {
			d, err := dispatch.New(b.store, dispatch.Options{Logger: silent})
			b.ok(err)
			handle(d, "k", func(context.Context, *dispatch.Task) error { return nil })
			ctx, cancel := context.WithCancel(t.Context())
			b.ok(d.Start(ctx))
			if i%2 == 0 {
				b.enqueue(d, dispatch.Task{Kind: "k"})
			}
			if i%3 == 0 {
				cancel()
			}
			b.ok(d.Stop())
			cancel()
		}
		synctest.Wait()
		if after := goroutinesOfOurs(); after > before {
			t.Errorf("%d goroutines before, %d after", before, after)
		}
	})
}

// goroutinesOfOurs counts those that are in this project's code or were started by it. The connections of the Redis client, and what
// serves them, are not: how many there are depends on what ran at the same time.
func goroutinesOfOurs() (n int) {
	stacks := make([]byte, 4<<20)
	for stack := range bytes.SplitSeq(stacks[:runtime.Stack(stacks, true)], []byte("\n\n")) {
		if bytes.Contains(stack, []byte("github.com/dispatchkit/dispatch")) {
			n++
		}
	}
	return n
}

// Start, Stop, the end of the context and everything a client can do, from many goroutines at once.
func TestLifecycleStress(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t)
			d := b.dispatcher(dispatch.Options{})
			handle(d, "k", func(context.Context, *dispatch.Task) error { return nil })
			ctx, cancel := context.WithCancel(t.Context())
			var wait sync.WaitGroup
			started := make(chan struct{}, 20)
			for i := range 10 {
				wait.Go(func() {
					if err := d.Start(ctx); err == nil {
						started <- struct{}{}
					}
				})
				wait.Go(func() {
					if i == 5 {
						cancel()
					}
					d.Enqueue(context.WithoutCancel(ctx), dispatch.Task{Kind: "k"})
				})
				wait.Go(func() {
					if i > 5 {
						if err := d.Stop(); err != nil {
							t.Errorf("Stop: %v", err)
						}
					}
				})
			}
			wait.Wait()
			cancel()
			if len(started) > 1 {
				t.Errorf("%d Starts succeed", len(started))
			}
			b.ok(d.Stop())
			b.ok(b.redis.CheckInvariants(t.Context(), "default"))
		})
	}
}
