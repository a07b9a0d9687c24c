package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

func TestEnqueueMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		var tasks []dispatch.Task
		for i := range 1000 {
			task := kindTask(fmt.Sprint("q", i%3))
			switch {
			case i%10 == 7:
				task.Kind = ""
			case i%100 == 5, i%100 == 35:
				task.ID, task.Queue = dispatch.TaskID(fmt.Sprint("name", i/100)), "q0"
			}
			tasks = append(tasks, task)
		}
		results, err := c.EnqueueMany(t.Context(), tasks)
		b.ok(err)
		if len(results) != len(tasks) {
			t.Fatalf("%d results", len(results))
		}
		seen := make(map[dispatch.TaskID]bool)
		stored := make(map[string]int64)
		var bad *dispatch.FieldError
		for i, r := range results {
			switch {
			case i%10 == 7:
				if !errors.As(r.Err, &bad) || r.ID != "" {
					t.Errorf("result %d is %+v", i, r)
				}
			case i%100 == 35: // batches run side by side, so either of the two may be the duplicate
				if duplicate := errors.Is(r.Err, dispatch.ErrDuplicateTask); duplicate == errors.Is(results[i-30].Err, dispatch.ErrDuplicateTask) || r.ID != tasks[i].ID {
					t.Errorf("results %d and %d are %+v and %+v", i-30, i, results[i-30], r)
				}
				stored[tasks[i].Queue]++
			case i%100 == 5:
			case r.Err != nil || seen[r.ID] || tasks[i].ID != "" && r.ID != tasks[i].ID:
				t.Errorf("result %d is %+v", i, r)
			default:
				stored[tasks[i].Queue]++
			}
			seen[r.ID] = true
		}
		for queue, n := range stored {
			if counts, err := c.Counts(t.Context(), queue); err != nil || counts.Ready != n {
				t.Errorf("queue %s: %+v, %v; want %d", queue, counts, err, n)
			}
		}
		if n := b.store.count("Enqueue"); n > 9 {
			t.Errorf("1000 tasks of 3 queues make %d trips", n)
		}
		if results, err := c.EnqueueMany(t.Context(), nil); err != nil || len(results) != 0 {
			t.Errorf("of nothing: %v, %v", results, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if results, err := c.EnqueueMany(ctx, tasks); !errors.Is(err, context.Canceled) || results != nil {
			t.Errorf("with an ended context: %d results, %v", len(results), err)
		}
	})
}

// Large tasks go in batches of about a mebibyte, and the context's end reaches the store.
func TestEnqueueManyLargeAndCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		tasks := make([]dispatch.Task, 8)
		for i := range tasks {
			tasks[i] = dispatch.Task{Kind: "k", Payload: make([]byte, 400<<10)}
		}
		_, err := c.EnqueueMany(t.Context(), tasks)
		b.ok(err)
		if n := b.store.count("Enqueue"); n != 4 {
			t.Errorf("3.2 MB make %d trips, want 4", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b.store.onCall("Enqueue", func(ctx context.Context, _ func() error) error {
			<-ctx.Done()
			return fmt.Errorf("%w: %w", dispatch.ErrUncertain, ctx.Err())
		})
		results, err := c.EnqueueMany(ctx, tasks)
		b.ok(err)
		for _, r := range results {
			tried := errors.Is(r.Err, dispatch.ErrUncertain)
			if !tried && !errors.Is(r.Err, context.DeadlineExceeded) || r.ID == "" {
				t.Errorf("result %+v", r)
			}
		}
	})
}
