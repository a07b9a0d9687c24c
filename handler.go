package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// Handler runs the tasks of one kind. A nil error means success. Any other is a failed attempt, repeated by the task's
// RetryConfig unless the error says otherwise: see SkipRetry, RetryAfter and Snooze. A panic is a failed attempt too.
//
// Handle is called by many goroutines at once. The same task may be handled more than once: a handler should be safe to
// repeat, or use the fencing token of AttemptFrom. ctx ends at the attempt's deadline; context.Cause(ctx) is then
// context.DeadlineExceeded, and otherwise ErrCancelled, ErrDraining or ErrLeaseLost. The task must not be modified.
type Handler interface {
	// Handle does the work of one attempt.
	Handle(ctx context.Context, t *Task) error
}

// HandlerFunc makes a Handler of a function.
type HandlerFunc func(ctx context.Context, t *Task) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, t *Task) error { return f(ctx, t) }

// Handle registers the handler of a kind; see Task.Kind for kinds without one. Like http.ServeMux it panics when the kind
// is empty or registered already or the handler is nil, and when the dispatcher was started.
func (d *Dispatcher) Handle(kind string, h Handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.started:
		panic("dispatch: Handle after Start")
	case kind == "" || len(kind) > maxKindBytes:
		panic(fmt.Sprintf("dispatch: Handle: kind %q is empty or longer than %d bytes", clip(kind, 60), maxKindBytes))
	case isNil(h):
		panic("dispatch: Handle: nil handler")
	case d.handlers[kind] != nil:
		panic(fmt.Sprintf("dispatch: Handle: kind %q is registered already", kind))
	}
	d.handlers[kind] = h
}

// HandleFunc registers a function for a kind whose payload is JSON of a T. A payload that does not decode is a failed
// attempt: a newer version of the handler may understand it. It panics as Handle does.
func HandleFunc[T any](d *Dispatcher, kind string, f func(ctx context.Context, v T) error) {
	if f == nil {
		panic("dispatch: HandleFunc: nil handler")
	}
	d.Handle(kind, HandlerFunc(func(ctx context.Context, t *Task) error {
		var v T
		if err := json.Unmarshal(t.Payload, &v); err != nil {
			return fmt.Errorf("payload of kind %q: %w", kind, err)
		}
		return f(ctx, v)
	}))
}

// Use wraps all handlers, those registered before and after it. The first middleware is the outermost. It panics when
// the dispatcher was started.
func (d *Dispatcher) Use(middleware ...func(Handler) Handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.started {
		panic("dispatch: Use after Start")
	}
	for _, m := range middleware {
		if m == nil {
			panic("dispatch: Use: nil middleware")
		}
	}
	d.middleware = append(d.middleware, middleware...)
}

// wrapHandlers puts the middleware around every handler, once, at the start. d.mu is held.
func (d *Dispatcher) wrapHandlers() {
	for kind, h := range d.handlers {
		for i := len(d.middleware) - 1; i >= 0; i-- {
			if h = d.middleware[i](h); h == nil {
				panic(fmt.Sprintf("dispatch: Use: a middleware returned no handler for kind %q", kind))
			}
		}
		d.handlers[kind] = h
	}
}

// Attempt is what a handler can know of the attempt it is in.
type Attempt struct {
	// Task is the task, not to be modified.
	Task *Task
	// Number is 1 for the first attempt.
	Number int
	// Token is the fencing token: it rises with every attempt of the queue's tasks. What a handler writes elsewhere can
	// carry it, so that a late write of an older attempt is refused there.
	Token int64
	// Worker is the process that runs the attempt.
	Worker cluster.WorkerID
	// ScheduledAt is when the attempt was due and StartedAt when it started, both by the store's clock.
	ScheduledAt, StartedAt time.Time
}

// AttemptFrom returns the attempt that ctx, the context of a handler, belongs to.
func AttemptFrom(ctx context.Context) (Attempt, bool) {
	run, ok := ctx.Value(attemptKey{}).(*running)
	if !ok {
		return Attempt{}, false
	}
	return run.describe(), true
}

// Extend gives the attempt that ctx belongs to more time: its deadline moves to d from now, and its lease with it. It
// may also shorten it. It returns ErrLeaseLost, and ctx ends, when the task has been given to another worker; and a
// *FieldError when ctx is no handler's or d is not between 1 s and 24 h.
func Extend(ctx context.Context, d time.Duration) error {
	run, ok := ctx.Value(attemptKey{}).(*running)
	if !ok {
		return fieldErrorf("Extend.ctx", "is not the context of a handler")
	}
	if d < minTimeout || d > maxTimeout {
		return fieldErrorf("Extend.d", "%v is not between %v and %v", d, minTimeout, maxTimeout)
	}
	return run.extend(ctx, d)
}
