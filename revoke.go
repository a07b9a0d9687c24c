package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"
)

// A lease can be taken from this process: its task is cancelled, deleted, run anew, or swept by somebody who thinks this
// process dead. A message says so, and the attempt ends. Messages may be lost, so attempts that have run for a while are
// looked at with every heartbeat, and after each interruption of the messages. A message may also come before the attempt
// that it is about: while the answer to the claim is on its way, or the task waits for a place. Whatever is missed, the
// store refuses what an attempt reports without its lease.

// hearRevoked marks the attempts whose leases were taken away, as messages tell. d.mu is held.
func (d *Dispatcher) hearRevoked(hints []Hint) {
	found, now := false, d.opts.Clock.Now()
	for _, h := range hints {
		if h.Revoked == 0 {
			continue
		}
		if q := d.queues[h.Queue]; q != nil {
			q.revokedAt = now
		}
		for r := range d.running {
			if r.leased.Task.Queue == h.Queue && (h.Revoked == AllLeases || r.leased.Lease.Token == h.Revoked) {
				r.suspected, found = true, true
				r.cancelled = h.Cancelled || r.cancelled && h.Revoked == AllLeases // RunTask, which names one lease, knows better
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
		for queue, open := range d.suspected() {
			d.life.late.Go(func() { // one part of the store that does not answer holds up no other
				for part := range slices.Chunk(open, heldBatch) {
					d.checkLeases(ctx, queue, part)
				}
				d.mu.Lock()
				d.queue(queue).checking = false
				d.mu.Unlock()
				d.wakeSuspects() // for those that were marked meanwhile
			})
		}
	}
}

// suspected takes the attempts that are marked, by their queues, except of queues that are being looked at.
func (d *Dispatcher) suspected() map[string][]*running {
	d.mu.Lock()
	defer d.mu.Unlock()
	open := make(map[string][]*running)
	for r := range d.running {
		if name := r.leased.Task.Queue; r.suspected && !d.queue(name).checking {
			r.suspected = false
			open[name] = append(open[name], r)
		}
	}
	for name := range open {
		d.queue(name).checking = true
	}
	return open
}

const (
	heldBatch     = 200
	checkPatience = 5 * time.Second
	holdsPatience = time.Second
)

// held is what the store is asked about the lease of an attempt.
func (r *running) held() Held {
	return Held{ID: r.leased.Task.ID, Lease: r.leased.Lease}
}

// holds says whether an attempt still has its lease, as far as the store can be asked.
func (d *Dispatcher) holds(r *running) bool {
	ctx, cancel := context.WithTimeout(d.life.reports, holdsPatience)
	defer cancel()
	held, err := d.store.Holds(ctx, r.leased.Task.Queue, []Held{r.held()})
	return err != nil || held[0]
}

// mayBeRevoked says whether a message about a lease of the queue has come since the claim was sent, or since now.
func (d *Dispatcher) mayBeRevoked(r *running, since time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.queues[r.leased.Task.Queue]
	return q != nil && !q.revokedAt.IsZero() && !q.revokedAt.Before(since)
}

// checkLeases ends those attempts whose lease is gone.
func (d *Dispatcher) checkLeases(ctx context.Context, queue string, open []*running) {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	leases := make([]Held, len(open))
	for i, r := range open {
		leases[i] = r.held()
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
		if held[i] {
			d.trust(r)
		} else {
			r.ctx.end(d.whyLost(ctx, r))
		}
	}
}

// trust forgets what a message has said of an attempt whose lease was looked at since, and holds. Whoever does not know whether
// he has cancelled a task says that he has.
func (d *Dispatcher) trust(r *running) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.cancelled = r.cancelled && r.suspected // by a message that came meanwhile
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
	return r.ctx != nil && errors.Is(r.ctx.cause(), ErrCancelled)
}
