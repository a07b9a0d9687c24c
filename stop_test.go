package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

// Many queues, and a store that hangs instead of refusing: Stop is bounded all the same.
func TestStopWhileManyClaimsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{DrainTimeout: time.Second})
		for i := range 20 {
			task := kindTask(fmt.Sprintf("q%d", i))
			b.enqueue(d, task)
		}
		b.store.onCall("Claim", func(ctx context.Context, _ func() error) error {
			<-ctx.Done()
			return fmt.Errorf("%w: %w", dispatch.ErrUncertain, ctx.Err())
		})
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		begin := time.Now()
		if err := d.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("Stop took %v", took)
		}
	})
}

// oneQueueFails fails the clean-up of one queue.
type oneQueueFails struct {
	dispatch.Store
	bad     string
	cleaned chan string
}

func (s oneQueueFails) Cleanup(ctx context.Context, queue string, limit int) (bool, error) {
	if queue == s.bad {
		return false, errors.New("spoiled")
	}
	more, err := s.Store.Cleanup(ctx, queue, limit)
	s.cleaned <- queue
	return more, err
}

func TestCleanupGoesOnAfterAQueueThatFails(t *testing.T) {
	store := dispatchtest.NewStore(t)
	failing := oneQueueFails{Store: store, bad: "a", cleaned: make(chan string, 10)}
	d, err := dispatch.New(failing, dispatch.Options{Clock: store.Clock, RetentionSucceeded: time.Minute, Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop()
	d.Handle("k", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { return nil }))
	for _, queue := range []string{"a", "b"} { // a expires first, and is first in every pass
		if _, err := d.Enqueue(t.Context(), kindTask(queue)); err != nil {
			t.Fatal(err)
		}
		dispatchtest.RunUntilIdle(t, d)
		store.Advance(time.Second)
	}
	store.Advance(2 * time.Minute)
	select {
	case queue := <-failing.cleaned:
		if queue != "b" {
			t.Errorf("cleaned %s", queue)
		}
	case <-time.After(10 * time.Second):
		t.Error("the queue behind the one that fails was not cleaned up")
	}
}
