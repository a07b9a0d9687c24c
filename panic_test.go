package dispatch_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

type nilError struct{ text string }

func (e *nilError) Error() string { return e.text } // a nil pointer in an error panics here

// Code of the user's that panics outside of a handler fails its attempt and nothing else.
func TestPanicsOfErrorsAndTransports(t *testing.T) {
	e := newEnv(t, dispatch.Options{HTTPClient: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		panic("boom")
	})}})
	e.handle("k", func(context.Context, *dispatch.Task) error {
		var none *nilError
		return none
	})
	byHandler := e.enqueue(dispatch.Task{Kind: "k"})
	byTransport := e.enqueue(dispatch.Task{URL: "http://example.com/"})
	e.run()
	for _, id := range []dispatch.TaskID{byHandler, byTransport} {
		if got := e.seen.of(id); got != "retry" {
			t.Errorf("task %s: outcomes %q, want retry", id, got)
		}
	}
}

// A delay beyond all bounds is as long as delays can be, not none.
func TestHugeDelays(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.handle("snooze", func(context.Context, *dispatch.Task) error { return dispatch.Snooze(math.MaxInt64) })
	e.handle("after", func(context.Context, *dispatch.Task) error {
		return dispatch.RetryAfter(math.MaxInt64, errors.New("much later"))
	})
	snoozed, after := e.enqueue(dispatch.Task{Kind: "snooze"}), e.enqueue(dispatch.Task{Kind: "after"})
	e.run()
	e.store.Advance(365 * 24 * time.Hour)
	e.run()
	if s, a := e.seen.of(snoozed), e.seen.of(after); s != "released" || a != "retry" {
		t.Errorf("outcomes %q and %q, want one each", s, a)
	}
}
