package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

// patience is how long, in real time, a test waits for what must happen; it is never used up unless the test fails.
const patience = 10 * time.Second

var silent = slog.New(slog.DiscardHandler)

// noWait is a RetryConfig whose retries are due at once.
var noWait = dispatch.RetryConfig{MinBackoff: -1}

// env is a store and one dispatcher on it, whose time moves by Advance.
type env struct {
	testing.TB
	store *dispatchtest.Store
	d     *dispatch.Dispatcher
	seen  *events
}

func newEnv(t testing.TB, o dispatch.Options) *env {
	t.Helper()
	return another(t, dispatchtest.NewStore(t), o)
}

// another makes one more dispatcher on a store.
func another(t testing.TB, store *dispatchtest.Store, o dispatch.Options) *env {
	t.Helper()
	seen := new(events)
	if o.Observer == nil {
		o.Observer = seen.observe
	}
	if o.Logger == nil {
		o.Logger = silent
	}
	return &env{TB: t, store: store, d: dispatchtest.NewDispatcher(t, store, o), seen: seen}
}

// handle registers a plain function.
func (e *env) handle(kind string, f func(context.Context, *dispatch.Task) error) {
	e.d.Handle(kind, dispatch.HandlerFunc(f))
}

// run runs what is due.
func (e *env) run() {
	e.Helper()
	dispatchtest.RunUntilIdle(e, e.d)
}

// advance moves the time and runs what has fallen due.
func (e *env) advance(d time.Duration) {
	e.Helper()
	e.store.Advance(d)
	e.run()
}

func (e *env) enqueue(task dispatch.Task) dispatch.TaskID {
	e.Helper()
	id, err := e.d.Enqueue(e.Context(), task)
	if err != nil {
		e.Fatalf("Enqueue: %v", err)
	}
	return id
}

// task reads a task of the default queue.
func (e *env) task(id dispatch.TaskID) *dispatch.TaskInfo {
	e.Helper()
	info, err := e.d.Task(e.Context(), dispatch.DefaultQueue, id)
	if err != nil {
		e.Fatalf("Task(%s): %v", id, err)
	}
	return info
}

// gone demands that the default queue does not have a task any more.
func (e *env) gone(id dispatch.TaskID) {
	e.Helper()
	_, err := e.d.Task(e.Context(), dispatch.DefaultQueue, id)
	e.fails(err, dispatch.ErrTaskNotFound)
}

func (e *env) counts(queue string) dispatch.Counts {
	e.Helper()
	counts, err := e.d.Counts(e.Context(), queue)
	e.ok(err)
	return counts
}

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) fails(err, want error) {
	e.Helper()
	requireError(e, err, want)
}

// check looks at the invariants of a queue.
func (e *env) check(queue string) {
	e.Helper()
	e.ok(e.store.CheckInvariants(e.Context(), queue))
}

// events records what an observer is told.
type events struct {
	mu  sync.Mutex
	all []dispatch.Event
}

func (s *events) observe(e dispatch.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, e)
}

func (s *events) list() []dispatch.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// of is the outcomes of one task, in their order, with a space between.
func (s *events) of(id dispatch.TaskID) string {
	var words []string
	for _, e := range s.list() {
		if e.ID == id {
			words = append(words, string(e.Outcome))
		}
	}
	return strings.Join(words, " ")
}

// count is how many events had an outcome.
func (s *events) count(outcome dispatch.Outcome) int {
	n := 0
	for _, e := range s.list() {
		if e.Outcome == outcome {
			n++
		}
	}
	return n
}

// record is a list that handlers write to.
type record[T any] struct {
	mu   sync.Mutex
	list []T
}

func (r *record[T]) add(v T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, v)
}

func (r *record[T]) all() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// within waits for a channel in real time.
func within[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
	panic("unreachable")
}

// logged is a logger and what it has written.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// count is how many lines hold all of some words.
func (l *logged) count(words ...string) int {
	n := 0
	for line := range strings.Lines(l.String()) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			n++
		}
	}
	return n
}

func requireError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}
