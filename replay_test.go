package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

// Dead tasks are replayed with a new budget of attempts, one by one and all at once.
func TestReplay(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	var well atomic.Bool
	for _, kind := range []string{"k", "other"} {
		e.handle(kind, func(context.Context, *dispatch.Task) error {
			if well.Load() {
				return nil
			}
			return errors.New("down")
		})
	}
	twice := &dispatch.RetryConfig{MaxAttempts: 2, MinBackoff: -1}
	var ids []dispatch.TaskID
	for range 250 {
		ids = append(ids, e.enqueue(dispatch.Task{Kind: "k", Retry: twice}))
	}
	other := e.enqueue(dispatch.Task{Kind: "other", Retry: twice})
	e.run()
	waiting, err := e.d.ReplayTasks(t.Context(), dispatch.DefaultQueue, []dispatch.TaskID{"none", ids[0]}, dispatch.ReplayOptions{})
	if err != nil || !slices.Equal(waiting, []dispatch.TaskID{"", ids[0]}) {
		t.Errorf("replayed %q, %v", waiting, err)
	}
	e.run()
	if e.seen.of(ids[0]) != "retry dead retry dead" {
		t.Errorf("outcomes %q", e.seen.of(ids[0]))
	}
	well.Store(true)
	if n, err := e.d.ReplayDead(t.Context(), dispatch.DefaultQueue, dispatch.Filter{Kind: "k"}, dispatch.ReplayOptions{}); n != 250 || err != nil {
		t.Errorf("%d replayed, %v", n, err)
	}
	e.run()
	if n := e.seen.count(dispatch.Succeeded); n != 250 || e.task(other).State != dispatch.TaskDead {
		t.Errorf("%d succeeded, the other is %s", n, e.task(other).State)
	}
	if n, err := e.d.ReplayDead(t.Context(), "nowhere", dispatch.Filter{}, dispatch.ReplayOptions{}); n != 0 || err != nil {
		t.Errorf("%d replayed, %v", n, err)
	}
	e.check(dispatch.DefaultQueue)
}

// under is the replay of tasks that get new IDs.
var under = dispatch.ReplayOptions{NewIDs: true}

// deadOnes makes n tasks of a kind dead whose handler fails until well is set, and returns their IDs.
func (e *env) deadOnes(kind string, n int, well *atomic.Bool) (ids []dispatch.TaskID) {
	e.Helper()
	e.handle(kind, func(context.Context, *dispatch.Task) error {
		if well.Load() {
			return nil
		}
		return dispatch.SkipRetry(errTest)
	})
	for range n {
		ids = append(ids, e.enqueue(dispatch.Task{Kind: kind}))
	}
	e.run()
	return ids
}

func TestReplayUnderNewIDs(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	var well atomic.Bool
	ids := e.deadOnes("k", 250, &well)
	name := e.enqueue(dispatch.Task{ID: "name", Kind: "k"})
	e.run()
	well.Store(true)
	waiting, err := e.d.ReplayTasks(t.Context(), dispatch.DefaultQueue, append(slices.Clone(ids), "none", ids[0], name), under)
	e.ok(err)
	fresh := slices.Delete(slices.Clone(waiting), 250, 252)
	if len(waiting) != 253 || waiting[250] != "" || waiting[251] != "" || slices.Contains(fresh, "") {
		t.Fatalf("%d wait: %q", len(waiting), waiting)
	}
	e.gone(ids[0])
	e.gone(name)
	e.run()
	for _, id := range fresh {
		if e.seen.of(id) != "succeeded" {
			t.Fatalf("task %s: outcomes %q", id, e.seen.of(id))
		}
	}
	_, err = e.d.Enqueue(t.Context(), dispatch.Task{ID: "name", Kind: "k"})
	e.fails(err, dispatch.ErrDuplicateTask) // its dedup window goes on
	e.check(dispatch.DefaultQueue)
}

// What died before a purge and is replayed after it runs.
func TestReplayAfterAPurge(t *testing.T) {
	for _, o := range []dispatch.ReplayOptions{{}, under} {
		e := newEnv(t, dispatch.Options{})
		var well atomic.Bool
		e.deadOnes("k", 3, &well)
		e.ok(e.d.PurgeQueue(t.Context(), dispatch.DefaultQueue))
		well.Store(true)
		e.store.Advance(time.Minute)
		if n, err := e.d.ReplayDead(t.Context(), dispatch.DefaultQueue, dispatch.Filter{}, o); n != 3 || err != nil {
			t.Errorf("%d replayed, %v", n, err)
		}
		for task, err := range e.d.Tasks(t.Context(), dispatch.DefaultQueue, dispatch.Filter{}) {
			e.ok(err)
			if !task.CreatedAt.Equal(dispatchtest.Start.Add(time.Minute)) {
				t.Errorf("created at %v", task.CreatedAt)
			}
		}
		e.run()
		if n := e.seen.count(dispatch.Succeeded); n != 3 {
			t.Errorf("%+v: %d succeeded", o, n)
		}
		e.check(dispatch.DefaultQueue)
	}
}

func TestDeleteDead(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.handle("panics", func(context.Context, *dispatch.Task) error { panic("x") })
	e.deadOnes("k", 250, new(atomic.Bool))
	other := e.enqueue(dispatch.Task{Kind: "panics", Retry: &dispatch.RetryConfig{MaxAttempts: 1}})
	waits := e.enqueue(dispatch.Task{Kind: "k", Delay: time.Hour})
	e.run()
	for _, c := range []struct {
		filter dispatch.Filter
		want   int
	}{
		{dispatch.Filter{Kind: "none"}, 0},
		{dispatch.Filter{Until: dispatchtest.Start}, 0},
		{dispatch.Filter{ErrorKind: dispatch.KindHandler, Since: dispatchtest.Start, States: []dispatch.TaskState{dispatch.TaskWaiting}}, 250},
		{dispatch.Filter{ErrorKind: dispatch.KindHandler}, 0},
	} {
		if n, err := e.d.DeleteDead(t.Context(), dispatch.DefaultQueue, c.filter); n != c.want || err != nil {
			t.Errorf("%+v: %d deleted, %v, want %d", c.filter, n, err, c.want)
		}
	}
	if e.task(other).State != dispatch.TaskDead || e.task(waits).State != dispatch.TaskWaiting {
		t.Error("more was deleted than matches")
	}
	if n, err := e.d.DeleteDead(t.Context(), "nowhere", dispatch.Filter{}); n != 0 || err != nil {
		t.Errorf("%d deleted of no queue, %v", n, err)
	}
	e.check(dispatch.DefaultQueue)
}

// What is replayed between the listing and the deletion is left alone.
func TestDeleteDeadWhileOneIsReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", func(context.Context, *dispatch.Task) error { return dispatch.SkipRetry(errTest) })
		b.ok(d.Start(t.Context()))
		for _, id := range []dispatch.TaskID{"a", "b", "c"} {
			b.enqueue(d, dispatch.Task{ID: id, Kind: "k"})
		}
		time.Sleep(time.Second)
		b.ok(d.PauseQueue(t.Context(), "default"))
		b.store.onCall("DeleteTasks", func(ctx context.Context, do func() error) error {
			if _, err := d.ReplayTasks(ctx, "default", []dispatch.TaskID{"b"}, dispatch.ReplayOptions{}); err != nil {
				t.Error(err)
			}
			return do()
		})
		if n, err := d.DeleteDead(t.Context(), "default", dispatch.Filter{}); n != 2 || err != nil {
			t.Errorf("%d deleted, %v", n, err)
		}
		if task, err := d.Task(t.Context(), "default", "b"); err != nil || task.State != dispatch.TaskWaiting {
			t.Errorf("the one that waits again is %+v, %v", task, err)
		}
	})
}

func TestDeadLetterCallsAreChecked(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	ctx, o := t.Context(), dispatch.ReplayOptions{}
	_, err := e.d.ReplayTasks(ctx, "~", nil, o)
	requireField(t, err, "Task.Queue")
	_, err = e.d.ReplayTasks(ctx, "q", []dispatch.TaskID{"a", "a b"}, o)
	requireField(t, err, "Task.ID")
	if waiting, err := e.d.ReplayTasks(ctx, "q", nil, o); len(waiting) != 0 || err != nil {
		t.Errorf("%q, %v", waiting, err)
	}
	_, err = e.d.ReplayDead(ctx, "~", dispatch.Filter{}, o)
	requireField(t, err, "Task.Queue")
	_, err = e.d.ReplayDead(ctx, "q", dispatch.Filter{Host: "a:1"}, o)
	requireField(t, err, "Filter.Host")
	_, err = e.d.DeleteDead(ctx, "~", dispatch.Filter{})
	requireField(t, err, "Task.Queue")
	_, err = e.d.DeleteDead(ctx, "q", dispatch.Filter{Since: dispatchtest.Start, Until: dispatchtest.Start.Add(-1)})
	requireField(t, err, "Filter.Since")
}

// A call that breaks off says what it has done, and workers hear of what may wait.
func TestDeadLettersWhenTheStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{ReconcileInterval: time.Hour})
		var well atomic.Bool
		handle(d, "k", func(context.Context, *dispatch.Task) error {
			if well.Load() {
				return nil
			}
			return dispatch.SkipRetry(errTest)
		})
		b.ok(d.Start(t.Context()))
		tasks := make([]dispatch.Task, 300)
		for i := range tasks {
			tasks[i] = dispatch.Task{ID: dispatch.TaskID(fmt.Sprintf("t%03d", i)), Kind: "k"}
		}
		_, err := d.EnqueueMany(t.Context(), tasks)
		b.ok(err)
		time.Sleep(time.Second)
		well.Store(true)

		// failAt makes one call fail whose answer is lost.
		failAt := func(name string, number int) {
			b.store.onCall(name, func(_ context.Context, do func() error) error {
				if number--; number != 0 {
					return do()
				}
				return errors.Join(errTest, do())
			})
		}
		failAt("DeleteTasks", 2)
		if n, err := d.DeleteDead(t.Context(), "default", dispatch.Filter{}); n != 100 || !errors.Is(err, errTest) {
			t.Errorf("%d deleted, %v", n, err)
		}
		failAt("Tasks", 1)
		if n, err := d.ReplayDead(t.Context(), "default", dispatch.Filter{}, under); n != 0 || !errors.Is(err, errTest) {
			t.Errorf("%d replayed, %v", n, err)
		}
		b.store.onCall("ReplayTasks", func(_ context.Context, do func() error) error { return errors.Join(dispatch.ErrUncertain, do()) })
		waiting, err := d.ReplayTasks(t.Context(), "default", []dispatch.TaskID{"t298", "t299"}, under)
		if !errors.Is(err, dispatch.ErrUncertain) || !slices.Equal(waiting, []dispatch.TaskID{"", ""}) {
			t.Errorf("replayed as %q, %v", waiting, err)
		}
		time.Sleep(time.Second)
		if n := b.seen.count(dispatch.Succeeded); n != 2 {
			t.Errorf("%d of the tasks that may wait have run", n)
		}
		b.ok(b.redis.CheckInvariants(t.Context(), "default"))
	})
}
