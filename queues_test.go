package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

func TestEnsureQueueLeavesWhatExists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		want := dispatch.Queue{Name: "q", Rate: 5, Burst: 7, MaxConcurrent: 3, Weight: 2, Retry: dispatch.RetryConfig{MaxAttempts: 4, MinBackoff: -1}}
		asked := want
		asked.Paused, asked.Version = true, 99
		created, err := c.EnsureQueue(t.Context(), asked)
		if err != nil || !created {
			t.Fatalf("created %v, %v", created, err)
		}
		created, err = c.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Rate: 1})
		if err != nil || created {
			t.Errorf("created again %v, %v", created, err)
		}
		got, err := c.Queue(t.Context(), "q")
		b.ok(err)
		if got.CreatedAt.IsZero() || got.Version == 0 || got.Version == 99 {
			t.Errorf("the queue is %+v", got)
		}
		got.CreatedAt, got.Version = time.Time{}, 0
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("the queue is %+v, want %+v", *got, want)
		}
		_, err = c.EnsureQueue(t.Context(), dispatch.Queue{Name: "~"})
		requireField(t, err, "Queue.Name")
		_, err = c.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Rate: -3})
		requireField(t, err, "Queue.Rate")
	})
}

func requireField(t *testing.T, err error, field string) {
	t.Helper()
	var bad *dispatch.FieldError
	if !errors.As(err, &bad) || bad.Field != field {
		t.Errorf("error is %v, want a *FieldError of %s", err, field)
	}
}

func TestUpdateQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		requireError(t, c.UpdateQueue(t.Context(), "q", func(*dispatch.Queue) error { return nil }), dispatch.ErrQueueNotFound)
		_, err := c.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Rate: 5})
		b.ok(err)
		b.ok(c.PauseQueue(t.Context(), "q"))
		before, err := c.Queue(t.Context(), "q")
		b.ok(err)
		b.ok(c.UpdateQueue(t.Context(), "q", func(q *dispatch.Queue) error {
			q.Rate, q.Name, q.Paused, q.Version = 6, "other", false, 0
			return nil
		}))
		after, err := c.Queue(t.Context(), "q")
		b.ok(err)
		if after.Rate != 6 || after.Name != "q" || !after.Paused || after.Version <= before.Version || !after.CreatedAt.Equal(before.CreatedAt) {
			t.Errorf("the queue is %+v, before it was %+v", after, before)
		}
		requireError(t, c.UpdateQueue(t.Context(), "q", func(q *dispatch.Queue) error { q.Rate = 7; return errTest }), errTest)
		requireField(t, c.UpdateQueue(t.Context(), "q", func(q *dispatch.Queue) error { q.Burst = -1; return nil }), "Queue.Burst")
		if now, err := c.Queue(t.Context(), "q"); err != nil || !reflect.DeepEqual(now, after) {
			t.Errorf("the queue is %+v, %v, want it left at %+v", now, err, after)
		}
	})
}

// Changes made at the same time are all made, one after another; against one that never ends UpdateQueue gives up.
func TestUpdateQueueConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		_, err := c.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Burst: 1})
		b.ok(err)
		calls := 0
		b.ok(c.UpdateQueue(t.Context(), "q", func(q *dispatch.Queue) error {
			if calls++; calls < 4 {
				b.ok(c.UpdateQueue(t.Context(), "q", func(q *dispatch.Queue) error { q.Burst++; return nil }))
			}
			q.Burst += 100
			return nil
		}))
		if q, err := c.Queue(t.Context(), "q"); err != nil || q.Burst != 104 || calls != 4 {
			t.Errorf("the burst is %d after %d calls, %v; want 104 after 4", q.Burst, calls, err)
		}
		requireError(t, c.UpdateQueue(t.Context(), "q", func(*dispatch.Queue) error {
			return c.UpdateQueue(t.Context(), "q", func(q *dispatch.Queue) error { q.Burst++; return nil })
		}), dispatch.ErrConflict)
	})
}

func TestQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		var want []string
		for i := range 30 {
			name := fmt.Sprintf("q%02d", i)
			want = append(want, name)
			_, err := c.EnsureQueue(t.Context(), dispatch.Queue{Name: name, Burst: i})
			b.ok(err)
		}
		var got []string
		for q, err := range c.Queues(t.Context()) {
			b.ok(err)
			got = append(got, q.Name)
			if fmt.Sprintf("q%02d", q.Burst) != q.Name {
				t.Errorf("queue %+v", q)
			}
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("the queues are %v", got)
		}
		n := 0
		for range c.Queues(t.Context()) {
			if n++; n == 3 {
				break
			}
		}
		b.store.onCall("Queues", func(context.Context, func() error) error { return errDown })
		for q, err := range c.Queues(t.Context()) {
			if q != nil || !errors.Is(err, errDown) {
				t.Errorf("during an outage: %v, %v", q, err)
			}
		}
	})
}

func TestDeleteQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		requireError(t, c.DeleteQueue(t.Context(), "q"), dispatch.ErrQueueNotFound)
		_, err := c.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Rate: 5})
		b.ok(err)
		_, err = c.Enqueue(t.Context(), dispatch.Task{ID: "name", Kind: "k", Queue: "q"})
		b.ok(err)
		b.ok(c.DeleteQueue(t.Context(), "q"))
		_, err = c.Queue(t.Context(), "q")
		requireError(t, err, dispatch.ErrQueueNotFound)
		_, err = c.Counts(t.Context(), "q")
		requireError(t, err, dispatch.ErrQueueNotFound)
		_, err = c.Enqueue(t.Context(), dispatch.Task{ID: "name", Kind: "k", Queue: "q"}) // created anew, its names forgotten
		b.ok(err)
		if q, err := c.Queue(t.Context(), "q"); err != nil || q.Rate != 0 {
			t.Errorf("the queue is %+v, %v", q, err)
		}
	})
}

func TestQueueNamesAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		ctx, before := t.Context(), b.store.count()
		_, err := c.Queue(ctx, "~")
		requireField(t, err, "Queue.Name")
		_, err = c.Counts(ctx, "~")
		requireField(t, err, "Queue.Name")
		for _, call := range []func(context.Context, string) error{c.PauseQueue, c.ResumeQueue, c.DeleteQueue, c.PurgeQueue} {
			requireField(t, call(ctx, "a}b"), "Queue.Name")
		}
		_, err = c.Task(ctx, "~", "a")
		requireField(t, err, "Task.Queue")
		_, err = c.Task(ctx, "q", "a b")
		requireField(t, err, "Task.ID")
		requireField(t, c.DeleteTask(ctx, "q", ""), "Task.ID")
		for _, f := range []struct {
			queue  string
			filter dispatch.Filter
			field  string
		}{{"~", dispatch.Filter{}, "Task.Queue"}, {"q", dispatch.Filter{States: []dispatch.TaskState{"lost"}}, "Filter.States"}} {
			for task, err := range c.Tasks(ctx, f.queue, f.filter) {
				requireField(t, err, f.field)
				if task != nil {
					t.Errorf("a task with an error: %+v", task)
				}
			}
		}
		if n := b.store.count() - before; n != 0 {
			t.Errorf("%d calls of the store", n)
		}
	})
}

func TestTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{RetentionSucceeded: time.Hour})
		handle(d, "ok", succeed)
		handle(d, "bad", func(context.Context, *dispatch.Task) error { return dispatch.SkipRetry(errTest) })
		handle(d, "slow", func(context.Context, *dispatch.Task) error { time.Sleep(5 * time.Second); return nil })
		b.ok(d.Start(t.Context()))
		for range 3 {
			b.enqueue(d, dispatch.Task{Kind: "ok"})
			b.enqueue(d, dispatch.Task{Kind: "bad"})
			b.enqueue(d, dispatch.Task{Kind: "slow"})
			b.enqueue(d, dispatch.Task{Kind: "ok", Delay: time.Hour})
		}
		time.Sleep(time.Second)
		for _, c := range []struct {
			filter dispatch.Filter
			want   int
		}{
			{dispatch.Filter{}, 12},
			{dispatch.Filter{Kind: "ok"}, 6},
			{dispatch.Filter{Kind: "none"}, 0},
			{dispatch.Filter{States: []dispatch.TaskState{dispatch.TaskRunning}}, 3},
			{dispatch.Filter{States: []dispatch.TaskState{dispatch.TaskDead, dispatch.TaskSucceeded}}, 6},
			{dispatch.Filter{States: []dispatch.TaskState{dispatch.TaskWaiting}, Kind: "ok"}, 3},
		} {
			n := 0
			for task, err := range d.Tasks(t.Context(), "default", c.filter) {
				b.ok(err)
				if n++; c.filter.Kind != "" && task.Kind != c.filter.Kind || len(c.filter.States) > 0 && !slices.Contains(c.filter.States, task.State) {
					t.Errorf("%+v gives %+v", c.filter, task)
				}
			}
			if n != c.want {
				t.Errorf("%+v gives %d tasks, want %d", c.filter, n, c.want)
			}
		}
		for range d.Tasks(t.Context(), "default", dispatch.Filter{}) {
			break
		}
		for task := range d.Tasks(t.Context(), "none", dispatch.Filter{}) {
			t.Errorf("a queue that does not exist has %+v", task)
		}
		time.Sleep(10 * time.Second)
	})
}

// A limit that is known stays known when the queue is paused and resumed: a queue whose places are all taken is not
// claimed from.
func TestLimitsAreKnownAfterAResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", func(context.Context, *dispatch.Task) error { time.Sleep(time.Hour); return nil })
		_, err := d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", MaxConcurrent: 1})
		b.ok(err)
		b.ok(d.Start(t.Context()))
		for range 3 {
			b.enqueue(d, dispatch.Task{Kind: "k", Queue: "q", Timeout: 2 * time.Hour})
		}
		time.Sleep(time.Second)
		b.ok(d.PauseQueue(t.Context(), "q"))
		b.ok(d.ResumeQueue(t.Context(), "q"))
		time.Sleep(5 * time.Second)
		before := b.store.count("Claim")
		time.Sleep(time.Minute)
		if n := b.store.count("Claim") - before; n != 0 {
			t.Errorf("%d claims that cannot succeed", n)
		}
		b.ok(d.UpdateQueue(t.Context(), "q", func(q *dispatch.Queue) error { q.MaxConcurrent = 2; return nil }))
		time.Sleep(time.Second)
		if counts, err := d.Counts(t.Context(), "q"); err != nil || counts.Running != 2 {
			t.Errorf("counts are %+v, %v; want 2 running under the new limit", counts, err)
		}
		time.Sleep(4 * time.Hour)
	})
}
