package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

// vain is a store in which cancellations and deletions of queues do not happen, and whose caller does not learn that.
type vain struct{ dispatch.Store }

func (vain) CancelTask(context.Context, string, dispatch.Cancellation) (bool, error) {
	return false, dispatch.ErrUncertain
}

func (vain) DeleteQueue(context.Context, string) error { return dispatch.ErrUncertain }

// A cancellation that was told and has not happened is forgotten with the first look at the lease: what takes the task from its
// attempt later is not taken for it.
func TestCancellationThatDidNotHappen(t *testing.T) {
	for name, take := range map[string]func(b *bubble, id dispatch.TaskID) error{
		"deleted": func(b *bubble, id dispatch.TaskID) error {
			client, err := dispatch.NewClient(b.store, dispatch.ClientOptions{Logger: silent})
			b.ok(err)
			return client.DeleteTask(b.Context(), dispatch.DefaultQueue, id)
		},
		"run again, untold": func(b *bubble, id dispatch.TaskID) error {
			_, err := b.store.RunTask(b.Context(), dispatch.DefaultQueue, id)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				client, id, _, causes := b.openAttempt(vain{b.store}, dispatch.ClientOptions{})
				requireError(t, client.CancelTask(t.Context(), dispatch.DefaultQueue, id), dispatch.ErrUncertain)
				time.Sleep(30 * time.Second)
				if len(causes) > 0 {
					t.Fatalf("the attempt ended for %v", <-causes)
				}
				b.ok(take(b, id))
				requireError(t, <-causes, dispatch.ErrLeaseLost)
			})
		})
	}
}

// What is told while a lease is looked at is not forgotten with the answer, and a deletion of the queue that may have happened,
// which names every lease, does not hide that one of them was cancelled.
func TestCancellationIsNotForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		before, after time.Duration // how long a look at the leases takes until it is done, and until its answer is there
		vainFirst     bool
	}{
		"a deletion in vain comes next":     {before: 300 * time.Millisecond},
		"a cancellation in vain came first": {after: 300 * time.Millisecond, vainFirst: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				b.store.onCall("Holds", func(_ context.Context, do func() error) error {
					time.Sleep(c.before)
					defer time.Sleep(c.after)
					return do()
				})
				// Nothing but the message says that the task was cancelled: it is not retained.
				certain, id, _, causes := b.openAttempt(b.store, dispatch.ClientOptions{RetentionFailed: -1})
				uncertain, err := dispatch.NewClient(vain{b.store}, dispatch.ClientOptions{Logger: silent})
				b.ok(err)
				if c.vainFirst {
					requireError(t, uncertain.CancelTask(t.Context(), dispatch.DefaultQueue, id), dispatch.ErrUncertain)
					time.Sleep(100 * time.Millisecond)
				}
				b.ok(certain.CancelTask(t.Context(), dispatch.DefaultQueue, id))
				if !c.vainFirst {
					time.Sleep(100 * time.Millisecond)
					requireError(t, uncertain.DeleteQueue(t.Context(), dispatch.DefaultQueue), dispatch.ErrUncertain)
				}
				requireError(t, <-causes, dispatch.ErrCancelled)
			})
		})
	}
}

// unanswered is a store whose answers to cancellations and to RunTask are lost.
type unanswered struct{ dispatch.Store }

func (s unanswered) CancelTask(ctx context.Context, queue string, c dispatch.Cancellation) (bool, error) {
	return false, lost(func() error { _, err := s.Store.CancelTask(ctx, queue, c); return err })
}

func (s unanswered) RunTask(ctx context.Context, queue string, id dispatch.TaskID) (int64, error) {
	return 0, lost(func() error { _, err := s.Store.RunTask(ctx, queue, id); return err })
}

// Who may have taken a task from its attempt says so, though he may not know from which: it does not go on, alone or beside the
// next one, until somebody looks.
func TestWhatMayHaveHappenedIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		take func(c *dispatch.Client, ctx context.Context, queue string, id dispatch.TaskID) error
		want error
	}{
		"cancelled": {(*dispatch.Client).CancelTask, dispatch.ErrCancelled},
		"run again": {(*dispatch.Client).RunTask, dispatch.ErrLeaseLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				client, id, _, causes := b.openAttempt(unanswered{b.store}, dispatch.ClientOptions{})
				begin := time.Now()
				requireError(t, c.take(client, t.Context(), dispatch.DefaultQueue, id), dispatch.ErrUncertain)
				if cause := <-causes; !errors.Is(cause, c.want) || time.Since(begin) > time.Second {
					t.Errorf("the context ended %v later for %v", time.Since(begin), cause)
				}
			})
		})
	}
}

// A cancellation that may have happened, and then a RunTask that has taken the same lease: the task was not cancelled.
func TestRunTaskKnowsBetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.store.onCall("Holds", func(_ context.Context, do func() error) error {
			time.Sleep(300 * time.Millisecond) // in which the second is told
			return do()
		})
		client, id, started, causes := b.openAttempt(vain{b.store}, dispatch.ClientOptions{})
		requireError(t, client.CancelTask(t.Context(), dispatch.DefaultQueue, id), dispatch.ErrUncertain)
		time.Sleep(100 * time.Millisecond)
		b.ok(client.RunTask(t.Context(), dispatch.DefaultQueue, id))
		requireError(t, <-causes, dispatch.ErrLeaseLost)
		<-started
	})
}

// unreplicated is a store whose replicas are silent about a RunTask that took nothing from anybody.
type unreplicated struct{ dispatch.Store }

func (unreplicated) RunTask(context.Context, string, dispatch.TaskID) (int64, error) {
	return 0, dispatch.ErrNotReplicated
}

// Who knows that he has taken no lease has nobody look at theirs.
func TestRunTaskOfAWaitingTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		client, _, _, _ := b.openAttempt(unreplicated{b.store}, dispatch.ClientOptions{})
		before := b.store.count("Holds")
		requireError(t, client.RunTask(t.Context(), dispatch.DefaultQueue, "other"), dispatch.ErrNotReplicated)
		time.Sleep(time.Second)
		if n := b.store.count("Holds") - before; n != 0 {
			t.Errorf("%d looks at leases", n)
		}
	})
}
