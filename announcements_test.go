package dispatch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

// While one announcement is under way the others gather; each queue is told of once, with its soonest time.
func TestAnnouncementsCoalesce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		gate := make(chan struct{})
		b.store.onCall("Announce", func(_ context.Context, do func() error) error {
			<-gate
			return do()
		})
		var wait sync.WaitGroup
		for i := range 60 {
			wait.Go(func() {
				if _, err := c.Enqueue(t.Context(), kindTask(fmt.Sprint("q", i))); err != nil {
					t.Error(err)
				}
			})
			if i == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		close(gate)
		wait.Wait()
		if n := b.store.count("Announce"); n != 2 {
			t.Errorf("60 queues make %d announcements, want 2", n)
		}
		hints, err := b.redis.Hints(t.Context(), 0)
		if err != nil || len(hints) != 60 {
			t.Errorf("%d notes, %v", len(hints), err)
		}
	})
}

// Nothing is announced when workers know already; and what they should know and have not acted on is announced again, at
// most once a second.
func TestAnnouncements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		announced := func(what string, want int, tasks ...dispatch.Task) {
			t.Helper()
			before := b.store.count("Announce")
			for _, task := range tasks {
				_, err := c.Enqueue(t.Context(), task)
				b.ok(err)
			}
			if n := b.store.count("Announce") - before; n != want {
				t.Errorf("%s: %d announcements, want %d", what, n, want)
			}
		}
		delayed := func(d time.Duration) dispatch.Task { return dispatch.Task{Kind: "k", Delay: d} }
		announced("the first", 1, delayed(time.Hour))
		announced("a later one", 0, delayed(2*time.Hour))
		announced("a sooner one", 1, delayed(time.Minute))
		announced("one that is due", 1, delayed(0))
		announced("more of them", 0, delayed(0), delayed(0))
		time.Sleep(999 * time.Millisecond)
		announced("not yet overdue", 0, delayed(0))
		time.Sleep(time.Millisecond)
		announced("overdue", 1, delayed(0), delayed(0))
		time.Sleep(999 * time.Millisecond)
		announced("within the second", 0, delayed(0))
		time.Sleep(time.Millisecond)
		announced("overdue again", 1, delayed(0), delayed(0))
	})
}

// Enqueue returns when the store has the task, although nobody can be told of it; and early when its context ends.
func TestEnqueueWithoutAnnouncement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		b.store.onCall("Announce", func(ctx context.Context, _ func() error) error {
			<-ctx.Done()
			return ctx.Err()
		})
		begin := time.Now()
		_, err := c.Enqueue(t.Context(), kindTask("a"))
		b.ok(err)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("Enqueue took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin = time.Now()
		_, err = c.Enqueue(ctx, kindTask("b"))
		b.ok(err)
		if took := time.Since(begin); took != time.Second {
			t.Errorf("Enqueue took %v", took)
		}
	})
}
