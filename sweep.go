package dispatch

import (
	"context"
	"errors"
	"time"
)

const (
	sweepBatch   = 100
	cleanupBatch = 100
	cleanupQueue = 100 // queues cleaned up in one pass
)

var errLeaseExpired = errors.New("the lease ended before the worker reported")

// sweepLoop settles leases that ended without a word of their worker.
func (d *Dispatcher) sweepLoop(ctx context.Context) {
	for {
		d.pause(ctx, soonerThan(d.opts.SweepInterval))
		if ctx.Err() != nil {
			return
		}
		d.sweepDue(ctx)
	}
}

// sweepDue sweeps the queues of which a lease should have ended by now. All processes may do so at once: each outcome
// is fenced by the lease that was read, so only one of them counts.
func (d *Dispatcher) sweepDue(ctx context.Context) {
	for _, name := range d.queuesToSweep() {
		for more := true; more && ctx.Err() == nil; {
			more = d.sweepQueue(ctx, name)
		}
	}
}

func (d *Dispatcher) queuesToSweep() []string {
	now := d.opts.Clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name, q := range d.queues {
		if !q.leaseEnd.IsZero() && !q.leaseEnd.After(now) {
			names = append(names, name)
		}
	}
	return names
}

// sweepQueue settles one batch of a queue's ended leases and says whether there are more.
func (d *Dispatcher) sweepQueue(ctx context.Context, name string) (more bool) {
	leases, next, err := d.store.ExpiredLeases(ctx, name, sweepBatch)
	if err != nil {
		if ctx.Err() == nil {
			d.log.failing("sweep", err, "queue", name)
		}
		return false
	}
	d.log.recovered("sweep")
	settings, err := d.settingsOf(ctx, name, len(leases) > 0)
	if err != nil {
		return false
	}
	batch := make([]*settling, 0, len(leases))
	for i := range leases {
		batch = append(batch, d.loseLease(&leases[i], settings))
	}
	settled := false
	if len(batch) > 0 {
		d.log.Warn("dispatch: leases ended without a report", "queue", name, "tasks", len(batch))
		settled = d.sendSettles(name, batch)
	}
	d.mu.Lock()
	q := d.queue(name)
	q.leaseEnd = time.Time{}
	if next > 0 {
		q.leaseEnd = d.opts.Clock.Now().Add(next)
	}
	d.mu.Unlock()
	return next == 0 && settled
}

// loseLease concludes an attempt whose lease was lost. A record that cannot be read is put off for another version of
// the program, like a kind that is not known.
func (d *Dispatcher) loseLease(l *Leased, settings *Queue) *settling {
	now := d.opts.Clock.Now()
	r := &running{d: d, leased: l, settings: settings, claimedAt: now}
	res := result{kind: KindLeaseLost, err: errLeaseExpired, text: errLeaseExpired.Error()}
	if l.Err != nil {
		res = result{released: true, after: unknownKindDelay, err: l.Err}
	}
	record := AttemptRecord{Number: r.number(), StartedAt: l.At, Worker: l.Worker, Token: l.Lease.Token}
	retry := resolveRetry(l.Task.Retry, r.retryOfQueue())
	settlement := conclude(l, retry, d.opts.retention(), res, record, l.At)
	return &settling{run: r, settlement: settlement, result: res, endedAt: now, swept: true}
}

// settingsOf is what is known of a queue's settings; they are read when need says so and none are known.
func (d *Dispatcher) settingsOf(ctx context.Context, name string, need bool) (*Queue, error) {
	d.mu.Lock()
	settings := d.queue(name).settings
	d.mu.Unlock()
	if settings != nil || !need {
		return settings, nil
	}
	return d.store.Queue(ctx, name)
}

// cleanupLoop removes retained tasks and names whose time is over, in slices.
func (d *Dispatcher) cleanupLoop(ctx context.Context) {
	for {
		d.pause(ctx, soonerThan(d.opts.CleanupInterval))
		if ctx.Err() != nil {
			return
		}
		names, err := d.store.Expiring(ctx, cleanupQueue)
		if err != nil {
			d.log.failing("cleanup", err)
			continue
		}
		for _, name := range names {
			for more := true; more && err == nil && ctx.Err() == nil; {
				more, err = d.store.Cleanup(ctx, name, cleanupBatch)
			}
		}
		d.log.recovered("cleanup")
	}
}
