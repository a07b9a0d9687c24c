package dispatch

import "time"

const (
	// settleLateAfter is how long outcomes that are on their way into the store keep their places.
	settleLateAfter = 500 * time.Millisecond
	// stuckHold is how soon a claim is thought of again for a queue whose outcomes do not get into the store.
	stuckHold = 200 * time.Millisecond
)

// A store may fail in part: one master of a cluster is gone, with its queues, and all others are well. Attempts at tasks
// of such a queue end, and their outcomes wait. Then they must not hold the places of the process, or the queue would
// take all others with it; and no more tasks of it must come, or what waits would grow without bound.

// watchSettles gives the places of a batch to other queues when the store does not answer for long, and with them those
// of the outcomes that gather behind it. The returned function ends the watch.
func (d *Dispatcher) watchSettles(queue string, batch []*settling) (end func()) {
	over := false // guarded by d.mu
	timer := d.opts.Clock.AfterFunc(settleLateAfter, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if over {
			return
		}
		d.stuck[queue] = true
		d.anyStuck.Store(true)
		d.freePlaces(queue, batch)
		d.freePlaces(queue, d.settles.waiting(queue))
	})
	return func() {
		timer.Stop()
		d.mu.Lock()
		over = true
		if delete(d.stuck, queue); len(d.stuck) == 0 {
			d.anyStuck.Store(false)
		}
		d.mu.Unlock()
	}
}

// freeIfStuck gives the place of an outcome away at once if the outcomes before it are stuck. It is called after the
// outcome was added to those that wait: either watchSettles finds it there, or its mark is seen here.
func (d *Dispatcher) freeIfStuck(queue string, s *settling) {
	if !d.anyStuck.Load() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stuck[queue] {
		d.freePlaces(queue, []*settling{s})
	}
}

// freePlaces gives places away before their outcomes are stored. d.mu is held.
func (d *Dispatcher) freePlaces(queue string, batch []*settling) {
	n := 0
	for _, s := range batch {
		if !s.swept && !s.freed {
			s.freed = true
			n++
		}
	}
	if n == 0 {
		return
	}
	d.sched.Done(queue, n, d.opts.Clock.Now())
	d.poke()
}
