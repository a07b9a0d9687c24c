package dispatch

import "time"

// settleLateAfter is how long outcomes that are on their way into the store keep their places.
const settleLateAfter = 500 * time.Millisecond

// A store may fail in part: one master of a cluster is gone, with its queues, and all others are well. Attempts at tasks
// of such a queue end, and their outcomes wait. Then they must not hold the places of the process, or the queue would
// take all others with it; and the queue is not claimed from, or what waits would grow without bound.

// watchSettles gives the places of a batch to other queues when the store does not answer for long, and with them those
// of the outcomes that gather behind it. The returned function ends the watch, once the batch is answered or given up.
func (d *Dispatcher) watchSettles(queue string, batch []*settling) (end func()) {
	if batch[0].swept {
		return func() {} // a sweep holds no places
	}
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
		defer d.mu.Unlock()
		if over = true; !d.stuck[queue] {
			return
		}
		delete(d.stuck, queue)
		d.anyStuck.Store(len(d.stuck) > 0)
		now := d.opts.Clock.Now()
		d.sched.Due(queue, now, now) // what was due meanwhile was not asked for
		d.poke()
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
	d.leasesEnded(queue, batch, d.opts.Clock.Now())
	d.poke()
}
