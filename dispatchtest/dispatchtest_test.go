package dispatchtest_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

func newDispatcher(t testing.TB, store *dispatchtest.Store, o dispatch.Options) *dispatch.Dispatcher {
	if o.Logger == nil {
		o.Logger = silent
	}
	return dispatchtest.NewDispatcher(t, store, o)
}

func enqueue(t testing.TB, d *dispatch.Dispatcher, task dispatch.Task) dispatch.TaskID {
	t.Helper()
	id, err := d.Enqueue(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestTimeStandsStill(t *testing.T) {
	store := dispatchtest.NewStore(t)
	d := newDispatcher(t, store, dispatch.Options{})
	var runs atomic.Int64
	d.Handle("k", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error {
		runs.Add(1)
		return errors.New("again")
	}))
	enqueue(t, d, dispatch.Task{Kind: "k", Delay: time.Millisecond})
	dispatchtest.RunUntilIdle(t, d)
	if runs.Load() != 0 || !store.Clock.Now().Equal(dispatchtest.Start) {
		t.Fatalf("%d runs at %v", runs.Load(), store.Clock.Now())
	}
	store.Advance(time.Millisecond)
	for range 3 {
		dispatchtest.RunUntilIdle(t, d)
		if runs.Load() != 1 {
			t.Fatalf("%d runs, want one: a retry is not due", runs.Load())
		}
	}
	store.Advance(time.Second)
	dispatchtest.RunUntilIdle(t, d)
	if runs.Load() != 2 {
		t.Errorf("%d runs, want 2", runs.Load())
	}
}

// Advance moves the expiries of the store as well: a named task's tombstone ends in time.
func TestAdvanceMovesExpiries(t *testing.T) {
	store := dispatchtest.NewStore(t)
	d := newDispatcher(t, store, dispatch.Options{RetentionSucceeded: time.Minute})
	d.Handle("k", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { return nil }))
	enqueue(t, d, dispatch.Task{ID: "a", Kind: "k"})
	dispatchtest.RunUntilIdle(t, d)
	info, err := d.Task(t.Context(), dispatch.DefaultQueue, "a")
	if err != nil || info.State != dispatch.TaskSucceeded || !info.ExpiresAt.Equal(dispatchtest.Start.Add(time.Minute)) {
		t.Fatalf("the task is %+v, %v", info, err)
	}
	store.Advance(time.Hour)
	enqueue(t, d, dispatch.Task{ID: "b", Kind: "k"})
}

// awaitedOnce is a store that answers Await once: what ends later only a message tells.
type awaitedOnce struct {
	*dispatchtest.Store
	calls atomic.Int64
	first chan struct{} // closed after the first
}

func (s *awaitedOnce) Await(ctx context.Context, queue string, ids []dispatch.TaskID) ([]dispatch.TaskID, error) {
	if s.calls.Add(1) > 1 {
		return nil, errors.New("not again")
	}
	defer close(s.first)
	return s.Store.Await(ctx, queue, ids)
}

// A leap of time does not make the store forget who waits.
func TestAdvanceWhileSomebodyWaits(t *testing.T) {
	store := &awaitedOnce{Store: dispatchtest.NewStore(t), first: make(chan struct{})}
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	d := newDispatcher(t, store.Store, dispatch.Options{})
	d.Handle("k", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { return nil }))
	id := enqueue(t, d, dispatch.Task{Kind: "k", Delay: time.Hour, Retention: time.Minute})
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() {
		_, err := client.Wait(ctx, dispatch.DefaultQueue, id)
		done <- err
	}()
	<-store.first
	store.Advance(time.Hour)
	dispatchtest.RunUntilIdle(t, d)
	if err := <-done; err != nil {
		t.Errorf("Wait: %v", err)
	}
}

// What runs enqueues more: all of it is done when RunUntilIdle returns.
func TestRunUntilIdleRunsWhatFollows(t *testing.T) {
	store := dispatchtest.NewStore(t)
	d := newDispatcher(t, store, dispatch.Options{})
	var runs atomic.Int64
	dispatch.HandleFunc(d, "k", func(ctx context.Context, left int) error {
		runs.Add(1)
		if left == 0 {
			return nil
		}
		task, err := dispatch.NewTask("k", left-1)
		if err != nil {
			return err
		}
		task.Queue = []string{"a", "b", "c"}[left%3]
		_, err = d.Enqueue(ctx, task)
		return err
	})
	task, err := dispatch.NewTask("k", 30)
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, d, task)
	dispatchtest.RunUntilIdle(t, d)
	if runs.Load() != 31 {
		t.Errorf("%d runs, want 31", runs.Load())
	}
}

// Tasks that another program has enqueued are found, also when nobody announced them.
func TestRunUntilIdleFindsTheTasksOfOthers(t *testing.T) {
	store := dispatchtest.NewStore(t)
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := newDispatcher(t, store, dispatch.Options{})
	var runs atomic.Int64
	d.Handle("k", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { runs.Add(1); return nil }))
	for range 3 {
		before := runs.Load()
		if _, err := client.Enqueue(t.Context(), dispatch.Task{Kind: "k", Queue: "other"}); err != nil {
			t.Fatal(err)
		}
		dispatchtest.RunUntilIdle(t, d)
		if runs.Load() != before+1 {
			t.Errorf("%d runs after %d", runs.Load(), before)
		}
	}
}

// What cannot run now does not hold RunUntilIdle up.
func TestRunUntilIdleDoesNotWaitForLimits(t *testing.T) {
	for name, c := range map[string]struct {
		queue dispatch.Queue
		pause bool
		runs  int64
	}{
		"paused":       {pause: true},
		"rate":         {queue: dispatch.Queue{Rate: 0.001, Burst: 2}, runs: 2},
		"unknown kind": {queue: dispatch.Queue{}, runs: 10},
	} {
		t.Run(name, func(t *testing.T) {
			store := dispatchtest.NewStore(t)
			d := newDispatcher(t, store, dispatch.Options{})
			var runs atomic.Int64
			d.Handle("k", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { runs.Add(1); return nil }))
			c.queue.Name = "q"
			if _, err := d.EnsureQueue(t.Context(), c.queue); err != nil {
				t.Fatal(err)
			}
			if c.pause {
				if err := d.PauseQueue(t.Context(), "q"); err != nil {
					t.Fatal(err)
				}
			}
			for range 10 {
				enqueue(t, d, dispatch.Task{Kind: "k", Queue: "q"})
				enqueue(t, d, dispatch.Task{Kind: "nobody knows", Queue: "q", Delay: time.Millisecond})
			}
			for range 5 {
				dispatchtest.RunUntilIdle(t, d)
				if runs.Load() != c.runs {
					t.Fatalf("%d runs, want %d", runs.Load(), c.runs)
				}
				store.Advance(10 * time.Second)
			}
			dispatchtest.RunUntilIdle(t, d)
		})
	}
}

// All places of a limited queue are held by another worker: nothing to do here.
func TestRunUntilIdleWithAllPlacesTaken(t *testing.T) {
	store := dispatchtest.NewStore(t)
	d := newDispatcher(t, store, dispatch.Options{})
	d.Handle("k", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { return nil }))
	if _, err := d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", MaxConcurrent: 1}); err != nil {
		t.Fatal(err)
	}
	enqueue(t, d, dispatch.Task{Kind: "k", Queue: "q"})
	if _, err := store.Claim(t.Context(), dispatch.ClaimRequest{Queue: "q", Worker: "w-other", Seq: 1, Budget: 1, Grace: time.Second}); err != nil {
		t.Fatal(err)
	}
	enqueue(t, d, dispatch.Task{Kind: "k", Queue: "q"})
	dispatchtest.RunUntilIdle(t, d)
	if c, err := d.Counts(t.Context(), "q"); err != nil || c.Running != 1 || c.Ready != 1 {
		t.Errorf("counts are %+v, %v", c, err)
	}
	store.Advance(time.Hour)
	dispatchtest.RunUntilIdle(t, d)
	store.Advance(time.Second)
	dispatchtest.RunUntilIdle(t, d)
	if c, err := d.Counts(t.Context(), "q"); err != nil || c.TotalSucceeded != 2 {
		t.Errorf("counts are %+v, %v", c, err)
	}
}

// A dispatcher that was stopped is idle.
func TestRunUntilIdleAfterStop(t *testing.T) {
	store := dispatchtest.NewStore(t)
	d := newDispatcher(t, store, dispatch.Options{})
	d.Handle("k", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { return nil }))
	dispatchtest.RunUntilIdle(t, d)
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	id := enqueue(t, d, dispatch.Task{Kind: "k"})
	dispatchtest.RunUntilIdle(t, d)
	if info, err := d.Task(t.Context(), dispatch.DefaultQueue, id); err != nil || info.State != dispatch.TaskWaiting {
		t.Errorf("the task is %+v, %v", info, err)
	}
}

// The end of a test does not hang on handlers that wait for the end of their contexts, or that never started.
func TestCleanupEndsHandlers(t *testing.T) {
	for _, drain := range []time.Duration{0, time.Millisecond, time.Hour} {
		t.Run(drain.String(), func(t *testing.T) {
			said, failed := failing(t, func(t testing.TB) {
				store := dispatchtest.NewStore(t)
				d := newDispatcher(t, store, dispatch.Options{DrainTimeout: drain})
				started := make(chan struct{})
				d.Handle("k", dispatch.HandlerFunc(func(ctx context.Context, _ *dispatch.Task) error {
					close(started)
					<-ctx.Done()
					if !errors.Is(context.Cause(ctx), dispatch.ErrDraining) && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
						return errors.New("ended for another reason")
					}
					return ctx.Err()
				}))
				enqueue(t, d, dispatch.Task{Kind: "k", Timeout: 24 * time.Hour})
				if err := d.Start(t.Context()); err != nil {
					t.Errorf("Start: %v", err)
				}
				<-started
			})
			if failed {
				t.Errorf("the cleanup fails:\n%s", said)
			}
		})
	}
}

func TestCleanupTellsOfStubbornHandlers(t *testing.T) {
	release := make(chan struct{})
	said, failed := failing(t, func(t testing.TB) {
		store := dispatchtest.NewStore(t)
		d := newDispatcher(t, store, dispatch.Options{})
		started := make(chan struct{})
		d.Handle("k", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error {
			close(started)
			<-release
			return nil
		}))
		enqueue(t, d, dispatch.Task{Kind: "k"})
		if err := d.Start(t.Context()); err != nil {
			t.Errorf("Start: %v", err)
		}
		<-started
	})
	close(release)
	if !failed || !strings.Contains(said, "did not stop cleanly") || !strings.Contains(said, dispatch.ErrDrainTimeout.Error()) {
		t.Errorf("failed: %v\n%s", failed, said)
	}
}

// A handler can use its context for connections of the real world, whose deadlines are by the machine's clock.
func TestHandlerContextWorksWithConnections(t *testing.T) {
	receiver := dispatchtest.NewReceiver(t)
	store := dispatchtest.NewStore(t)
	d := newDispatcher(t, store, dispatch.Options{})
	d.Handle("k", dispatch.HandlerFunc(func(ctx context.Context, _ *dispatch.Task) error {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(receiver.URL, "http://"))
		if err != nil {
			t.Errorf("DialContext: %v", err)
			return err
		}
		conn.Close()
		req, err := http.NewRequestWithContext(ctx, "POST", receiver.URL, nil)
		if err != nil {
			return err
		}
		client := &http.Client{Transport: new(http.Transport), Timeout: time.Minute}
		defer client.CloseIdleConnections()
		resp, err := client.Do(req)
		if err != nil {
			t.Errorf("Do: %v", err)
			return err
		}
		return resp.Body.Close()
	}))
	enqueue(t, d, dispatch.Task{Kind: "k", Timeout: time.Second})
	dispatchtest.RunUntilIdle(t, d)
	if n := len(receiver.Deliveries()); n != 1 {
		t.Errorf("%d requests have arrived", n)
	}
}

func TestNewDispatcherRefusesBadOptions(t *testing.T) {
	said, failed := failing(t, func(t testing.TB) {
		dispatchtest.NewDispatcher(t, dispatchtest.NewStore(t), dispatch.Options{GlobalConcurrency: -1})
	})
	if !failed || !strings.Contains(said, "Options.GlobalConcurrency") {
		t.Errorf("failed: %v\n%s", failed, said)
	}
}
