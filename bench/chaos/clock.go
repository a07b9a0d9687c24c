package main

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/jonboulle/clockwork"
)

// skewedClock is the real clock of a machine that is set wrong. Timers run as ever, and so does the monotonic reading by which
// distances are measured: only what time it is differs, as when somebody or NTP sets the clock. It is safe for concurrent use.
type skewedClock struct {
	clockwork.Clock
	offset atomic.Int64 // s
}

func newSkewedClock(offset time.Duration) *skewedClock {
	c := &skewedClock{Clock: clockwork.NewRealClock()}
	c.step(offset)
	return c
}

// step sets the clock forward by d, or back, in whole seconds.
func (c *skewedClock) step(d time.Duration) { c.offset.Add(int64(d / time.Second)) }

// Now implements clockwork.Clock.
func (c *skewedClock) Now() time.Time { return moveWall(c.Clock.Now(), c.offset.Load()) }

// moveWall moves what time it is, and not the monotonic reading. The standard library has no call for that, since Add moves both, so
// this changes the representation: a time with a monotonic reading has, above 30 bits of nanoseconds, its seconds since 1885 in the
// first word. A test sees when that is no longer so.
func moveWall(t time.Time, seconds int64) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(seconds) << 30
	return t
}
