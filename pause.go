package dispatch

import (
	"context"
	"sync"
	"time"
)

// pause waits, or less when ctx ends.
func (d *Dispatcher) pause(ctx context.Context, wait time.Duration) {
	d.pauseOr(ctx, wait, nil)
}

// pauseOr is a pause that a signal may end, and says whether it did.
func (d *Dispatcher) pauseOr(ctx context.Context, wait time.Duration, signal <-chan struct{}) bool {
	timer := d.opts.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.Chan():
	case <-ctx.Done():
	case <-signal:
		return true
	}
	return false
}

// lanes is how many calls each makes at once.
const lanes = 16

// each calls f for all items, for several at once, so that queues on a part of the store that does not answer hold up
// the others little; and for no more of them once ctx has ended.
func each[T any](ctx context.Context, items []T, f func(T)) {
	var wait sync.WaitGroup
	lane := make(chan struct{}, lanes)
	for _, item := range items {
		if ctx.Err() != nil {
			break
		}
		lane <- struct{}{}
		wait.Go(func() {
			defer func() { <-lane }()
			f(item)
		})
	}
	wait.Wait()
}
