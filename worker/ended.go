package worker

import (
	"context"
	"errors"
)

// endedError is an exchange that its context ended. Its text is the cause's; errors.Is finds the cause and is.
type endedError struct {
	is    error // context.DeadlineExceeded or context.Canceled
	cause error
}

func (e *endedError) Error() string   { return e.cause.Error() }
func (e *endedError) Unwrap() []error { return []error{e.cause, e.is} }

// because returns the reason for err: the end of ctx if it has ended, else err. An error that came by itself in the
// instant in which ctx ended is taken for its consequence; nobody can tell.
func because(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	ended := &endedError{is: context.Canceled, cause: context.Cause(ctx)}
	// A context that can be extended is cancelled by its owner's timer, with this as its cause.
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(ended.cause, context.DeadlineExceeded) {
		ended.is = context.DeadlineExceeded
	}
	return ended
}
