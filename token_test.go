package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
	"github.com/dispatchkit/dispatch/worker"
)

// canary stands for a token, and for what it takes to get one. It is nowhere but in the request.
const canary = "c4n4ry"

type tokenFunc func(ctx context.Context, url string) (string, error)

func (f tokenFunc) Token(ctx context.Context, url string) (string, error) { return f(ctx, url) }

// sources gives the default queue a source.
func sources(f tokenFunc) map[string]dispatch.TokenSource {
	return map[string]dispatch.TokenSource{dispatch.DefaultQueue: f}
}

// Every attempt has a token of its own, for the URL that it calls; the task's Authorization is not sent in any casing. A
// queue without a source sends what its tasks say.
func TestToken(t *testing.T) {
	receiver := dispatchtest.NewReceiver(t, 503, 200)
	var calls atomic.Int64
	var log logged
	all := sources(func(ctx context.Context, url string) (string, error) {
		if _, bounded := ctx.Deadline(); !bounded || url != receiver.URL+"/?a=b" {
			t.Errorf("asked for %q, bounded %v", url, bounded)
		}
		return fmt.Sprint(canary, calls.Add(1)), nil
	})
	e := newEnv(t, dispatch.Options{TokenSources: all, Logger: log.logger(), RetentionSucceeded: 24 * time.Hour})
	delete(all, dispatch.DefaultQueue) // the dispatcher has its own copy
	task := dispatch.Task{
		URL: receiver.URL + "/?a=b", Retry: &noWait,
		Header: http.Header{"AUTHORIZATION": {"Basic theirs"}, "authorization": {"Basic theirs"}, "X-Other": {"kept"}},
	}
	id := e.enqueue(task)
	e.run()
	e.advance(time.Hour)
	dispatchtest.RequireDelivered(t, receiver, id, 2)
	for i, d := range receiver.Deliveries() {
		want := fmt.Sprint("Bearer ", canary, i+1)
		if got := d.Header.Values("Authorization"); len(got) != 1 || got[0] != want || d.Header.Get("X-Other") != "kept" {
			t.Errorf("attempt %d: Authorization is %q, want %q", i+1, got, want)
		}
	}
	if text := fmt.Sprintf("%+v %+v %s", e.task(id), e.seen.list(), log.String()); strings.Contains(text, canary) {
		t.Errorf("the token is in %s", text)
	}

	task.Queue = "other"
	e.enqueue(task)
	e.run()
	if got := receiver.Deliveries()[2].Header.Values("Authorization"); calls.Load() != 2 || len(got) != 2 || got[0] != "Basic theirs" {
		t.Errorf("Authorization is %q after %d calls", got, calls.Load())
	}
}

// An attempt without a token sends nothing and is repeated, and nothing that the source has said is kept.
func TestNoToken(t *testing.T) {
	for name, c := range map[string]struct {
		source tokenFunc
		kind   dispatch.ErrorKind
		says   string
	}{
		"error":       {func(context.Context, string) (string, error) { return canary, errors.New(canary) }, dispatch.KindConfig, "its source failed"},
		"final error": {func(context.Context, string) (string, error) { return "", dispatch.SkipRetry(errors.New(canary)) }, dispatch.KindConfig, "its source failed"},
		"empty":       {func(context.Context, string) (string, error) { return "", nil }, dispatch.KindConfig, "empty"},
		"newline":     {func(context.Context, string) (string, error) { return canary + "\r\nX-Injected: a", nil }, dispatch.KindConfig, "visible"},
		"line end":    {func(context.Context, string) (string, error) { return canary + "\n", nil }, dispatch.KindConfig, "visible"},
		"NUL":         {func(context.Context, string) (string, error) { return canary + "\x00", nil }, dispatch.KindConfig, "visible"},
		"space":       {func(context.Context, string) (string, error) { return "Bearer " + canary, nil }, dispatch.KindConfig, "visible"},
		"not ASCII":   {func(context.Context, string) (string, error) { return canary + "ä", nil }, dispatch.KindConfig, "visible"},
		"panic":       {func(context.Context, string) (string, error) { panic(canary) }, dispatch.KindPanic, "token source panicked"},
		"nil panic":   {func(context.Context, string) (string, error) { panic(nil) }, dispatch.KindPanic, "token_test.go"},
	} {
		t.Run(name, func(t *testing.T) {
			var log logged
			var well atomic.Bool
			e := newEnv(t, dispatch.Options{Logger: log.logger(), TokenSources: sources(func(ctx context.Context, url string) (string, error) {
				if well.Load() {
					return "good", nil
				}
				return c.source(ctx, url)
			})})
			receiver := dispatchtest.NewReceiver(t)
			id := e.enqueue(dispatch.Task{URL: receiver.URL})
			e.run()
			info := e.task(id)
			if last := lastAttempt(t, info); last.ErrorKind != c.kind || !strings.Contains(last.Error, c.says) || last.Status != 0 {
				t.Errorf("attempt %+v", last)
			}
			if len(receiver.Deliveries()) != 0 || e.seen.of(id) != "retry" {
				t.Errorf("%d deliveries, outcomes %q", len(receiver.Deliveries()), e.seen.of(id))
			}
			if text := fmt.Sprintf("%+v %+v %#v %s", info, e.seen.list(), e.seen.list()[0].Err, log.String()); strings.Contains(text, canary) {
				t.Errorf("what the source has said is in %s", text)
			}
			well.Store(true)
			e.advance(time.Second)
			dispatchtest.RequireDelivered(t, receiver, id, 1)
		})
	}
}

// The source has as long as the attempt, and an attempt that is taken away from it costs the task nothing.
func TestTokenSourceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{
			DrainTimeout: time.Second,
			TokenSources: sources(func(ctx context.Context, _ string) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}),
			HTTPClient: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
				t.Error("a request is sent")
				return nil, errTest
			})},
		})
		id := b.enqueue(d, dispatch.Task{URL: "http://example.com/", Timeout: 15 * time.Second})
		b.ok(d.Start(t.Context()))
		time.Sleep(15*time.Second + time.Second/2)
		info, err := d.Task(t.Context(), dispatch.DefaultQueue, id)
		b.ok(err)
		if last := lastAttempt(t, info); last.ErrorKind != dispatch.KindTimeout || last.Duration != 15*time.Second {
			t.Errorf("attempt %+v", last)
		}
		time.Sleep(time.Second) // the next attempt runs
		b.ok(d.Stop())
		info, err = d.Task(t.Context(), dispatch.DefaultQueue, id)
		if b.seen.of(id) != "retry released" || err != nil || info.Progress.Attempts != 1 {
			t.Errorf("outcomes %q, task %+v, %v", b.seen.of(id), info, err)
		}
	})
}

// Attempts of one queue ask at the same time.
func TestTokensAreAskedForTogether(t *testing.T) {
	const n = 5
	arrived, gate := make(chan struct{}, n), make(chan struct{})
	e := newEnv(t, dispatch.Options{TokenSources: sources(func(context.Context, string) (string, error) {
		arrived <- struct{}{}
		<-gate
		return "good", nil
	})})
	receiver := dispatchtest.NewReceiver(t)
	for range n {
		e.enqueue(dispatch.Task{URL: receiver.URL})
	}
	e.ok(e.d.Start(t.Context()))
	for range n {
		within(t, "all calls at once", arrived)
	}
	close(gate)
	e.run()
	if got := len(receiver.Deliveries()); got != n {
		t.Errorf("%d deliveries, want %d", got, n)
	}
}

func TestTokenSourcesAreChecked(t *testing.T) {
	good := tokenFunc(func(context.Context, string) (string, error) { return "good", nil })
	store := dispatchtest.NewStore(t)
	for name, bad := range map[string]map[string]dispatch.TokenSource{
		"nil": {"q": nil}, "nil function": {"q": tokenFunc(nil)}, "nil pointer": {"q": (*tokenFunc)(nil)},
		"no name": {"": good}, "bad name": {"a}b": good}, "one of two": {"a": good, "b": nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dispatch.New(store, dispatch.Options{TokenSources: bad})
			requireField(t, err, "Options.TokenSources")
		})
	}
}

// A receiver that quotes the token, in an error or in its result, does not get it into the store.
func TestTokenIsNotKept(t *testing.T) {
	for _, status := range []int{200, 401} {
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			fmt.Fprintf(w, "you have sent %s", r.Header.Get("Authorization"))
			fmt.Fprint(w, strings.Repeat(".", 1024-len("you have sent Bearer s3cret")-5), "s3cret") // cut within
		}))
		t.Cleanup(receiver.Close)
		source := tokenFunc(func(context.Context, string) (string, error) { return "s3cret", nil })
		e := newEnv(t, dispatch.Options{RetentionSucceeded: time.Hour, Egress: worker.Egress{AllowPrivate: true},
			TokenSources: map[string]dispatch.TokenSource{dispatch.DefaultQueue: source}})
		id := e.enqueue(dispatch.Task{URL: receiver.URL})
		e.run()
		info := e.task(id)
		if kept := fmt.Sprintf("%+v %s", info, info.Progress.Result); strings.Contains(kept, "s3cre") || !strings.Contains(kept, "[token]") {
			t.Errorf("status %d: kept is %s", status, kept)
		}
	}
}
