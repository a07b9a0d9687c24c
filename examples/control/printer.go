package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/dispatchkit/dispatch"
)

const (
	queue   = "printer"
	endless = "pi"
)

// printer is the process that works on the queue. It prints whatever it is sent.
type printer struct {
	jammed  atomic.Bool
	started chan string // what is endless, when it has begun
	stopped chan error  // and why its context ended
}

// startPrinter makes the queue and starts a dispatcher; stop ends that.
func startPrinter(ctx context.Context, store dispatch.Store) (p *printer, stop func() error, err error) {
	p = &printer{started: make(chan string, 1), stopped: make(chan error, 1)}
	// Tasks that have succeeded are kept for an hour, so that they can be waited for and listed.
	d, err := dispatch.New(store, dispatch.Options{RetentionSucceeded: time.Hour})
	if err != nil {
		return nil, nil, err
	}
	dispatch.HandleFunc(d, "print", p.print)
	twice := dispatch.RetryConfig{MaxAttempts: 2, MinBackoff: 100 * time.Millisecond}
	if _, err := d.EnsureQueue(ctx, dispatch.Queue{Name: queue, Retry: twice}); err != nil {
		return nil, nil, err
	}
	return p, d.Stop, d.Start(ctx)
}

func (p *printer) print(ctx context.Context, title string) error {
	if p.jammed.Load() {
		return errors.New("paper jam")
	}
	if title == endless {
		p.started <- title
		<-ctx.Done()
		p.stopped <- context.Cause(ctx)
		return ctx.Err()
	}
	return nil
}

// receive takes what comes next from a channel, unless ctx ends first.
func receive[T any](ctx context.Context, from <-chan T) (v T, err error) {
	select {
	case v = <-from:
		return v, nil
	case <-ctx.Done():
		return v, ctx.Err()
	}
}
