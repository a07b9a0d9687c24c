package dispatch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// A lease can be taken from this process: its task is cancelled, deleted, run anew, or swept by somebody who thinks this
// process dead. A message says so, and the attempt ends. Messages may be lost, so attempts that have run for a while are
// looked at with every heartbeat, and after each interruption of the messages. Whatever is missed, the store refuses what
// an attempt reports without its lease.

// hearRevoked marks the attempts whose leases were taken away, as messages tell. d.mu is held.
func (d *Dispatcher) hearRevoked(hints []Hint) {
	found := false
	for _, h := range hints {
		if h.Revoked == 0 {
			continue
		}
		for r := range d.running {
			if r.leased.Task.Queue == h.Queue && (h.Revoked == AllLeases || r.leased.Lease.Token == h.Revoked) {
				r.suspected, r.cancelled, found = true, h.Cancelled, true
			}
		}
	}
	if found {
		d.wakeSuspects()
	}
}

// suspectOlderThan marks the attempts that have run for so long.
func (d *Dispatcher) suspectOlderThan(age time.Duration) {
	before := d.opts.Clock.Now().Add(-age)
	d.mu.Lock()
	defer d.mu.Unlock()
	for r := range d.running {
		r.suspected = r.suspected || !r.startedAt.After(before)
	}
	d.wakeSuspects()
}

// wakeSuspects wakes the loop that looks at what is marked.
func (d *Dispatcher) wakeSuspects() {
	select {
	case d.suspects <- struct{}{}:
	default:
	}
}

// watchLeases looks at the leases of attempts that are marked, and once in a heartbeat of all that have run for half as
// long.
func (d *Dispatcher) watchLeases(ctx context.Context) {
	for ctx.Err() == nil {
		if !d.pauseOr(ctx, soonerThan(d.opts.HeartbeatInterval), d.suspects) {
			d.suspectOlderThan(d.opts.HeartbeatInterval / 2)
		}
		open := make(map[string][]*running)
		d.mu.Lock()
		for r := range d.running {
			if r.suspected {
				r.suspected = false
				open[r.leased.Task.Queue] = append(open[r.leased.Task.Queue], r)
			}
		}
		d.mu.Unlock()
		each(ctx, slices.Collect(maps.Keys(open)), func(queue string) {
			for part := range slices.Chunk(open[queue], heldBatch) {
				d.checkLeases(ctx, queue, part)
			}
		})
	}
}

const (
	heldBatch     = 200
	checkPatience = 5 * time.Second
)

// checkLeases ends those attempts whose lease is gone.
func (d *Dispatcher) checkLeases(ctx context.Context, queue string, open []*running) {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	leases := make([]Held, len(open))
	for i, r := range open {
		leases[i] = Held{ID: r.leased.Task.ID, Lease: r.leased.Lease}
	}
	held, err := d.store.Holds(ctx, queue, leases)
	if err != nil {
		if ctx.Err() == nil {
			d.log.failing("holds", err, "queue", queue)
		}
		return
	}
	d.log.recovered("holds")
	for i, r := range open {
		if !held[i] {
			r.ctx.end(d.whyLost(ctx, r))
		}
	}
}

// whyLost is the cause for an attempt without a lease. Without a message the task itself tells; one that was cancelled and
// is not retained does not.
func (d *Dispatcher) whyLost(ctx context.Context, r *running) error {
	d.mu.Lock()
	cancelled := r.cancelled
	d.mu.Unlock()
	if !cancelled {
		t, err := d.store.Task(ctx, r.leased.Task.Queue, r.leased.Task.ID)
		cancelled = err == nil && t.State == TaskCancelled
	}
	if cancelled {
		return ErrCancelled
	}
	return ErrLeaseLost
}

// isCancelled says whether an attempt ended because its task was cancelled.
func (r *running) isCancelled() bool {
	return r.ctx != nil && errors.Is(context.Cause(r.ctx), ErrCancelled)
}
