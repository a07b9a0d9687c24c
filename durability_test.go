package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

// replicating is a store with replicas that are behind, once behind is set.
type replicating struct {
	dispatch.Store
	behind bool
	asked  dispatch.Durability
}

func (s *replicating) Durable(d dispatch.Durability) (dispatch.Store, error) {
	s.asked = d
	return &ackedStore{Store: s.Store, replicas: s}, nil
}

// ackedStore is the view of such a store. Like redisstore's it answers nothing else when replicas are behind.
type ackedStore struct {
	dispatch.Store
	replicas *replicating
}

func (s *ackedStore) after(err error) error {
	if err == nil && s.replicas.behind {
		return dispatch.ErrNotReplicated
	}
	return err
}

func (s *ackedStore) Enqueue(ctx context.Context, queue string, tasks []dispatch.Submission, o dispatch.EnqueueOptions) (dispatch.EnqueueReply, error) {
	r, err := s.Store.Enqueue(ctx, queue, tasks, o)
	if err = s.after(err); err != nil {
		return dispatch.EnqueueReply{}, err
	}
	return r, nil
}

func (s *ackedStore) CancelTask(ctx context.Context, queue string, c dispatch.Cancellation) (bool, error) {
	done, err := s.Store.CancelTask(ctx, queue, c)
	return done && !s.replicas.behind, s.after(err)
}

func (s *ackedStore) RescheduleTask(ctx context.Context, queue string, t dispatch.Task) (dispatch.EnqueueReply, error) {
	_, err := s.Store.RescheduleTask(ctx, queue, t)
	return dispatch.EnqueueReply{}, s.after(err)
}

func (s *ackedStore) RunTask(ctx context.Context, queue string, id dispatch.TaskID) (int64, error) {
	lost, err := s.Store.RunTask(ctx, queue, id)
	return lost, s.after(err)
}

func (s *ackedStore) SetState(ctx context.Context, name string, state dispatch.QueueState) error {
	return s.after(s.Store.SetState(ctx, name, state))
}

func TestDurabilityLimits(t *testing.T) {
	for _, c := range []struct {
		durability dispatch.Durability
		field      string // "" is valid
	}{
		{dispatch.Durability{}, ""},
		{dispatch.Durability{Replicas: 1}, ""},
		{dispatch.Durability{Replicas: 16, Timeout: time.Millisecond}, ""},
		{dispatch.Durability{Replicas: 1, Timeout: 2 * time.Second}, ""},
		{dispatch.Durability{Replicas: -1}, "Replicas"},
		{dispatch.Durability{Replicas: 17}, "Replicas"},
		{dispatch.Durability{Timeout: time.Second}, "Timeout"},
		{dispatch.Durability{Replicas: 1, Timeout: time.Millisecond - 1}, "Timeout"},
		{dispatch.Durability{Replicas: 1, Timeout: 2*time.Second + 1}, "Timeout"},
		{dispatch.Durability{Replicas: 1, Timeout: -1}, "Timeout"},
	} {
		store := &replicating{Store: dispatchtest.NewStore(t)}
		_, err := dispatch.NewClient(store, dispatch.ClientOptions{Durability: c.durability})
		_, err2 := dispatch.New(store, dispatch.Options{Durability: c.durability, Logger: silent})
		if c.field == "" {
			if err != nil || err2 != nil {
				t.Errorf("%+v: %v, %v", c.durability, err, err2)
			}
			continue
		}
		requireField(t, err, "ClientOptions.Durability."+c.field)
		requireField(t, err2, "Options.Durability."+c.field)
	}
	store := &replicating{Store: dispatchtest.NewStore(t)}
	_, err := dispatch.NewClient(store, dispatch.ClientOptions{Durability: dispatch.Durability{Replicas: 1}})
	if err != nil || store.asked != (dispatch.Durability{Replicas: 1, Timeout: time.Second}) {
		t.Errorf("asked for %+v, %v", store.asked, err)
	}
	_, err = dispatch.NewClient(struct{ dispatch.Store }{store}, dispatch.ClientOptions{Durability: dispatch.Durability{Replicas: 1}})
	requireField(t, err, "ClientOptions.Durability.Replicas")
}

// What replicas have not got is there all the same, and workers are told of it.
func TestNotReplicated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		store := &replicating{Store: b.redis}
		runs := b.dispatcher(dispatch.Options{})
		started, causes := stubborn(runs)
		b.ok(runs.Start(t.Context()))
		c, err := dispatch.NewClient(store, dispatch.ClientOptions{Logger: silent, Durability: dispatch.Durability{Replicas: 1}})
		b.ok(err)
		synctest.Wait()

		store.behind = true
		short := func(err error) {
			t.Helper()
			requireError(t, err, dispatch.ErrNotReplicated)
			requireError(t, err, dispatch.ErrUncertain)
		}
		soon := func(what string, heard <-chan error) error {
			t.Helper()
			select {
			case cause := <-heard:
				return cause
			case <-time.After(time.Second):
				t.Fatalf("%s is not heard of", what)
				return nil
			}
		}
		runsSoon := func(what string) {
			t.Helper()
			select {
			case <-started:
			case <-time.After(time.Second):
				t.Fatalf("%s is not heard of", what)
			}
		}
		id, err := c.Enqueue(t.Context(), dispatch.Task{Kind: "k"})
		short(err)
		runsSoon("a task")
		short(c.RunTask(t.Context(), dispatch.DefaultQueue, id))
		runsSoon("a task that is to run at once")
		if cause := soon("a lost lease", causes); !errors.Is(cause, dispatch.ErrLeaseLost) {
			t.Errorf("the attempt before ended with %v", cause)
		}
		short(c.CancelTask(t.Context(), dispatch.DefaultQueue, id))
		if cause := soon("a cancellation", causes); !errors.Is(cause, dispatch.ErrCancelled) {
			t.Errorf("the attempt ended with %v", cause)
		}

		later, err := c.Enqueue(t.Context(), dispatch.Task{Kind: "k", Delay: time.Hour})
		short(err)
		short(c.RescheduleTask(t.Context(), dispatch.DefaultQueue, later, time.Time{}))
		runsSoon("a task that is due at once")
		short(c.CancelTask(t.Context(), dispatch.DefaultQueue, later))
		soon("a cancellation", causes)

		short(c.PauseQueue(t.Context(), dispatch.DefaultQueue))
		last, err := c.Enqueue(t.Context(), dispatch.Task{Kind: "k"})
		short(err)
		short(c.ResumeQueue(t.Context(), dispatch.DefaultQueue))
		runsSoon("the end of a pause")
		short(c.CancelTask(t.Context(), dispatch.DefaultQueue, last))
		soon("a cancellation", causes)

		// The store is not asked for the rest, whose tasks would each wait in vain.
		many := make([]dispatch.Task, 1000)
		for i := range many {
			many[i] = dispatch.Task{Kind: "k", Delay: time.Hour}
		}
		results, err := c.EnqueueMany(t.Context(), many)
		b.ok(err)
		short(results[0].Err)
		if err := results[len(results)-1].Err; err == nil || errors.Is(err, dispatch.ErrUncertain) {
			t.Errorf("the last one: %v", err)
		}
	})
}

// What a dispatcher does by itself waits for nobody: dead letters and the ticks of cron entries come while replicas are away.
func TestDispatcherDoesNotWaitForReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		store := &replicating{Store: b.redis}
		d, err := dispatch.New(store, dispatch.Options{Logger: silent, Durability: dispatch.Durability{Replicas: 1}})
		b.ok(err)
		t.Cleanup(func() { d.Stop() })
		ran := make(chan string, 10)
		d.Handle("k", dispatch.HandlerFunc(func(_ context.Context, task *dispatch.Task) error {
			ran <- task.Queue
			if task.Queue == "work" {
				return dispatch.SkipRetry(errors.New("no"))
			}
			return nil
		}))
		_, err = d.EnsureQueue(t.Context(), dispatch.Queue{Name: "work", DeadLetterQueue: "letters"})
		b.ok(err)
		b.ok(d.Schedule(t.Context(), dispatch.Entry{Name: "e", Spec: "@hourly", Task: dispatch.Task{Kind: "k", Queue: "work"}}))
		store.behind = true
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Hour + time.Second)
		if first, second := <-ran, <-ran; first != "work" || second != "letters" {
			t.Errorf("ran in %s, then in %s", first, second)
		}
	})
}
