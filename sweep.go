package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	sweepBatch   = 100
	sweepLanes   = 16
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
//
// Several are swept at once, so that queues on a part of the store that does not answer hold up the others little.
func (d *Dispatcher) sweepDue(ctx context.Context) {
	var wait sync.WaitGroup
	lanes := make(chan struct{}, sweepLanes)
	for _, name := range d.queuesToSweep() {
		lanes <- struct{}{}
		wait.Go(func() {
			for more := true; more && ctx.Err() == nil; {
				more = d.sweepQueue(ctx, name)
			}
			<-lanes
		})
	}
	wait.Wait()
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
	switch {
	case next >= 0: // 0: more have ended, or they could not be settled
		q.leaseEnd = d.opts.Clock.Now().Add(next)
	case settled || len(batch) == 0:
		q.leaseEnd = time.Time{}
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
	// The token follows the store's clock in µs, so it tells when the lease began.
	started := time.UnixMilli(l.Lease.Token / 1000).UTC()
	record := AttemptRecord{Number: r.number(), StartedAt: started, Worker: l.Worker, Token: l.Lease.Token}
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
		d.log.recovered("cleanup")
		for _, name := range names {
			d.cleanQueue(ctx, name)
		}
	}
}

// cleanQueue removes all of a queue whose time is over. A queue that fails is left for the next pass.
func (d *Dispatcher) cleanQueue(ctx context.Context, name string) {
	for more := true; more && ctx.Err() == nil; {
		var err error
		if more, err = d.store.Cleanup(ctx, name, cleanupBatch); err != nil {
			d.log.failing("cleanup", err, "queue", name)
			return
		}
	}
}
