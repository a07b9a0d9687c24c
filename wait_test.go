package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

func (w *watched) Await(ctx context.Context, queue string, ids []dispatch.TaskID) ([]dispatch.TaskID, error) {
	return answer(w, ctx, "Await", func() ([]dispatch.TaskID, error) { return w.Store.Await(ctx, queue, ids) })
}

func (w *watched) ListenEnded(ctx context.Context, joined func(), ended func(string, []dispatch.TaskID)) error {
	return w.call(ctx, "ListenEnded", func() error { return w.Store.ListenEnded(ctx, joined, ended) })
}

func (w *watched) Task(ctx context.Context, queue string, id dispatch.TaskID) (*dispatch.TaskInfo, error) {
	return answer(w, ctx, "Task", func() (*dispatch.TaskInfo, error) { return w.Store.Task(ctx, queue, id) })
}

// waited is how a Wait has ended, and when.
type waited struct {
	info *dispatch.TaskInfo
	err  error
	at   time.Time
}

// wait begins to wait for a task of the default queue, and returns when everybody sleeps.
func (b *bubble) wait(ctx context.Context, c *dispatch.Client, id dispatch.TaskID) <-chan waited {
	done := make(chan waited, 1)
	go func() {
		info, err := c.Wait(ctx, "default", id)
		done <- waited{info, err, time.Now()}
	}()
	synctest.Wait()
	return done
}

// open demands that a Wait has not ended.
func (b *bubble) open(done <-chan waited) {
	b.Helper()
	synctest.Wait()
	select {
	case w := <-done:
		b.Fatalf("Wait returns %+v, %v", w.info, w.err)
	default:
	}
}

// answers is a dispatcher, started, whose handler of "k" takes as long as the payload says, and then "ok" answers, "bad"
// fails for good, and "flaky" fails three times, with a minute between.
func (b *bubble) answers(o dispatch.Options) *dispatch.Dispatcher {
	b.Helper()
	d := b.dispatcher(o)
	work := func(ctx context.Context, task *dispatch.Task) error {
		took, err := time.ParseDuration(string(task.Payload))
		b.ok(err)
		time.Sleep(took)
		fmt.Fprint(dispatch.ResultWriter(ctx), "answer")
		return nil
	}
	handle(d, "ok", work)
	handle(d, "bad", func(ctx context.Context, task *dispatch.Task) error {
		work(ctx, task)
		return dispatch.SkipRetry(errTest)
	})
	handle(d, "flaky", func(ctx context.Context, task *dispatch.Task) error {
		work(ctx, task)
		if a, _ := dispatch.AttemptFrom(ctx); a.Number < 4 {
			return dispatch.RetryAfter(time.Minute, errTest)
		}
		return nil
	})
	b.ok(d.Start(b.Context()))
	return d
}

// Wait returns the moment that the task ends, with what it has left.
func TestWait(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		takes      time.Duration
		retention  time.Duration
		after      time.Duration // from the enqueue on

		state  dispatch.TaskState // empty: ErrTaskNotFound
		result string
	}{
		{name: "succeeds", kind: "ok", takes: time.Minute, retention: time.Hour, after: time.Minute, state: dispatch.TaskSucceeded, result: "answer"},
		{name: "succeeds at once", kind: "ok", retention: time.Hour, state: dispatch.TaskSucceeded, result: "answer"},
		{name: "succeeds after a long time", kind: "ok", takes: 9 * time.Minute, retention: time.Hour, after: 9 * time.Minute, state: dispatch.TaskSucceeded, result: "answer"},
		{name: "succeeds in the end", kind: "flaky", takes: time.Second, retention: time.Hour, after: 3*time.Minute + 4*time.Second, state: dispatch.TaskSucceeded, result: "answer"},
		{name: "dies", kind: "bad", takes: time.Second, after: time.Second, state: dispatch.TaskDead},
		{name: "is not retained", kind: "ok", takes: time.Second, after: time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				d := b.answers(dispatch.Options{})
				client := b.client(dispatch.ClientOptions{})
				began := time.Now()
				id, err := client.Enqueue(t.Context(), dispatch.Task{Kind: c.kind, Payload: []byte(c.takes.String()), Retention: c.retention})
				b.ok(err)
				done := b.wait(t.Context(), client, id)
				also := b.wait(t.Context(), d.Client, id)
				for _, done := range []<-chan waited{done, also} {
					w := <-done
					if took := w.at.Sub(began); took != c.after {
						t.Errorf("Wait returns after %v, want %v", took, c.after)
					}
					if c.state == "" {
						requireError(t, w.err, dispatch.ErrTaskNotFound)
						continue
					}
					if b.ok(w.err); w.info.ID != id || w.info.State != c.state || string(w.info.Progress.Result) != c.result {
						t.Errorf("Wait returns %+v", w.info)
					}
				}
				if reads := b.store.count("Task"); reads != 2 {
					t.Errorf("%d reads for two Waits", reads)
				}
			})
		})
	}
}

// Of what has ended already, or never was, Wait tells at once.
func TestWaitForWhatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.answers(dispatch.Options{RetentionSucceeded: time.Hour})
		good := b.enqueue(d, dispatch.Task{Kind: "ok", Payload: []byte("0s")})
		bad := b.enqueue(d, dispatch.Task{Kind: "bad", Payload: []byte("0s")})
		gone := b.enqueue(d, dispatch.Task{Kind: "ok", Payload: []byte("0s"), Retention: -1})
		other := b.enqueue(d, dispatch.Task{Kind: "ok", Payload: []byte("1m"), Delay: time.Minute})
		time.Sleep(time.Second)
		for _, meanwhile := range []bool{false, true} { // another Wait runs
			if meanwhile {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				b.wait(ctx, d.Client, other)
			}
			began := time.Now()
			for id, state := range map[dispatch.TaskID]dispatch.TaskState{good: dispatch.TaskSucceeded, bad: dispatch.TaskDead} {
				info, err := d.Wait(t.Context(), "default", id)
				if b.ok(err); info.State != state {
					t.Errorf("Wait returns %+v", info)
				}
			}
			for queue, id := range map[string]dispatch.TaskID{"default": gone, "other": good} {
				_, err := d.Wait(t.Context(), queue, id)
				requireError(t, err, dispatch.ErrTaskNotFound)
			}
			_, err := d.Wait(t.Context(), "default", "never")
			requireError(t, err, dispatch.ErrTaskNotFound)
			if took := time.Since(began); took != 0 {
				t.Errorf("it takes %v", took)
			}
		}
		if _, err := d.Queue(t.Context(), "other"); !errors.Is(err, dispatch.ErrQueueNotFound) {
			t.Errorf("Wait creates a queue: %v", err)
		}
		var field *dispatch.FieldError
		for _, name := range [][2]string{{"", "a"}, {"~", "a"}, {"q", ""}, {"q", "a b"}} {
			if _, err := d.Wait(t.Context(), name[0], dispatch.TaskID(name[1])); !errors.As(err, &field) {
				t.Errorf("Wait for %q: %v", name, err)
			}
		}
	})
}

// Nothing but a Wait that runs costs anything.
func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		id, err := c.Enqueue(t.Context(), dispatch.Task{Kind: "k"})
		b.ok(err)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = c.Wait(ended, "default", id)
		requireError(t, err, context.Canceled)
		if n := b.store.count("ListenEnded", "Await", "Task"); n != 0 {
			t.Errorf("%d calls with a context that has ended", n)
		}
		for range 3 {
			first, endFirst := context.WithCancel(t.Context())
			second, endSecond := context.WithTimeout(t.Context(), time.Minute)
			one, two := b.wait(first, c, id), b.wait(second, c, id)
			endFirst()
			requireError(t, (<-one).err, context.Canceled)
			began := time.Now()
			requireError(t, (<-two).err, context.DeadlineExceeded)
			if took := time.Since(began); took != time.Minute {
				t.Errorf("the second returns after %v", took)
			}
			endSecond()
			synctest.Wait()
			calls := b.store.snapshot()
			time.Sleep(time.Hour)
			if more := b.store.since(calls); len(more) > 0 {
				t.Errorf("calls while nobody waits: %v", more)
			}
		}
		if n := b.store.count("ListenEnded"); n != 3 {
			t.Errorf("%d subscriptions, want 3", n)
		}
	})
}

// Many share one subscription, are looked after together, and cost one read each.
func TestManyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 500
		b := newBubble(t)
		d := b.answers(dispatch.Options{GlobalConcurrency: n, Queues: []string{"default"}})
		c := b.client(dispatch.ClientOptions{})
		tasks := make([]dispatch.Task, n)
		for i := range tasks {
			tasks[i] = dispatch.Task{Kind: "ok", Payload: []byte("100s"), Retention: time.Hour}
		}
		results, err := d.EnqueueMany(t.Context(), tasks)
		b.ok(err)
		began := time.Now()
		var waits sync.WaitGroup
		for _, r := range results {
			waits.Go(func() {
				info, err := c.Wait(t.Context(), "default", r.ID)
				if err != nil || info.ID != r.ID || string(info.Progress.Result) != "answer" {
					t.Errorf("Wait returns %+v, %v", info, err)
				}
			})
		}
		waits.Wait()
		if took := time.Since(began); took != 100*time.Second {
			t.Errorf("all have ended after %v", took)
		}
		calls := b.store.snapshot()
		// A look at 500 tasks takes three calls: one at the start, and one every 8 to 10 s. The first call of each may come
		// before the others have gathered.
		if calls["ListenEnded"] != 1 || calls["Task"] != n || calls["Await"] > 13*4 {
			t.Errorf("%d waits have made the calls %v", n, calls)
		}
	})
}

// Of a task that is deleted Wait learns at once, and of one that goes with others soon.
func TestWaitForWhatIsRemoved(t *testing.T) {
	for _, c := range []struct {
		name   string
		remove func(*dispatch.Client, context.Context, dispatch.TaskID) error
		within time.Duration
	}{
		{"task", func(c *dispatch.Client, ctx context.Context, id dispatch.TaskID) error {
			return c.DeleteTask(ctx, "default", id)
		}, 0},
		{"purge", func(c *dispatch.Client, ctx context.Context, _ dispatch.TaskID) error {
			return c.PurgeQueue(ctx, "default")
		}, 10 * time.Second},
		{"queue", func(c *dispatch.Client, ctx context.Context, _ dispatch.TaskID) error {
			return c.DeleteQueue(ctx, "default")
		}, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				client := b.client(dispatch.ClientOptions{})
				id, err := client.Enqueue(t.Context(), dispatch.Task{Kind: "k"})
				b.ok(err)
				done := b.wait(t.Context(), client, id)
				time.Sleep(time.Hour)
				b.open(done)
				began := time.Now()
				b.ok(c.remove(client, t.Context(), id))
				w := <-done
				requireError(t, w.err, dispatch.ErrTaskNotFound)
				if took := w.at.Sub(began); took > c.within {
					t.Errorf("it takes %v, want %v", took, c.within)
				}
			})
		})
	}
}

// Waits come and go while tasks end.
func TestWaitsThatComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.answers(dispatch.Options{})
		c := b.client(dispatch.ClientOptions{})
		var all sync.WaitGroup
		for i := range 100 {
			queue := fmt.Sprint("q", i%3)
			all.Go(func() {
				time.Sleep(time.Duration(i*7%50) * 100 * time.Millisecond)
				takes := time.Duration(i*13%40) * 50 * time.Millisecond
				id, err := d.Enqueue(t.Context(), dispatch.Task{Queue: queue, Kind: "ok", Payload: []byte(takes.String()), Retention: time.Hour})
				if err != nil {
					t.Error(err)
					return
				}
				patience := time.Duration(1+i%4) * 600 * time.Millisecond
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				began := time.Now()
				info, err := c.Wait(ctx, queue, id)
				switch took := time.Since(began); {
				case err == nil && (info.State != dispatch.TaskSucceeded || took < takes):
					t.Errorf("Wait returns %+v after %v", info, took)
				case err != nil && (!errors.Is(err, context.DeadlineExceeded) || took != patience || takes < patience-100*time.Millisecond):
					t.Errorf("Wait for %v of a task that takes %v: %v after %v", patience, takes, err, took)
				}
			})
		}
		all.Wait()
	})
}

// It works where time stands still, and for tasks with a URL.
func TestWaitForHTTP(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "created 7")
	}))
	defer server.Close()
	client, err := dispatch.NewClient(e.store, dispatch.ClientOptions{Logger: silent})
	e.ok(err)
	id := e.enqueue(dispatch.Task{URL: server.URL, Retention: time.Hour, Delay: time.Minute})
	done := make(chan waited, 2)
	for _, c := range []*dispatch.Client{client, e.d.Client} {
		go func() {
			info, err := c.Wait(t.Context(), "default", id)
			done <- waited{info: info, err: err}
		}()
	}
	e.advance(time.Minute)
	for range 2 {
		w := within(t, "Wait", done)
		if e.ok(w.err); string(w.info.Progress.Result) != "created 7" || w.info.Progress.History[0].Status != http.StatusCreated {
			t.Errorf("Wait returns %+v", w.info)
		}
	}
	if !e.store.Clock.Now().Equal(dispatchtest.Start.Add(time.Minute)) {
		t.Error("the time has moved")
	}
}
