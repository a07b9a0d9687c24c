package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
)

type attemptKey struct{}

// attemptContext is the context of one attempt. Its deadline can be moved, which the standard library's cannot, so it
// ends by a timer of its own; context.Cause tells why it ended. It has no parent: the dispatcher ends the attempts that
// it runs one by one, which spares each of them a place in a map that all share.
type attemptContext struct {
	context.Context // ends by end or expire

	clock  clockwork.Clock
	run    *running
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	deadline time.Time
	timer    clockwork.Timer
	ended    bool
}

func newAttemptContext(clock clockwork.Clock, run *running, deadline time.Time) *attemptContext {
	c := &attemptContext{clock: clock, run: run, deadline: deadline}
	c.Context, c.cancel = context.WithCancelCause(context.Background())
	c.timer = clock.AfterFunc(deadline.Sub(clock.Now()), c.expire)
	return c
}

// Deadline returns when the attempt ends; Extend moves it.
func (c *attemptContext) Deadline() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deadline, true
}

// Value returns the attempt under its key.
func (c *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c.run
	}
	return c.Context.Value(key)
}

// Err is context.DeadlineExceeded once the deadline has passed, as of any context with a deadline.
func (c *attemptContext) Err() error {
	err := c.Context.Err()
	if err != nil && isTimeout(context.Cause(c.Context)) {
		return context.DeadlineExceeded
	}
	return err
}

// expire ends the context unless its deadline was moved meanwhile.
func (c *attemptContext) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if left := c.deadline.Sub(c.clock.Now()); left > 0 {
		if !c.ended {
			c.timer = c.clock.AfterFunc(left, c.expire)
		}
		return
	}
	c.cancel(context.DeadlineExceeded)
}

// move sets a new deadline and the new end of the lease.
func (c *attemptContext) move(deadline, leaseUntil time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline, c.run.leaseUntil = deadline, leaseUntil
	if !c.ended {
		c.timer.Stop()
		c.timer = c.clock.AfterFunc(deadline.Sub(c.clock.Now()), c.expire)
	}
}

// end ends the context for good.
func (c *attemptContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.timer.Stop()
	c.cancel(cause)
}

// leaseUntil is when the attempt's lease ends by the local clock.
func (c *attemptContext) leaseUntil() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.run.leaseUntil
}
