package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

var errTest = errors.New("went wrong")

func TestHandleFuncDecodesThePayload(t *testing.T) {
	type mail struct{ To string }
	e := newEnv(t, dispatch.Options{})
	var got record[mail]
	dispatch.HandleFunc(e.d, "mail", func(_ context.Context, m mail) error {
		got.add(m)
		return nil
	})
	task, err := dispatch.NewTask("mail", mail{To: "ada"})
	e.ok(err)
	id := e.enqueue(task)
	e.run()
	if all := got.all(); len(all) != 1 || all[0].To != "ada" {
		t.Errorf("the handler got %v", all)
	}
	if e.seen.of(id) != "succeeded" {
		t.Errorf("outcomes: %s", e.seen.of(id))
	}
	e.gone(id)
	e.check(dispatch.DefaultQueue)
}

func TestHandleFuncRetriesWhatDoesNotDecode(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	dispatch.HandleFunc(e.d, "mail", func(_ context.Context, n int) error {
		t.Errorf("the handler was called with %d", n)
		return nil
	})
	id := e.enqueue(dispatch.Task{Kind: "mail", Payload: []byte("not JSON")})
	e.run()
	last := lastAttempt(t, e.task(id))
	if e.seen.of(id) != "retry" || last.ErrorKind != dispatch.KindHandler || !strings.Contains(last.Error, `kind "mail"`) {
		t.Errorf("outcomes %s, attempt %+v", e.seen.of(id), last)
	}
	if strings.Contains(last.Error, "not JSON") {
		t.Errorf("the error quotes the payload: %q", last.Error)
	}
}

func lastAttempt(t testing.TB, info *dispatch.TaskInfo) dispatch.AttemptRecord {
	t.Helper()
	h := info.Progress.History
	if len(h) == 0 {
		t.Fatalf("task %s has no history", info.ID)
	}
	return h[len(h)-1]
}

func TestMiddlewareOrder(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	var calls record[string]
	layer := func(name string) func(dispatch.Handler) dispatch.Handler {
		return func(next dispatch.Handler) dispatch.Handler {
			return dispatch.HandlerFunc(func(ctx context.Context, task *dispatch.Task) error {
				calls.add(name + " in")
				defer calls.add(name + " out")
				return next.Handle(ctx, task)
			})
		}
	}
	e.d.Use(layer("a"), layer("b"))
	e.handle("k", func(context.Context, *dispatch.Task) error {
		calls.add("handler")
		return nil
	})
	e.d.Use(layer("c"))
	e.enqueue(dispatch.Task{Kind: "k"})
	e.run()
	if got, want := strings.Join(calls.all(), ", "), "a in, b in, c in, handler, c out, b out, a out"; got != want {
		t.Errorf("calls: %s\nwant:  %s", got, want)
	}
}

func TestPanicIsAFailedAttempt(t *testing.T) {
	var log logged
	e := newEnv(t, dispatch.Options{Logger: log.logger()})
	e.handle("k", func(_ context.Context, task *dispatch.Task) error { panicsHere(string(task.Payload)); return nil })
	id := e.enqueue(dispatch.Task{Kind: "k", Payload: []byte("boom")})
	ok := e.enqueue(dispatch.Task{Kind: "k"})
	e.run()
	last := lastAttempt(t, e.task(id))
	if last.ErrorKind != dispatch.KindPanic || !strings.HasPrefix(last.Error, "panic: boom\n") || !strings.Contains(last.Error, "panicsHere") {
		t.Errorf("the attempt keeps kind %q and\n%s", last.ErrorKind, last.Error)
	}
	if len(last.Error) > 4<<10 {
		t.Errorf("the attempt keeps %d bytes of error", len(last.Error))
	}
	if e.seen.of(id) != "retry" || e.seen.of(ok) != "succeeded" {
		t.Errorf("outcomes %q and %q", e.seen.of(id), e.seen.of(ok))
	}
	if log.count("delivery panicked", "task="+string(id)) != 1 || strings.Contains(log.String(), "boom") {
		t.Errorf("logged:\n%s", log.String())
	}
}

func panicsHere(value string) {
	if value != "" {
		panic(value)
	}
}

func TestPanicInMiddlewareAndWithAnError(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.d.Use(func(dispatch.Handler) dispatch.Handler {
		return dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { panic(dispatch.SkipRetry(errTest)) })
	})
	e.handle("k", func(context.Context, *dispatch.Task) error { return nil })
	id := e.enqueue(dispatch.Task{Kind: "k"})
	e.run()
	if e.seen.of(id) != "retry" || lastAttempt(t, e.task(id)).ErrorKind != dispatch.KindPanic {
		t.Errorf("outcomes %q: a panic is a failure, whatever its value is", e.seen.of(id))
	}
}

// A clock that is set back while a handler runs makes no attempt of less than no time, which nobody could read back.
func TestClockGoesBackDuringAnAttempt(t *testing.T) {
	t.Parallel()
	e := newEnv(t, dispatch.Options{})
	e.handle("work", func(ctx context.Context, _ *dispatch.Task) error {
		if a, _ := dispatch.AttemptFrom(ctx); a.Number > 1 {
			return nil
		}
		e.store.Clock.Advance(-5 * time.Minute)
		return errors.New("failed")
	})
	id := e.enqueue(dispatch.Task{Kind: "work", Retention: time.Hour})
	e.run()
	e.store.Clock.Advance(5 * time.Minute)
	e.advance(time.Minute)
	if got := e.seen.of(id); got != "retry succeeded" {
		t.Fatalf("outcomes are %q", got)
	}
	for _, a := range e.task(id).Progress.History {
		if a.Duration < 0 {
			t.Errorf("attempt %d has taken %v", a.Number, a.Duration)
		}
	}
}

// A handler that ends its goroutine, as FailNow of a test does, has failed; the process goes on.
func TestGoexitIsAFailedAttempt(t *testing.T) {
	e := newEnv(t, dispatch.Options{GlobalConcurrency: 1})
	e.handle("exit", func(context.Context, *dispatch.Task) error { runtime.Goexit(); return nil })
	e.handle("k", func(context.Context, *dispatch.Task) error { return nil })
	exit := e.enqueue(dispatch.Task{Kind: "exit"})
	var others []dispatch.TaskID
	for range 5 {
		others = append(others, e.enqueue(dispatch.Task{Kind: "k"}))
	}
	e.run()
	last := lastAttempt(t, e.task(exit))
	if e.seen.of(exit) != "retry" || last.ErrorKind != dispatch.KindPanic || last.Error == "" {
		t.Errorf("outcomes %q, attempt %+v", e.seen.of(exit), last)
	}
	for _, id := range others {
		if e.seen.of(id) != "succeeded" {
			t.Errorf("task %s: %q", id, e.seen.of(id))
		}
	}
}

func TestSkipRetryIsDead(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.handle("k", func(context.Context, *dispatch.Task) error {
		return fmt.Errorf("outer: %w", dispatch.SkipRetry(errTest))
	})
	id := e.enqueue(dispatch.Task{Kind: "k"})
	e.run()
	info := e.task(id)
	if e.seen.of(id) != "dead" || info.State != dispatch.TaskDead || info.Progress.Attempts != 1 {
		t.Errorf("outcomes %q, task %+v", e.seen.of(id), info)
	}
	if got := lastAttempt(t, info); got.Error != "outer: went wrong" {
		t.Errorf("the attempt keeps %q", got.Error)
	}
	if events := e.seen.list(); !errors.Is(events[0].Err, errTest) {
		t.Errorf("the observer gets the error %v", events[0].Err)
	}
}

func TestRetryAfterReplacesTheBackoff(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.handle("k", func(ctx context.Context, _ *dispatch.Task) error {
		if a, _ := dispatch.AttemptFrom(ctx); a.Number == 1 {
			return dispatch.RetryAfter(90*time.Minute, errTest)
		}
		return nil
	})
	id := e.enqueue(dispatch.Task{Kind: "k"})
	e.run()
	info := e.task(id)
	if want := dispatchtest.Start.Add(90 * time.Minute); !info.Due.Equal(want) || info.Progress.Attempts != 1 {
		t.Errorf("due %v with %d attempts, want %v with 1", info.Due, info.Progress.Attempts, want)
	}
	e.advance(90*time.Minute - time.Millisecond)
	if e.seen.of(id) != "retry" {
		t.Errorf("ran early: %s", e.seen.of(id))
	}
	e.advance(time.Millisecond)
	if e.seen.of(id) != "retry succeeded" {
		t.Errorf("outcomes %s", e.seen.of(id))
	}
}

func TestRetryAfterDoesNotSaveAnExhaustedTask(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.handle("k", func(context.Context, *dispatch.Task) error { return dispatch.RetryAfter(time.Second, errTest) })
	id := e.enqueue(dispatch.Task{Kind: "k", Retry: &dispatch.RetryConfig{MaxAttempts: 2}})
	e.run()
	e.advance(time.Second)
	if e.seen.of(id) != "retry dead" {
		t.Errorf("outcomes %s", e.seen.of(id))
	}
}

func TestSnoozeDoesNotCount(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	var numbers record[int]
	var tokens record[int64]
	e.handle("k", func(ctx context.Context, _ *dispatch.Task) error {
		a, _ := dispatch.AttemptFrom(ctx)
		numbers.add(a.Number)
		tokens.add(a.Token)
		if len(numbers.all()) < 4 {
			return dispatch.Snooze(time.Minute)
		}
		return nil
	})
	id := e.enqueue(dispatch.Task{Kind: "k", Retry: &dispatch.RetryConfig{MaxAttempts: 1}})
	e.run()
	for range 3 {
		if info := e.task(id); info.Progress.Attempts != 0 {
			t.Fatalf("a snoozed task has %d attempts", info.Progress.Attempts)
		}
		e.advance(time.Minute - time.Millisecond)
		e.advance(time.Millisecond)
	}
	if e.seen.of(id) != "released released released succeeded" || !slices.Equal(numbers.all(), []int{1, 1, 1, 1}) {
		t.Errorf("outcomes %s, attempt numbers %v", e.seen.of(id), numbers.all())
	}
	if all := tokens.all(); !slices.IsSorted(all) || len(slices.Compact(all)) != 4 {
		t.Errorf("tokens do not rise: %v", all)
	}
}

func TestAttemptFrom(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	var got record[dispatch.Attempt]
	e.handle("k", func(ctx context.Context, task *dispatch.Task) error {
		a, ok := dispatch.AttemptFrom(context.WithValue(ctx, queueKey{}, 1))
		if !ok || a.Task != task {
			t.Errorf("AttemptFrom: %+v, %v", a, ok)
		}
		got.add(a)
		return errTest
	})
	at := dispatchtest.Start.Add(time.Hour)
	id := e.enqueue(dispatch.Task{
		Kind: "k", ScheduleTime: at, Payload: []byte("p"), Metadata: map[string]string{"a": "b"}, Timeout: 90 * time.Second,
		Retry: &noWait,
	})
	e.store.Advance(time.Hour + time.Second)
	e.run()
	all := got.all()
	if len(all) != 25 {
		t.Fatalf("%d attempts", len(all))
	}
	first := all[0]
	if first.Number != 1 || first.Worker != e.d.Worker() || !first.ScheduledAt.Equal(at) || !first.StartedAt.Equal(at.Add(time.Second)) {
		t.Errorf("the first attempt is %+v", first)
	}
	task := first.Task
	if task.ID != id || task.Queue != "default" || string(task.Payload) != "p" || task.Metadata["a"] != "b" || task.Timeout != 90*time.Second {
		t.Errorf("its task is %+v", task)
	}
	for i := 1; i < len(all); i++ {
		if all[i].Number != i+1 || all[i].Token <= all[i-1].Token {
			t.Errorf("attempt %d is number %d with token %d after %d", i+1, all[i].Number, all[i].Token, all[i-1].Token)
		}
	}
	info := e.task(id)
	if info.State != dispatch.TaskDead || info.Progress.Attempts != 25 || len(info.Progress.History) != 10 {
		t.Errorf("in the end: %s, %d attempts, %d kept", info.State, info.Progress.Attempts, len(info.Progress.History))
	}
}

func TestRegistrationMistakesPanic(t *testing.T) {
	noop := dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { return nil })
	e := newEnv(t, dispatch.Options{})
	e.d.Handle("k", noop)
	e.d.Handle(strings.Repeat("x", 200), noop)
	panics(t, "empty kind", func() { e.d.Handle("", noop) })
	panics(t, "long kind", func() { e.d.Handle(strings.Repeat("x", 201), noop) })
	panics(t, "nil handler", func() { e.d.Handle("n", nil) })
	panics(t, "duplicate kind", func() { e.d.Handle("k", noop) })
	panics(t, "duplicate kind by HandleFunc", func() {
		dispatch.HandleFunc(e.d, "k", func(context.Context, int) error { return nil })
	})
	e.run()
	panics(t, "Handle after Start", func() { e.d.Handle("late", noop) })
	panics(t, "Use after Start", func() { e.d.Use() })
	e.enqueue(dispatch.Task{Kind: "k"})
	e.run() // a panic leaves no lock behind
}

func panics(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if p := recover(); p == nil {
			t.Errorf("%s does not panic", what)
		} else if text, ok := p.(string); !ok || !strings.HasPrefix(text, "dispatch: ") {
			t.Errorf("%s panics with %v", what, p)
		}
	}()
	f()
}

func TestUnknownKindWaitsForAnotherProcess(t *testing.T) {
	var log logged
	e := newEnv(t, dispatch.Options{Logger: log.logger()})
	e.handle("known", func(context.Context, *dispatch.Task) error { return nil })
	var ids []dispatch.TaskID
	for range 3 {
		ids = append(ids, e.enqueue(dispatch.Task{Kind: "new", Queue: dispatch.DefaultQueue}))
	}
	known := e.enqueue(dispatch.Task{Kind: "known"})
	e.run()
	for range 3 {
		e.advance(6 * time.Second)
	}
	if e.seen.of(known) != "succeeded" {
		t.Errorf("the known kind: %q", e.seen.of(known))
	}
	for _, id := range ids {
		if info := e.task(id); info.State != dispatch.TaskWaiting || info.Progress.Attempts != 0 {
			t.Errorf("task is %s with %d attempts, want waiting with none", info.State, info.Progress.Attempts)
		}
	}
	if n := log.count("has no handler", "kind=new"); n != 1 {
		t.Errorf("warned %d times:\n%s", n, log.String())
	}

	other := another(t, e.store, dispatch.Options{})
	other.handle("new", func(context.Context, *dispatch.Task) error { return nil })
	other.run()
	other.advance(6 * time.Second)
	for i := 0; i < 60 && len(other.seen.list()) < 3; i++ { // both look for them, and the first one puts them off
		other.advance(6 * time.Second)
	}
	for _, id := range ids {
		if other.seen.of(id) != "succeeded" {
			t.Errorf("task %s: %q at the process that knows it, %q at the other", id, other.seen.of(id), e.seen.of(id))
		}
	}
	e.check(dispatch.DefaultQueue)
}
