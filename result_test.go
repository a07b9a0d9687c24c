package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

const maxResult = 64 << 10

// refuses demands that a writer keeps nothing of p.
func refuses(t testing.TB, w io.Writer, p, field, says string) {
	t.Helper()
	n, err := w.Write([]byte(p))
	var bad *dispatch.FieldError
	if n != 0 || !errors.As(err, &bad) || bad.Field != field || !strings.Contains(bad.Problem, says) {
		t.Errorf("Write of %d bytes: %d, %v; want a *FieldError of %s that says %q", len(p), n, err, field, says)
	}
}

func TestResult(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.d.Use(func(h dispatch.Handler) dispatch.Handler {
		return dispatch.HandlerFunc(func(ctx context.Context, task *dispatch.Task) error {
			return h.Handle(context.WithValue(ctx, queueKey{}, "a context of the middleware's"), task)
		})
	})
	e.handle("k", func(ctx context.Context, task *dispatch.Task) error {
		fmt.Fprintf(dispatch.ResultWriter(ctx), "<%s", task.Payload)
		dispatch.ResultWriter(ctx).Write(nil)
		fmt.Fprint(dispatch.ResultWriter(ctx), "\x00\xff>")
		return nil
	})
	e.handle("silent", succeed)
	kept := e.enqueue(dispatch.Task{Kind: "k", Payload: []byte("p"), Retention: time.Hour})
	gone := e.enqueue(dispatch.Task{Kind: "k"})
	without := e.enqueue(dispatch.Task{Kind: "silent", Retention: time.Hour})
	e.run()
	info := e.task(kept)
	if info.State != dispatch.TaskSucceeded || string(info.Progress.Result) != "<p\x00\xff>" || info.Progress.Attempts != 1 {
		t.Errorf("the task is %+v", info)
	}
	e.gone(gone)
	if info := e.task(without); info.State != dispatch.TaskSucceeded || info.Progress.Result != nil {
		t.Errorf("the task without a result is %+v", info)
	}
	for info, err := range e.d.Tasks(t.Context(), "default", dispatch.Filter{Kind: "k"}) {
		if e.ok(err); string(info.Progress.Result) != "<p\x00\xff>" {
			t.Errorf("listed as %+v", info)
		}
	}
	e.check("default")
}

// What a failed attempt has written is dropped: by the next one, and at the end.
func TestResultOfFailedAttempts(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.handle("k", func(ctx context.Context, task *dispatch.Task) error {
		a, _ := dispatch.AttemptFrom(ctx)
		fmt.Fprint(dispatch.ResultWriter(ctx), a.Number)
		switch {
		case string(task.Payload) == "panics":
			panic("oh")
		case string(task.Payload) == "fails" || a.Number < 3:
			return errTest
		}
		return nil
	})
	retry := &dispatch.RetryConfig{MaxAttempts: 3, MinBackoff: -1}
	good := e.enqueue(dispatch.Task{Kind: "k", Retry: retry, Retention: time.Hour})
	fails := e.enqueue(dispatch.Task{Kind: "k", Payload: []byte("fails"), Retry: retry, Retention: time.Hour})
	panics := e.enqueue(dispatch.Task{Kind: "k", Payload: []byte("panics"), Retry: retry, Retention: time.Hour})
	e.run()
	if info := e.task(good); string(info.Progress.Result) != "3" || info.Progress.Attempts != 3 {
		t.Errorf("the task is %+v", info)
	}
	for _, id := range []dispatch.TaskID{fails, panics} {
		if info := e.task(id); info.State != dispatch.TaskDead || info.Progress.Result != nil {
			t.Errorf("the dead task is %+v", info)
		}
	}
}

func TestResultOfHTTP(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	var answers int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if answers++; answers == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, "not yet")
			return
		}
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, strings.Repeat("r", 2000))
	}))
	defer server.Close()
	id := e.enqueue(dispatch.Task{URL: server.URL, Retry: &noWait, Retention: time.Hour})
	e.run()
	info := e.task(id)
	if info.State != dispatch.TaskSucceeded || string(info.Progress.Result) != strings.Repeat("r", 1024) {
		t.Errorf("the task is %+v", info)
	}
	if h := info.Progress.History; len(h) != 2 || h[0].Error != "not yet" || h[1].Status != http.StatusAccepted || h[1].Error != "" {
		t.Errorf("its history is %+v", info.Progress.History)
	}
}

func TestResultLimit(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	whole := strings.Repeat("0123456789abcdef", maxResult/16)
	e.handle("k", func(ctx context.Context, task *dispatch.Task) error {
		w := dispatch.ResultWriter(ctx)
		refuses(t, w, whole+"x", "ResultWriter", "65536")
		for _, part := range []string{whole[:1000], whole[1000 : maxResult-5]} {
			if n, err := io.WriteString(w, part); n != len(part) || err != nil {
				t.Errorf("Write of %d bytes: %d, %v", len(part), n, err)
			}
			refuses(t, dispatch.ResultWriter(ctx), whole, "ResultWriter", "65536")
		}
		refuses(t, w, "123456", "ResultWriter", "65536")
		if n, err := io.WriteString(w, whole[maxResult-5:]); n != 5 || err != nil {
			t.Errorf("Write of the last 5 bytes: %d, %v", n, err)
		}
		refuses(t, w, "x", "ResultWriter", "65536")
		if n, err := w.Write(nil); n != 0 || err != nil {
			t.Errorf("Write of nothing: %d, %v", n, err)
		}
		return nil
	})
	var ids []dispatch.TaskID
	for range 20 { // more than one settle carries
		ids = append(ids, e.enqueue(dispatch.Task{Kind: "k", Retention: time.Hour}))
	}
	e.run()
	for _, id := range ids {
		if info := e.task(id); string(info.Progress.Result) != whole {
			t.Errorf("%s is %s with a result of %d bytes", id, info.State, len(info.Progress.Result))
		}
	}
}

// The writer keeps a copy, of any number of goroutines.
func TestResultOfManyGoroutines(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.handle("k", func(ctx context.Context, _ *dispatch.Task) error {
		var wait sync.WaitGroup
		for i := range 26 {
			wait.Go(func() {
				p := bytes.Repeat([]byte{'a' + byte(i)}, 50)
				for range 10 {
					dispatch.ResultWriter(ctx).Write(p)
				}
				clear(p)
			})
		}
		wait.Wait()
		return nil
	})
	id := e.enqueue(dispatch.Task{Kind: "k", Retention: time.Hour})
	e.run()
	got := e.task(id).Progress.Result
	for p := range slices.Chunk(got, 50) {
		if !bytes.Equal(p, bytes.Repeat(p[:1], 50)) || p[0] < 'a' || p[0] > 'z' {
			t.Fatalf("a write is torn: %q", p)
		}
	}
	if len(got) != 26*500 {
		t.Errorf("the result has %d bytes", len(got))
	}
}

// A handler that goes on writing after it has returned changes nothing.
func TestResultAfterTheEnd(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	writers := make(chan io.Writer, 1)
	stop := make(chan struct{})
	var late sync.WaitGroup
	e.handle("k", func(ctx context.Context, _ *dispatch.Task) error {
		w := dispatch.ResultWriter(ctx)
		io.WriteString(w, "result")
		for range 3 {
			late.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						w.Write(nil) // races with the end, and adds nothing
					}
				}
			})
		}
		writers <- w
		return nil
	})
	id := e.enqueue(dispatch.Task{Kind: "k", Retention: time.Hour})
	e.run()
	close(stop)
	late.Wait()
	refuses(t, <-writers, "late", "ResultWriter.ctx", "ended")
	if got := e.task(id).Progress.Result; string(got) != "result" {
		t.Errorf("the result is %q", got)
	}
}

func TestResultOutsideOfHandlers(t *testing.T) {
	refuses(t, dispatch.ResultWriter(t.Context()), "x", "ResultWriter.ctx", "handler")
	refuses(t, dispatch.ResultWriter(t.Context()), "", "ResultWriter.ctx", "handler")
}
