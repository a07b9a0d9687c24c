package dispatch_test

import (
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
