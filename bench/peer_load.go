package main

import (
	"context"
	"fmt"
	"sync/atomic"
)

// fewer bounds the tasks of a peer that is slow: its rates do not depend on their number, and no run should take half a
// minute. A quick run has a tenth.
func fewer(env *env, n, most int) int {
	if env.quick {
		most /= 10
	}
	return min(n, most)
}

// countdown counts what a peer does with n tasks, and says when the last is done.
type countdown struct {
	n    int
	done atomic.Int64
	all  chan struct{}
}

func newCountdown(n int) *countdown { return &countdown{n: n, all: make(chan struct{})} }

func (c *countdown) add() {
	if c.done.Add(1) == int64(c.n) {
		close(c.all)
	}
}

// wait returns when all are done.
func (c *countdown) wait(ctx context.Context) error {
	select {
	case <-c.all:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d of %d tasks handled: %w", c.done.Load(), c.n, context.Cause(ctx))
	}
}

// exact is an error if more were done than there are: a task was handled twice.
func (c *countdown) exact() error {
	if got := c.done.Load(); got != int64(c.n) {
		return fmt.Errorf("%d tasks were handled by %d calls", c.n, got)
	}
	return nil
}

// peerMemory is what each of n tasks takes in Redis that fill stores. Fill closes its connections.
func peerMemory(ctx context.Context, env *env, n int, fill func() error) (float64, error) {
	before, err := memoryInUse(ctx, env, 0)
	if err != nil {
		return 0, err
	}
	if err := fill(); err != nil {
		return 0, err
	}
	after, err := memoryInUse(ctx, env, before.clients)
	return (after.bytes - before.bytes) / float64(n), err
}
