package redisstore

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
)

// What takes several steps is done all the same when replicas are silent, and waits for them once.
func TestDurableCallsOfSeveralSteps(t *testing.T) {
	s, r := durableMini(t)
	ctx := t.Context()
	put(t, s, "a", "b")
	r.alive.Store(0)
	requireOneWait := func(what string, call func() error) {
		t.Helper()
		before := r.waited()
		requireErr(t, call(), dispatch.ErrNotReplicated)
		if n := r.waited() - before; n != 1 {
			t.Errorf("%s: waited %d times", what, n)
		}
	}
	requireCounts := func(queue string, want dispatch.Counts) {
		t.Helper()
		if got, err := s.Counts(ctx, queue); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", queue, got, err, want)
		}
	}
	requireOneWait("task of a new queue", func() error {
		_, err := s.Enqueue(ctx, "new", []dispatch.Submission{task("a")}, dispatch.EnqueueOptions{})
		return err
	})
	requireCounts("new", dispatch.Counts{Ready: 1})
	requireOneWait("new queue", func() error {
		_, err := s.CreateQueue(ctx, dispatch.Queue{Name: "newer"})
		return err
	})
	requireCounts("newer", dispatch.Counts{})
	requireErr(t, s.PurgeQueue(ctx, "none", 0), dispatch.ErrNotReplicated) // the server knows the script from here on
	requireOneWait("purge", func() error { return s.PurgeQueue(ctx, mail, 0) })
	requireCounts(mail, dispatch.Counts{})
	requireOneWait("deletion", func() error { return s.DeleteQueue(ctx, "new") })
	names, _, err := s.Queues(ctx, 0)
	slices.Sort(names)
	if ok(t, err); !slices.Equal(names, []string{mail, "newer"}) {
		t.Errorf("listed: %q", names)
	}
	sound(t, s, mail)
}

// When a later step fails, the ones before it were made: the error must not say that nothing was.
func TestDurableCallThatEndsHalfway(t *testing.T) {
	var broken atomic.Bool
	s, r := durableMini(t, hook(func(ctx context.Context, _ string, cmd redis.Cmder, next redis.ProcessHook) error {
		if broken.Load() && cmd.Name() == "zscan" {
			return redisError("ERR")
		}
		return next(ctx, cmd)
	}))
	put(t, s, "a")
	r.alive.Store(0)
	broken.Store(true)
	requireErr(t, s.PurgeQueue(t.Context(), mail, 0), dispatch.ErrUncertain)
	if got := ids(claim(t, s, alice, 1, 10).Leased); got != "" {
		t.Errorf("claimed %q from a queue that is purged", got)
	}
}

// What is to be tried again because somebody else was faster is so whatever replicas have.
func TestDurableConflicts(t *testing.T) {
	s, r := durableMini(t)
	ctx := t.Context()
	put(t, s, "a", "b")
	held := claim(t, s, alice, 1, 1).Leased[0]
	settle(t, s, dispatch.Retry, 0, held)
	claim(t, s, alice, 2, 2)
	put(t, s, "c")
	r.alive.Store(0)
	if replaced, err := s.ReplaceQueue(ctx, dispatch.Queue{Name: mail, Version: 1}); err != nil || replaced {
		t.Errorf("settings of another version: %v, %v", replaced, err)
	}
	order := dispatch.Cancellation{ID: held.Task.ID, Lease: held.Lease}
	if cancelled, err := s.CancelTask(ctx, mail, order); err != nil || cancelled {
		t.Errorf("a task under another lease: %v, %v", cancelled, err)
	}
	requireErr(t, s.EditTask(ctx, mail, "c", func(task *dispatch.Task) error {
		task.Kind = "mine"
		return s.base.EditTask(ctx, mail, "c", func(task *dispatch.Task) error { task.Kind = "theirs"; return nil })
	}), dispatch.ErrConflict)
}
