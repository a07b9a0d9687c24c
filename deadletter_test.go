package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
	"github.com/dispatchkit/dispatch/worker"
)

// list is the tasks of a queue.
func (e *env) list(queue string) []*dispatch.TaskInfo {
	e.Helper()
	var all []*dispatch.TaskInfo
	for t, err := range e.d.Tasks(e.Context(), queue, dispatch.Filter{}) {
		e.ok(err)
		all = append(all, t)
	}
	return all
}

func (e *env) ensure(q dispatch.Queue) {
	e.Helper()
	_, err := e.d.EnsureQueue(e.Context(), q)
	e.ok(err)
}

// A copy of a task that dies waits in the dead letter queue, once, and tells where it comes from.
func TestDeadLetters(t *testing.T) {
	e := newEnv(t, dispatch.Options{Queues: []string{"q"}, Egress: worker.Egress{AllowPrivate: true}})
	e.ensure(dispatch.Queue{Name: "q", DeadLetterQueue: "dead", NoThrottle: true})
	e.handle("k", func(context.Context, *dispatch.Task) error { return errTest })
	receiver := dispatchtest.NewReceiver(t, 500, 503, 200)
	twice := &dispatch.RetryConfig{MaxAttempts: 2, MinBackoff: -1}
	handled := e.enqueue(dispatch.Task{Queue: "q", Kind: "k", Payload: []byte("p"), Retry: twice, Metadata: map[string]string{"a": "b"}})
	called := e.enqueue(dispatch.Task{Queue: "q", URL: receiver.URL, Method: "PUT", Payload: []byte("u"), Retry: twice})
	for range 2 {
		e.run()
	}
	letters := e.list("dead")
	if len(letters) != 2 || len(e.list("q")) != 2 {
		t.Fatalf("%d dead letters, %d dead tasks", len(letters), len(e.list("q")))
	}
	for _, l := range letters {
		origin, reason, payload := handled, string(dispatch.KindHandler), "p"
		if l.URL != "" {
			origin, reason, payload = called, string(dispatch.KindNon2xx), "u"
		}
		for name, want := range map[string]string{
			dispatch.HeaderDeadLetterQueue: "q", dispatch.HeaderDeadLetterTask: string(origin),
			dispatch.HeaderDeadLetterAttempts: "2", dispatch.HeaderDeadLetterReason: reason,
		} {
			if got := l.Metadata[name]; got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if string(l.Payload) != payload || l.State != dispatch.TaskWaiting || l.Progress.Attempts != 0 || l.Retry != nil {
			t.Errorf("the letter is %+v", l)
		}
		if l.Kind != "" && l.Metadata["a"] != "b" || l.URL != "" && l.Method != "PUT" {
			t.Errorf("the letter is %+v", l)
		}
	}
	e.check("q")
	e.check("dead")

	for _, l := range letters { // one may be mended
		e.ok(e.d.EditTask(t.Context(), "dead", l.ID, func(t *dispatch.Task) error { t.Timeout = time.Minute; return nil }))
	}
	later := another(t, e.store, dispatch.Options{Queues: []string{"dead"}, Egress: worker.Egress{AllowPrivate: true}})
	later.d.Handle("k", nothing)
	later.run()
	h := receiver.Deliveries()[2].Header
	for name, want := range map[string]string{
		dispatch.HeaderDeadLetterQueue: "q", dispatch.HeaderDeadLetterTask: string(called), dispatch.HeaderDeadLetterAttempts: "2",
		dispatch.HeaderDeadLetterReason: string(dispatch.KindNon2xx), dispatch.MetadataDeadLetterPath: "",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
}

// What tells of a letter's origin is Dispatch's own, and stays with it.
func TestDeadLetterOrigin(t *testing.T) {
	e := newEnv(t, dispatch.Options{Queues: []string{"q"}})
	e.ensure(dispatch.Queue{Name: "q", DeadLetterQueue: "dead"})
	e.handle("k", func(context.Context, *dispatch.Task) error { return dispatch.SkipRetry(errTest) })
	for _, name := range []string{dispatch.HeaderDeadLetterTask, dispatch.MetadataDeadLetterPath, "x_dispatch_dead-letter-queue"} {
		_, err := e.d.Enqueue(t.Context(), dispatch.Task{Queue: "q", Kind: "k", Metadata: map[string]string{name: "dead"}})
		requireField(t, err, "Task.Metadata")
	}
	e.enqueue(dispatch.Task{Queue: "q", Kind: "k", Metadata: map[string]string{"a": "b"}})
	e.run()
	letter := e.list("dead")[0]
	e.ok(e.d.EditTask(t.Context(), "dead", letter.ID, func(t *dispatch.Task) error {
		t.Metadata = map[string]string{"c": "d"}
		return nil
	}))
	edited := e.list("dead")[0].Metadata
	if edited[dispatch.MetadataDeadLetterPath] != "q" || edited["c"] != "d" || edited["a"] != "" {
		t.Errorf("the edited letter has %v", edited)
	}
}

// Each death makes a letter, also when nothing moves the time in between.
func TestDeadLetterOfEachDeath(t *testing.T) {
	e := newEnv(t, dispatch.Options{Queues: []string{"q"}})
	e.ensure(dispatch.Queue{Name: "q", DeadLetterQueue: "dead"})
	e.handle("k", func(context.Context, *dispatch.Task) error { return dispatch.SkipRetry(errTest) })
	e.enqueue(dispatch.Task{Queue: "q", Kind: "k"})
	for deaths := 1; deaths <= 3; deaths++ {
		e.run()
		if n := len(e.list("dead")); n != deaths {
			t.Errorf("%d letters after %d deaths", n, deaths)
		}
		n, err := e.d.ReplayDead(t.Context(), "q", dispatch.Filter{}, dispatch.ReplayOptions{})
		if n != 1 || err != nil {
			t.Fatalf("%d replayed, %v", n, err)
		}
	}
}

// A worker that dies between the copy and the end of the task is followed by one that makes no second copy.
func TestDeadLetterOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{Queues: []string{"q"}, LeaseGrace: time.Second})
		handle(d, "k", func(context.Context, *dispatch.Task) error { return dispatch.SkipRetry(errTest) })
		_, err := d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", DeadLetterQueue: "dead"})
		b.ok(err)
		begin := time.Now()
		b.store.onCall("Settle", func(_ context.Context, do func() error) error {
			if time.Since(begin) < 10*time.Second { // the lease is over by then, and the first outcome given up
				return errors.New("down")
			}
			return do()
		})
		id := b.enqueue(d, dispatch.Task{Queue: "q", Kind: "k", Timeout: time.Second})
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		counts, err := d.Counts(t.Context(), "dead")
		b.ok(err)
		if counts.Ready != 1 || b.seen.of(id) != "discarded retry dead" {
			t.Errorf("%d dead letters, outcomes %q", counts.Ready, b.seen.of(id))
		}
	})
}

// A lease that is lost for the last time makes a dead letter too.
func TestDeadLetterOfALostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{Queues: []string{"q"}})
		_, err := d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", DeadLetterQueue: "dead"})
		b.ok(err)
		b.enqueue(d, dispatch.Task{Queue: "q", Kind: "k", Timeout: time.Second, Retry: &dispatch.RetryConfig{MaxAttempts: 1}})
		_, err = b.redis.Claim(t.Context(), dispatch.ClaimRequest{Queue: "q", Worker: "w-gone", Seq: 1, Budget: 1, Grace: time.Second})
		b.ok(err)
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		letters, err := d.Counts(t.Context(), "dead")
		b.ok(err)
		dead, err := d.Counts(t.Context(), "q")
		b.ok(err)
		if letters.Ready != 1 || dead.Dead != 1 {
			t.Errorf("%d dead letters of %d", letters.Ready, dead.Dead)
		}
	})
}

// While the dead letter queue does not take the copy, the task stays live.
func TestDeadLetterInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{Queues: []string{"q"}})
		handle(d, "k", func(context.Context, *dispatch.Task) error { return dispatch.SkipRetry(errTest) })
		_, err := d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", DeadLetterQueue: "dead"})
		b.ok(err)
		b.store.onEnqueue("dead", func() error { return errors.New("down") })
		id := b.enqueue(d, dispatch.Task{Queue: "q", Kind: "k"})
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		info, err := d.Task(t.Context(), "q", id)
		b.ok(err)
		if info.State != dispatch.TaskRunning {
			t.Errorf("the task is %s", info.State)
		}
		b.store.onEnqueue("dead", nil)
		time.Sleep(time.Minute)
		if b.seen.of(id) != "dead" {
			t.Errorf("outcomes %q", b.seen.of(id))
		}
	})
}

// Settings that lead back are refused, and a cycle that two changes at once have made is not followed.
func TestDeadLetterCycles(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.handle("k", func(context.Context, *dispatch.Task) error { return dispatch.SkipRetry(errTest) })
	_, err := e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: "a", DeadLetterQueue: "a"})
	requireField(t, err, "Queue.DeadLetterQueue")
	_, err = e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: "a", DeadLetterQueue: "~"})
	requireField(t, err, "Queue.DeadLetterQueue")
	e.ensure(dispatch.Queue{Name: "a", DeadLetterQueue: "b"})
	e.ensure(dispatch.Queue{Name: "b", DeadLetterQueue: "c"})
	_, err = e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: "c", DeadLetterQueue: "a"})
	requireField(t, err, "Queue.DeadLetterQueue")
	e.ensure(dispatch.Queue{Name: "c"})
	requireField(t, e.d.UpdateQueue(t.Context(), "c", func(q *dispatch.Queue) error {
		q.DeadLetterQueue = "a"
		return nil
	}), "Queue.DeadLetterQueue")

	c, err := e.store.Queue(t.Context(), "c") // as a race would leave it
	e.ok(err)
	c.DeadLetterQueue = "a"
	_, err = e.store.ReplaceQueue(t.Context(), *c)
	e.ok(err)
	e.enqueue(dispatch.Task{Queue: "a", Kind: "k"})
	for range 5 {
		e.run()
	}
	for _, queue := range []string{"a", "b", "c"} {
		if n := len(e.list(queue)); n != 1 {
			t.Errorf("%d tasks in %s", n, queue)
		}
	}
}

// A full store takes no letter, and is drained all the same.
func TestDeadLetterInAFullStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{Queues: []string{"q"}})
		handle(d, "k", func(context.Context, *dispatch.Task) error { return dispatch.SkipRetry(errTest) })
		_, err := d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", DeadLetterQueue: "dead"})
		b.ok(err)
		b.store.onEnqueue("dead", func() error { return dispatch.ErrStoreFull })
		id := b.enqueue(d, dispatch.Task{Queue: "q", Kind: "k"})
		b.ok(d.Start(t.Context()))
		synctest.Wait()
		if b.seen.of(id) != "dead" {
			t.Errorf("outcomes %q", b.seen.of(id))
		}
	})
}

// A stop that has waited long enough gives back what cannot be buried.
func TestStopWhileBurying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{Queues: []string{"q"}, DrainTimeout: 2 * time.Second})
		handle(d, "k", func(context.Context, *dispatch.Task) error { return dispatch.SkipRetry(errTest) })
		_, err := d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", DeadLetterQueue: "dead"})
		b.ok(err)
		b.store.onEnqueue("dead", func() error { return errors.New("down") })
		id := b.enqueue(d, dispatch.Task{Queue: "q", Kind: "k"})
		b.ok(d.Start(t.Context()))
		time.Sleep(10 * time.Second)
		begin := time.Now()
		b.ok(d.Stop())
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("the stop took %v", took)
		}
		info, err := b.redis.Task(t.Context(), "q", id)
		b.ok(err)
		if info.State != dispatch.TaskWaiting || info.Progress.Attempts != 0 {
			t.Errorf("the task is %s after %d attempts", info.State, info.Progress.Attempts)
		}
	})
}

// An attempt that has lost its task buries nobody.
func TestNoLetterWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{Queues: []string{"q"}})
		goOn := make(chan struct{})
		handle(d, "k", func(context.Context, *dispatch.Task) error {
			<-goOn
			return dispatch.SkipRetry(errTest)
		})
		_, err := d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", DeadLetterQueue: "dead"})
		b.ok(err)
		b.ok(d.Start(t.Context()))
		for _, end := range []func(context.Context, string, dispatch.TaskID) error{d.CancelTask, d.DeleteTask} {
			id := b.enqueue(d, dispatch.Task{Queue: "q", Kind: "k"})
			synctest.Wait()
			b.ok(end(t.Context(), "q", id))
			goOn <- struct{}{}
			synctest.Wait()
		}
		_, err = d.Counts(t.Context(), "dead")
		requireError(t, err, dispatch.ErrQueueNotFound)
	})
}
