package main

import (
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"
)

// skewedClock is the real clock of a machine that is set wrong. Timers run as ever; only what time it is differs. A step moves the
// monotonic reading too, which is worse than what a machine does: a product that bears this bears that. It is safe for concurrent
// use.
type skewedClock struct {
	clockwork.Clock
	offset atomic.Int64 // ns
}

func newSkewedClock(offset time.Duration) *skewedClock {
	c := &skewedClock{Clock: clockwork.NewRealClock()}
	c.step(offset)
	return c
}

// step sets the clock forward by d, or back.
func (c *skewedClock) step(d time.Duration) { c.offset.Add(int64(d)) }

// Now implements clockwork.Clock.
func (c *skewedClock) Now() time.Time {
	return c.Clock.Now().Add(time.Duration(c.offset.Load()))
}

// Since implements clockwork.Clock.
func (c *skewedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Until implements clockwork.Clock.
func (c *skewedClock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }
