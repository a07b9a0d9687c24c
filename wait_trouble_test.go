package dispatch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

// A message is only a reason to look.
func TestForgedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.answers(dispatch.Options{})
		id := b.enqueue(d, dispatch.Task{Kind: "ok", Payload: []byte("1m"), Retention: time.Hour})
		done := b.wait(t.Context(), d.Client, id)
		for _, message := range []string{"default " + string(id), "", "default", "other " + string(id), "default x y z"} {
			b.server.Publish("dispatch:{~}:ended", message)
			b.open(done)
		}
		if n := b.store.count("Task"); n != 1 {
			t.Errorf("%d reads, want one", n)
		}
		if w := <-done; w.err != nil || w.info.State != dispatch.TaskSucceeded {
			t.Errorf("Wait returns %+v, %v", w.info, w.err)
		}
	})
}

// deaf is a store whose messages are lost.
type deaf struct{ dispatch.Store }

func (s deaf) ListenEnded(ctx context.Context, joined func(), _ func(string, []dispatch.TaskID)) error {
	return s.Store.ListenEnded(ctx, joined, func(string, []dispatch.TaskID) {})
}

func TestLostMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.answers(dispatch.Options{})
		c, err := dispatch.NewClient(deaf{b.store}, dispatch.ClientOptions{Logger: silent})
		b.ok(err)
		id := b.enqueue(d, dispatch.Task{Kind: "ok", Payload: []byte("65s"), Retention: time.Hour})
		began := time.Now()
		w := <-b.wait(t.Context(), c, id)
		if took := w.at.Sub(began); w.err != nil || took < 65*time.Second || took > 75*time.Second {
			t.Errorf("Wait returns %+v, %v after %v", w.info, w.err, took)
		}
	})
}

// What ends while the subscription is interrupted is seen as soon as it stands again.
func TestInterruptedSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.answers(dispatch.Options{})
		id := b.enqueue(d, dispatch.Task{Kind: "ok", Payload: []byte("3s"), Retention: time.Hour})
		broken := make(chan struct{})
		var calls atomic.Int64
		var log logged
		c, err := dispatch.NewClient(interrupted{b.store, broken, &calls}, dispatch.ClientOptions{Logger: log.logger()})
		b.ok(err)
		began := time.Now()
		done := b.wait(t.Context(), c, id)
		time.Sleep(2900 * time.Millisecond)
		close(broken)
		w := <-done
		// It breaks at 2.9 s, the task ends at 3 s, and it stands again at 3.9 s, before the first look by itself at 8 s.
		if took := w.at.Sub(began); w.err != nil || took < 3900*time.Millisecond || took > 4*time.Second {
			t.Errorf("Wait returns %+v, %v after %v", w.info, w.err, took)
		}
		if calls.Load() != 2 || log.count("a call fails", "listen for ended tasks") != 1 {
			t.Errorf("%d subscriptions; logged\n%s", calls.Load(), log.String())
		}
	})
}

// interrupted is a store whose first subscription breaks, and whose second takes a second to stand.
type interrupted struct {
	dispatch.Store
	broken chan struct{}
	calls  *atomic.Int64
}

func (s interrupted) ListenEnded(ctx context.Context, joined func(), ended func(string, []dispatch.TaskID)) error {
	if s.calls.Add(1) > 1 {
		time.Sleep(time.Second)
		return s.Store.ListenEnded(ctx, joined, ended)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.broken:
			cancel()
		case <-ctx.Done():
		}
	}()
	s.Store.ListenEnded(ctx, joined, ended)
	return errDown
}

// While the store is down Wait goes on, tries now and then, says so once for each kind of call, and honours its context.
func TestWaitDuringAnOutage(t *testing.T) {
	for _, down := range []string{"Await", "ListenEnded", "Task", "everything"} {
		t.Run(down, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				d := b.answers(dispatch.Options{})
				var log logged
				c := b.client(dispatch.ClientOptions{Logger: log.logger()})
				id := b.enqueue(d, dispatch.Task{Kind: "ok", Payload: []byte("10s"), Retention: time.Hour})
				outage := func(_ context.Context, call string, do func() error) error {
					if call == down || down == "everything" && (call == "Await" || call == "ListenEnded" || call == "Task") {
						return errDown
					}
					return do()
				}
				b.store.on(outage)
				began := time.Now()
				short, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				first, second := b.wait(short, c, id), b.wait(t.Context(), c, id)
				w := <-first
				if down == "ListenEnded" { // it is looked all the same, only later
					b.ok(w.err)
				} else {
					requireError(t, w.err, context.DeadlineExceeded)
				}
				if took := w.at.Sub(began); took > 30*time.Second {
					t.Errorf("Wait returns after %v", took)
				}
				time.Sleep(30 * time.Second)
				if n := b.store.count("Await", "ListenEnded", "Task"); n > 150 {
					t.Errorf("%d calls in a minute of outage: %v", n, b.store.snapshot())
				}
				for _, call := range []string{"look for ended tasks", "listen for ended tasks", "read a task that has ended"} {
					if n := log.count("a call fails", call); n > 1 {
						t.Errorf("%d warnings:\n%s", n, log.String())
					}
				}
				if log.count("a call fails") == 0 {
					t.Errorf("nothing is said:\n%s", log.String())
				}
				b.store.on(nil)
				w = <-second
				if took := w.at.Sub(began); w.err != nil || string(w.info.Progress.Result) != "answer" || took > 80*time.Second {
					t.Errorf("Wait returns %+v, %v after %v", w.info, w.err, took)
				}
			})
		})
	}
}

// The server itself refuses: the same, through the store.
func TestWaitDuringAServerOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.answers(dispatch.Options{})
		id := b.enqueue(d, dispatch.Task{Kind: "ok", Payload: []byte("50s"), Retention: time.Hour})
		time.Sleep(time.Second)
		c := b.client(dispatch.ClientOptions{})
		before := b.wait(t.Context(), c, id)
		b.server.SetError("LOADING Redis is loading the dataset in memory")
		during := b.wait(t.Context(), c, id)
		time.Sleep(30 * time.Second)
		b.server.SetError("")
		began := time.Now()
		for _, done := range []<-chan waited{before, during} {
			w := <-done
			if took := w.at.Sub(began); w.err != nil || w.info.State != dispatch.TaskSucceeded || took > 40*time.Second {
				t.Errorf("Wait returns %+v, %v after %v", w.info, w.err, took)
			}
		}
	})
}
