package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

// flaky registers a handler of "k" that fails until the attempt of the given number.
func (e *env) flaky(succeeds int) {
	e.handle("k", func(ctx context.Context, _ *dispatch.Task) error {
		if a, _ := dispatch.AttemptFrom(ctx); a.Number < succeeds {
			return errTest
		}
		return nil
	})
}

func TestFinishedTasksAreGoneAtOnceByDefault(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.counting()
	id := e.enqueue(dispatch.Task{Kind: "k"})
	e.run()
	e.gone(id)
	if c := e.counts("default"); c != (dispatch.Counts{TotalSucceeded: 1}) {
		t.Errorf("counts are %+v", c)
	}
}

func TestSucceededTasksAreRetained(t *testing.T) {
	e := newEnv(t, dispatch.Options{RetentionSucceeded: time.Hour})
	e.flaky(3)
	id := e.enqueue(dispatch.Task{Kind: "k", Payload: []byte("p"), Metadata: map[string]string{"a": "b"}, Retry: &noWait})
	e.run()
	info := e.task(id)
	if info.State != dispatch.TaskSucceeded || !info.ExpiresAt.Equal(dispatchtest.Start.Add(time.Hour)) ||
		string(info.Payload) != "p" || info.Metadata["a"] != "b" || !info.Due.IsZero() || info.Token != 0 {
		t.Errorf("the task is %+v", info)
	}
	var kinds []dispatch.ErrorKind
	for _, a := range info.Progress.History {
		kinds = append(kinds, a.ErrorKind)
	}
	if info.Progress.Attempts != 3 || !slices.Equal(kinds, []dispatch.ErrorKind{dispatch.KindHandler, dispatch.KindHandler, ""}) {
		t.Errorf("its progress is %+v", info.Progress)
	}
	if c := e.counts("default"); c != (dispatch.Counts{Succeeded: 1, TotalSucceeded: 1, TotalRetried: 2}) {
		t.Errorf("counts are %+v", c)
	}
}

// A task may say itself how long it stays once it has succeeded. It stays as long as any other when it is dead.
func TestRetentionOfATask(t *testing.T) {
	e := newEnv(t, dispatch.Options{RetentionSucceeded: time.Hour, RetentionFailed: time.Minute})
	e.flaky(2)
	for _, c := range []struct {
		retention, want time.Duration
	}{{0, time.Hour}, {time.Second, time.Second}, {48 * time.Hour, 48 * time.Hour}, {-1, 0}} {
		id := e.enqueue(dispatch.Task{Kind: "k", Retention: c.retention, Retry: &noWait})
		dead := e.enqueue(dispatch.Task{Kind: "k", Retention: c.retention, Retry: &dispatch.RetryConfig{MaxAttempts: 1}})
		e.run()
		if info := e.task(dead); !info.ExpiresAt.Equal(dispatchtest.Start.Add(time.Minute)) {
			t.Errorf("retention %v: the dead task stays until %v", c.retention, info.ExpiresAt)
		}
		if c.want == 0 {
			e.gone(id)
			continue
		}
		if info := e.task(id); !info.ExpiresAt.Equal(dispatchtest.Start.Add(c.want)) {
			t.Errorf("retention %v: the task stays until %v", c.retention, info.ExpiresAt)
		}
	}
}

func TestDeadTasksAreRetained(t *testing.T) {
	for _, c := range []struct {
		retention, want time.Duration
	}{{0, 7 * 24 * time.Hour}, {time.Minute, time.Minute}, {-1, 0}} {
		e := newEnv(t, dispatch.Options{RetentionFailed: c.retention})
		e.flaky(100)
		id := e.enqueue(dispatch.Task{Kind: "k", Retry: &dispatch.RetryConfig{MaxAttempts: 2, MinBackoff: -1}})
		e.run()
		if e.seen.of(id) != "retry dead" {
			t.Errorf("outcomes %q", e.seen.of(id))
		}
		if c.want == 0 {
			e.gone(id)
			continue
		}
		info := e.task(id)
		if info.State != dispatch.TaskDead || !info.ExpiresAt.Equal(dispatchtest.Start.Add(c.want)) || len(info.Progress.History) != 2 {
			t.Errorf("the task is %+v", info)
		}
	}
}

// What is retained and what is remembered is cleaned up within CleanupInterval of its time, and not before.
func TestCleanup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{RetentionSucceeded: 10 * time.Minute, RetentionFailed: 20 * time.Minute, DedupWindow: 30 * time.Minute})
		handle(d, "ok", succeed)
		handle(d, "bad", func(context.Context, *dispatch.Task) error { return dispatch.SkipRetry(errTest) })
		b.ok(d.Start(t.Context()))
		good := b.enqueue(d, dispatch.Task{ID: "good", Kind: "ok"})
		bad := b.enqueue(d, dispatch.Task{ID: "bad", Kind: "bad"})
		begin := time.Now()
		has := func(id dispatch.TaskID) bool {
			_, err := d.Task(t.Context(), "default", id)
			if err != nil && !errors.Is(err, dispatch.ErrTaskNotFound) {
				t.Fatal(err)
			}
			return err == nil
		}
		taken := func(id dispatch.TaskID) bool {
			_, err := d.Enqueue(t.Context(), dispatch.Task{ID: id, Kind: "ok", Delay: 100 * time.Hour})
			if err != nil && !errors.Is(err, dispatch.ErrDuplicateTask) {
				t.Fatal(err)
			}
			return err != nil
		}
		for _, c := range []struct {
			after       time.Duration
			has         [2]bool
			take, taken bool
		}{
			{after: time.Second, has: [2]bool{true, true}},
			{after: 10*time.Minute - time.Second, has: [2]bool{true, true}},
			{after: 11*time.Minute + time.Second, has: [2]bool{false, true}},
			{after: 20*time.Minute - time.Second, has: [2]bool{false, true}},
			{after: 21*time.Minute + time.Second, has: [2]bool{false, false}},
			{after: 30*time.Minute - time.Second, take: true, taken: true},
			{after: 31*time.Minute + time.Second, take: true, taken: false},
		} {
			time.Sleep(c.after - time.Since(begin))
			synctest.Wait()
			if c.take {
				if taken(good) != c.taken || taken(bad) != c.taken {
					t.Errorf("after %v the names are not taken as they should be: %v", c.after, c.taken)
				}
				continue
			}
			if got := [2]bool{has(good), has(bad)}; got != c.has {
				t.Errorf("after %v the tasks are there: %v, want %v", c.after, got, c.has)
			}
		}
		b.ok(b.redis.CheckInvariants(t.Context(), "default"))
	})
}

// Many at once go in slices.
func TestCleanupOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{RetentionSucceeded: time.Minute})
		handle(d, "k", succeed)
		b.ok(d.Start(t.Context()))
		tasks := make([]dispatch.Task, 450)
		for i := range tasks {
			tasks[i] = dispatch.Task{Kind: "k"}
		}
		_, err := d.EnqueueMany(t.Context(), tasks)
		b.ok(err)
		time.Sleep(30 * time.Second)
		counts, err := d.Counts(t.Context(), "default")
		b.ok(err)
		if counts.Succeeded != 450 {
			t.Fatalf("counts are %+v", counts)
		}
		time.Sleep(2 * time.Minute)
		if counts, err = d.Counts(t.Context(), "default"); err != nil || counts.Succeeded != 0 {
			t.Errorf("counts are %+v, %v", counts, err)
		}
	})
}

func TestDedupWindow(t *testing.T) {
	for _, c := range []struct {
		window, taken time.Duration
	}{{0, time.Hour}, {time.Minute, time.Minute}, {-1, 0}} {
		e := newEnv(t, dispatch.Options{DedupWindow: c.window})
		e.counting()
		task := dispatch.Task{ID: "name", Kind: "k"}
		e.enqueue(task)
		id, err := e.d.Enqueue(t.Context(), task)
		e.fails(err, dispatch.ErrDuplicateTask)
		if id != "name" {
			t.Errorf("with ErrDuplicateTask comes the ID %q", id)
		}
		e.run()
		if c.taken > 0 {
			e.store.Advance(c.taken - time.Millisecond)
			_, err = e.d.Enqueue(t.Context(), task)
			e.fails(err, dispatch.ErrDuplicateTask)
			e.store.Advance(time.Millisecond)
		}
		e.enqueue(task)
		e.run()
		e.succeeded(2)
	}
}

func TestDeleteTask(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.counting()
	id := e.enqueue(dispatch.Task{ID: "name", Kind: "k", Delay: time.Hour})
	e.ok(e.d.DeleteTask(t.Context(), "default", id))
	e.fails(e.d.DeleteTask(t.Context(), "default", id), dispatch.ErrTaskNotFound)
	e.fails(e.d.DeleteTask(t.Context(), "none", id), dispatch.ErrTaskNotFound)
	_, err := e.d.Enqueue(t.Context(), dispatch.Task{ID: "name", Kind: "k"})
	e.fails(err, dispatch.ErrDuplicateTask)
	e.advance(time.Hour)
	e.succeeded(0)
	e.enqueue(dispatch.Task{ID: "name", Kind: "k"})
	e.run()
	e.succeeded(1)
}

// What a running attempt reports whose task is deleted is discarded, and it is not repeated. It may end for no other reason.
func TestDeleteOfARunningTask(t *testing.T) {
	for _, c := range []struct {
		name   string
		remove func(e *env, task *dispatch.Task) error
	}{
		{"task", func(e *env, task *dispatch.Task) error { return e.d.DeleteTask(e.Context(), task.Queue, task.ID) }},
		{"queue", func(e *env, task *dispatch.Task) error { return e.d.DeleteQueue(e.Context(), task.Queue) }},
	} {
		for _, result := range []error{nil, errTest, dispatch.Snooze(time.Second)} {
			t.Run(c.name, func(t *testing.T) {
				e := newEnv(t, dispatch.Options{RetentionSucceeded: time.Hour})
				e.handle("k", func(ctx context.Context, task *dispatch.Task) error {
					if err := c.remove(e, task); err != nil {
						t.Error(err)
					}
					if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, dispatch.ErrLeaseLost) {
						t.Errorf("the handler is stopped: %v", cause)
					}
					return result
				})
				id := e.enqueue(dispatch.Task{Kind: "k"})
				e.run()
				e.advance(time.Hour)
				if e.seen.of(id) != "discarded" {
					t.Errorf("outcomes %q", e.seen.of(id))
				}
				e.gone(id)
			})
		}
	}
}

func TestPurge(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	started, gate := make(chan struct{}, 2), make(chan struct{})
	e.handle("slow", func(_ context.Context, task *dispatch.Task) error {
		started <- struct{}{}
		<-gate
		if string(task.Payload) == "bad" {
			return errTest
		}
		return nil
	})
	e.counting()
	good := e.enqueue(dispatch.Task{Kind: "slow"})
	bad := e.enqueue(dispatch.Task{Kind: "slow", Payload: []byte("bad")})
	e.ok(e.d.Start(t.Context()))
	within(t, "the first", started)
	within(t, "the second", started)
	var waiting []dispatch.TaskID
	for range 50 { // miniredis scans no more than a page exactly while members are removed
		waiting = append(waiting, e.enqueue(dispatch.Task{Kind: "k", Delay: time.Hour}))
	}
	named := e.enqueue(dispatch.Task{ID: "name", Kind: "k", Delay: time.Hour})
	e.ok(e.d.PurgeQueue(t.Context(), "default"))
	after := e.enqueue(dispatch.Task{Kind: "k", Delay: time.Hour}) // in the same millisecond
	close(gate)
	e.run()
	if e.seen.of(good) != "succeeded" || e.seen.of(bad) != "dropped" {
		t.Errorf("running attempts end as %q and %q", e.seen.of(good), e.seen.of(bad))
	}
	e.gone(bad) // not repeated
	for _, id := range append(waiting, named) {
		e.gone(id)
	}
	_, err := e.d.Enqueue(t.Context(), dispatch.Task{ID: "name", Kind: "k"})
	e.fails(err, dispatch.ErrDuplicateTask)
	e.advance(time.Hour)
	if e.seen.of(after) != "succeeded" || len(e.seen.list()) != 3 {
		t.Errorf("the task of after the purge: %q; %d events", e.seen.of(after), len(e.seen.list()))
	}
	e.fails(e.d.PurgeQueue(t.Context(), "none"), dispatch.ErrQueueNotFound)
	e.check("default")
}
