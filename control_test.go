package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

func TestReschedule(t *testing.T) {
	e := newEnv(t, dispatch.Options{RetentionSucceeded: time.Hour})
	e.d.Handle("k", nothing)
	id := e.enqueue(dispatch.Task{Kind: "k", Delay: time.Hour})
	e.run()
	e.ok(e.d.RescheduleTask(t.Context(), dispatch.DefaultQueue, id, dispatchtest.Start.Add(time.Minute)))
	e.advance(59 * time.Second)
	if e.seen.of(id) != "" {
		t.Error("the task ran too soon")
	}
	e.advance(time.Second)
	if e.seen.of(id) != "succeeded" {
		t.Errorf("outcomes %q", e.seen.of(id))
	}
	e.fails(e.d.RescheduleTask(t.Context(), dispatch.DefaultQueue, id, time.Time{}), dispatch.ErrNotWaiting)
	e.fails(e.d.RescheduleTask(t.Context(), dispatch.DefaultQueue, "none", time.Time{}), dispatch.ErrTaskNotFound)
	now := e.enqueue(dispatch.Task{Kind: "k", Delay: 24 * time.Hour})
	e.ok(e.d.RescheduleTask(t.Context(), dispatch.DefaultQueue, now, time.Time{}))
	e.run()
	if e.seen.of(now) != "succeeded" {
		t.Errorf("outcomes %q", e.seen.of(now))
	}
	requireField(t, e.d.RescheduleTask(t.Context(), "~", now, time.Time{}), "Task.Queue")
	requireField(t, e.d.RescheduleTask(t.Context(), "q", "a b", time.Time{}), "Task.ID")
	requireField(t, e.d.RescheduleTask(t.Context(), "q", now, dispatchtest.Start.AddDate(11, 0, 0)), "RescheduleTask.at")
}

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
