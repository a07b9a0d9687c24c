package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

// A queue that drains refuses new tasks, works off those it has, and then says so.
func TestDrainQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		attempts := 0
		handle(d, "k", func(context.Context, *dispatch.Task) error {
			if attempts++; attempts == 1 {
				return errTest
			}
			return nil
		})
		b.ok(d.Start(t.Context()))
		begin := time.Now()
		b.enqueue(d, dispatch.Task{Kind: "k", Delay: time.Minute, Retry: &dispatch.RetryConfig{MinBackoff: time.Minute}})
		drained := make(chan error)
		go func() { drained <- d.DrainQueue(t.Context(), dispatch.DefaultQueue) }()
		synctest.Wait()
		_, err := d.Enqueue(t.Context(), dispatch.Task{Kind: "k"})
		requireError(t, err, dispatch.ErrQueueDraining)
		results, err := d.EnqueueMany(t.Context(), []dispatch.Task{{Kind: "k"}, {Kind: "k", Queue: "other", Delay: time.Hour}})
		b.ok(err)
		requireError(t, results[0].Err, dispatch.ErrQueueDraining)
		b.ok(results[1].Err)
		b.ok(<-drained)
		if after := time.Since(begin); after < 2*time.Minute || after > 2*time.Minute+2*time.Second {
			t.Errorf("it has drained after %v", after)
		}
		q, err := d.Queue(t.Context(), dispatch.DefaultQueue)
		b.ok(err)
		if !q.Draining {
			t.Error("it drains no more")
		}
		b.ok(d.ResumeQueue(t.Context(), dispatch.DefaultQueue))
		b.enqueue(d, dispatch.Task{Kind: "k"})
	})
}

func TestDrainQueueRefuses(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.fails(e.d.DrainQueue(t.Context(), "none"), dispatch.ErrQueueNotFound)
	requireField(t, e.d.DrainQueue(t.Context(), "~"), "Queue.Name")
	e.enqueue(dispatch.Task{Kind: "k", Delay: time.Hour})
	e.ok(e.d.PauseQueue(t.Context(), dispatch.DefaultQueue))
	e.fails(e.d.DrainQueue(t.Context(), dispatch.DefaultQueue), dispatch.ErrQueuePaused)
	e.ok(e.d.ResumeQueue(t.Context(), dispatch.DefaultQueue))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.d.DrainQueue(ctx, dispatch.DefaultQueue); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
