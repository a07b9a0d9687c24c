package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

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

// What a call keeps for a while is noted for the clean-up, also when replicas are silent about it.
func TestDurableCallsNoteWhatExpires(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, s *testStore) error{
		"cancel": func(ctx context.Context, s *testStore) error {
			_, err := s.CancelTask(ctx, mail, dispatch.Cancellation{ID: "a", Retention: time.Minute, Tombstone: time.Minute})
			return err
		},
		"delete": func(ctx context.Context, s *testStore) error {
			deleted, err := s.DeleteTasks(ctx, mail, []dispatch.TaskID{"a", "none"}, dispatch.DeleteOptions{Tombstone: time.Minute})
			if !slices.Equal(deleted, []bool{true, false}) {
				t.Errorf("deleted: %v", deleted)
			}
			return err
		},
		"purge": func(ctx context.Context, s *testStore) error { return s.PurgeQueue(ctx, mail, time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			s, r := durableMini(t)
			enqueue(t, s, namedTask("a"))
			r.alive.Store(0)
			requireErr(t, call(t.Context(), s), dispatch.ErrNotReplicated)
			s.advance(time.Hour)
			if names, err := s.Expiring(t.Context(), 10); err != nil || !slices.Equal(names, []string{mail}) {
				t.Errorf("to clean up: %q, %v", names, err)
			}
		})
	}
}

// A call of several steps that fails after the first says that something may have been done, with or without replicas to wait
// for. A server that was full is not to be heard as one that has stored nothing.
func TestCallThatEndsHalfway(t *testing.T) {
	full := fault{err: said("OOM command not allowed when used memory > 'maxmemory'.")}
	broken := fault{err: said("ERR broken")}
	for name, c := range map[string]struct {
		command string
		plan    []fault
		call    func(ctx context.Context, s *testStore) error
	}{
		"new queue": {"sadd", []fault{{}, full}, func(ctx context.Context, s *testStore) error {
			_, err := s.CreateQueue(ctx, dispatch.Queue{Name: "new"})
			return err
		}},
		"task of a new queue": {"sadd", []fault{{}, full}, func(ctx context.Context, s *testStore) error {
			_, err := s.Enqueue(ctx, "new", []dispatch.Submission{task("a")}, dispatch.EnqueueOptions{})
			return err
		}},
		"purge":    {"zscan", []fault{broken}, func(ctx context.Context, s *testStore) error { return s.PurgeQueue(ctx, mail, 0) }},
		"deletion": {"hmget", []fault{{}, broken}, func(ctx context.Context, s *testStore) error { return s.DeleteQueue(ctx, mail) }},
	} {
		t.Run(name, func(t *testing.T) {
			s, f := flaky(t, backend{"", openMini})
			put(t, s, "a")
			f.plan(c.command, c.plan...)
			err := c.call(t.Context(), s)
			requireErr(t, err, dispatch.ErrUncertain)
			if errors.Is(err, dispatch.ErrStoreFull) {
				t.Errorf("as if nothing was stored: %v", err)
			}
		})
	}
}

// A call that has done nothing but list a name says what it failed of.
func TestCallThatDoesNotBegin(t *testing.T) {
	full := fault{err: said("OOM command not allowed when used memory > 'maxmemory'.")}
	for _, c := range []struct {
		queue, step string
		plan        []fault
	}{
		{"new", "sadd", []fault{full}},
		{"new", "queue_create", []fault{full}},
		{mail, "sadd", []fault{{}, full}}, // which is there already
	} {
		s, f := flaky(t, backend{"", openMini})
		put(t, s, "a")
		f.plan(c.step, c.plan...)
		_, err := s.CreateQueue(t.Context(), dispatch.Queue{Name: c.queue})
		if requireErr(t, err, dispatch.ErrStoreFull); errors.Is(err, dispatch.ErrUncertain) {
			t.Errorf("%s of %s: as if it had begun: %v", c.step, c.queue, err)
		}
	}
}

// In a cluster the queue's name may be on another master than its tasks, and that one may be full: the tasks are stored.
func TestDurableEnqueueThatCannotList(t *testing.T) {
	f, r := newFaults(), new(replicas)
	r.alive.Store(1)
	s := backends(t)[3].open(t)
	put(t, s, "a") // without replicas to wait for
	masters := s.client.(*redis.ClusterClient)
	ok(t, masters.ForEachMaster(t.Context(), func(_ context.Context, master *redis.Client) error {
		master.AddHook(r)
		master.AddHook(f.hook())
		return nil
	}))
	f.plan("sadd", fault{err: said("OOM command not allowed when used memory > 'maxmemory'.")})
	_, err := durableOf(t, s).Enqueue(t.Context(), mail, []dispatch.Submission{task("b")}, dispatch.EnqueueOptions{})
	if requireErr(t, err, dispatch.ErrUncertain); errors.Is(err, dispatch.ErrStoreFull) {
		t.Errorf("as if nothing was stored: %v", err)
	}
	if got := ids(claim(t, s, alice, 1, 10).Leased); got != "a b " {
		t.Errorf("claimed %q", got)
	}
}
