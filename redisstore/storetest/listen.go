package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

var listenCases = []testcase{
	{"every listener hears every message", listenersHear},
	{"messages tell of changed settings", listenersHearChanges},
	{"it ends with its context", listenEnds},
}

// patience bounds what only a broken store would need. No case waits for it to pass.
const patience = 20 * time.Second

// listener is one call of Listen.
type listener struct {
	joined chan struct{}
	heard  chan []dispatch.Hint
	end    context.CancelFunc
	ended  chan error
}

// listen returns when the listener has joined.
func (e *env) listen() *listener {
	e.Helper()
	ctx, cancel := context.WithCancel(e.ctx)
	l := &listener{
		joined: make(chan struct{}, 16), heard: make(chan []dispatch.Hint, 16), end: cancel, ended: make(chan error, 1),
	}
	go func() {
		l.ended <- e.store.Listen(ctx, func() { l.joined <- struct{}{} }, func(h []dispatch.Hint) { l.heard <- h })
	}()
	receive(e, "joined", l.joined)
	return l
}

// stop ends the listener and waits for it.
func (l *listener) stop(e *env) {
	e.Helper()
	l.end()
	if err := receive(e, "end", l.ended); !errors.Is(err, context.Canceled) {
		e.Errorf("it ended with %v", err)
	}
}

// receive takes what must come.
func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case v := <-from:
		return v
	case <-ctx.Done():
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// hears takes messages until these hints have come.
func (l *listener) hears(e *env, want ...dispatch.Hint) {
	e.Helper()
	var got []dispatch.Hint
	for len(got) < len(want) {
		got = append(got, receive(e, "message", l.heard)...)
	}
	equal(e, "heard", got, want)
}

func listenersHear(e *env) {
	a, b := e.listen(), e.listen()
	defer a.stop(e)
	defer b.stop(e)
	first := []dispatch.Hint{hint("x", 0), hint("y", 1500*time.Millisecond), hint("a-long.name_9", 240*time.Hour)}
	e.announce(first...)
	a.hears(e, first...)
	b.hears(e, first...)
	e.announce(hint("x", time.Hour)) // sent although sooner is noted
	a.hears(e, hint("x", time.Hour))
	b.hears(e, hint("x", time.Hour))
	e.announce(hint("late", -time.Minute))
	a.hears(e, hint("late", 0))
}

func listenersHearChanges(e *env) {
	l := e.listen()
	defer l.stop(e)
	h := dispatch.Hint{Queue: queue, Changed: true}
	e.announce(h, hint("other", time.Second))
	l.hears(e, h, hint("other", time.Second))
}

func listenEnds(e *env) {
	l := e.listen()
	l.stop(e)
	e.announce(hint("x", 0))
	select {
	case h := <-l.heard:
		e.Errorf("heard %v after the end", h)
	default:
	}
	ended, cancel := context.WithCancel(e.ctx)
	cancel()
	err := e.store.Listen(ended, func() {}, func([]dispatch.Hint) {})
	e.fails("with a context that has ended", err, context.Canceled)
}
