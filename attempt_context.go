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
//
// Most handlers are over before they ask whether they should stop. So the channel and the timer are made for the first
// who wants to wait for the end; until then the deadline is looked at when somebody asks.
type attemptContext struct {
	clock clockwork.Clock
	run   *running

	mu       sync.Mutex
	deadline time.Time
	why      error           // it has ended, for this; nil before
	waited   context.Context // ends with it; nil until somebody waits. No context of a caller: it has no parent
	cancel   context.CancelCauseFunc
	timer    clockwork.Timer // calls expire; nil until somebody waits
}

// begin starts the attempt, before anybody else knows of c.
func (c *attemptContext) begin(clock clockwork.Clock, run *running, deadline time.Time) {
	c.clock, c.run, c.deadline = clock, run, deadline
}

// Deadline returns when the attempt ends; Extend moves it.
func (c *attemptContext) Deadline() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deadline, true
}

// Done returns a channel that is closed at the end.
func (c *attemptContext) Done() <-chan struct{} { return c.wait().Done() }

// Value returns the attempt under its key. Any other key may be the standard library's, which asks for a context to wait for.
func (c *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c.run
	}
	return c.wait().Value(key)
}

// Err is context.DeadlineExceeded once the deadline has passed, as of any context with a deadline.
func (c *attemptContext) Err() error {
	switch why := c.cause(); {
	case why == nil:
		return nil
	case isTimeout(why):
		return context.DeadlineExceeded
	}
	return context.Canceled
}

// cause is what context.Cause returns, at less cost.
func (c *attemptContext) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	return c.why
}

// look ends the context if its deadline has passed. c.mu is held.
func (c *attemptContext) look() {
	if c.why == nil && !c.deadline.After(c.clock.Now()) {
		c.over(context.DeadlineExceeded)
	}
}

// wait returns a context that ends with c.
func (c *attemptContext) wait() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waited == nil {
		c.waited, c.cancel = context.WithCancelCause(context.Background())
		if c.why != nil {
			c.cancel(c.why)
		} else {
			c.watch()
		}
	}
	return c.waited
}

// watch starts the timer for the deadline. c.mu is held.
func (c *attemptContext) watch() {
	left := c.deadline.Sub(c.clock.Now())
	if left <= 0 {
		c.over(context.DeadlineExceeded)
		return
	}
	c.timer = c.clock.AfterFunc(left, c.expire)
}

// expire ends the context unless its deadline was moved meanwhile.
func (c *attemptContext) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == nil {
		c.watch()
	}
}

// move sets a new deadline and the new end of the lease.
func (c *attemptContext) move(deadline, leaseUntil time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look() // too late is too late, also if nobody has looked
	c.deadline, c.run.leaseUntil = deadline, leaseUntil
	if c.why == nil && c.timer != nil {
		c.timer.Stop()
		c.watch()
	}
}

// end ends the context for good.
func (c *attemptContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	if c.why == nil {
		c.over(cause)
	}
}

// over ends the context. c.mu is held, and the context has not ended.
func (c *attemptContext) over(cause error) {
	c.why = cause
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.cancel != nil {
		c.cancel(cause)
	}
}

// leaseUntil is when the attempt's lease ends by the local clock.
func (c *attemptContext) leaseUntil() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.run.leaseUntil
}
