package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	sweepBatch = 100
	// followersWait is how many SweepIntervals a lease is overdue before a process that does not lead settles it.
	followersWait = 3
)

var errLeaseExpired = errors.New("the lease ended before the worker reported")

// sweep settles leases that ended without a word of their worker, in all queues that are noted to have something to do.
func (t *term) sweep(ctx context.Context) {
	for {
		t.d.pause(ctx, soonerThan(t.d.opts.SweepInterval))
		if ctx.Err() != nil {
			return
		}
		hints, err := t.d.readNotes(ctx, t.d.opts.SweepInterval) // mostly those that reconcileLoop has read: they tell what comes, too
		if err != nil {
			continue // readNotes has told
		}
		names := t.d.queuesToSweep(0)
		for _, h := range hints {
			if h.Wait <= 0 && !t.d.knowsLeases(h.Queue) {
				names[h.Queue] = true
			}
		}
		t.d.sweepQueues(ctx, names)
	}
}

// knowsLeases says whether a claim has told this process just now when the first lease of a queue ends.
func (d *Dispatcher) knowsLeases(queue string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.queues[queue]
	return q != nil && d.opts.Clock.Now().Sub(q.answeredAt) < 2*d.opts.SweepInterval
}

// sweepLoop settles leases that no leader has settled.
func (d *Dispatcher) sweepLoop(ctx context.Context) {
	for {
		d.pause(ctx, soonerThan(d.opts.SweepInterval))
		if ctx.Err() != nil {
			return
		}
		if !d.leading.Load() {
			d.sweepQueues(ctx, d.queuesToSweep(followersWait*d.opts.SweepInterval))
		}
	}
}

// queuesToSweep are the queues of which a lease has been over for so long, as far as this process knows.
func (d *Dispatcher) queuesToSweep(overdue time.Duration) map[string]bool {
	before := d.opts.Clock.Now().Add(-overdue)
	d.mu.Lock()
	defer d.mu.Unlock()
	names := make(map[string]bool)
	for name, q := range d.queues {
		if !q.leaseEnd.IsZero() && !q.leaseEnd.After(before) {
			names[name] = true
		}
	}
	return names
}

// sweepQueues sweeps queues. All processes may do so at once: each outcome is fenced by the lease that was read, so only
// one of them counts.
func (d *Dispatcher) sweepQueues(ctx context.Context, names map[string]bool) {
	select {
	case d.sweeping <- struct{}{}: // who finds nothing to sweep is to find it told, too
	case <-ctx.Done():
		return
	}
	defer func() { <-d.sweeping }()
	list := make([]string, 0, len(names))
	for name := range names {
		list = append(list, name)
	}
	each(ctx, list, func(name string) {
		for more := true; more && ctx.Err() == nil; {
			more = d.sweepQueue(ctx, name)
		}
	})
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
		if ctx.Err() == nil && !isNotFound(err) {
			d.log.failing("sweep", err, "queue", name)
		}
		return false
	}
	settled := false
	if len(leases) > 0 {
		d.log.Warn("dispatch: leases ended without a report", "queue", name, "tasks", len(leases))
		settled = d.loseLeases(name, leases, settings, errLeaseExpired)
	}
	d.mu.Lock()
	if q := d.queues[name]; q != nil {
		switch {
		case next >= 0: // 0: more have ended, or they could not be settled
			q.leaseEnd = d.opts.Clock.Now().Add(next)
		case settled || len(leases) == 0:
			q.leaseEnd = time.Time{}
		}
	}
	d.mu.Unlock()
	return next == 0 && settled
}

// loseLeases settles attempts whose leases were lost and says whether the store has taken that.
func (d *Dispatcher) loseLeases(queue string, leases []Leased, settings *Queue, why error) bool {
	batch := make([]*settling, 0, len(leases))
	for i := range leases {
		batch = append(batch, d.loseLease(&leases[i], settings, why))
	}
	if err := d.buryAll(d.life.reports, batch); err != nil {
		// Those that have died stay as they are for the next sweep; the others go on.
		d.log.failing("dead letters", err, "queue", queue)
		batch = slices.DeleteFunc(batch, (*settling).isLetter)
	}
	return len(batch) > 0 && d.sendSettles(queue, batch) && len(batch) == len(leases)
}

// loseLease concludes an attempt whose lease was lost. A record that cannot be read is put off for another version of
// the program, like a kind that is not known.
func (d *Dispatcher) loseLease(l *Leased, settings *Queue, why error) *settling {
	now := d.opts.Clock.Now()
	r := &running{d: d, leased: l, settings: settings, claimedAt: now}
	res := result{kind: KindLeaseLost, err: why, text: why.Error()}
	if l.Err != nil {
		res = result{released: true, after: unknownKindDelay, err: l.Err}
	}
	record := AttemptRecord{Number: r.number(), StartedAt: leaseBegan(l.Lease), Worker: l.Worker, Token: l.Lease.Token}
	retry := resolveRetry(l.Task.Retry, r.retryOfQueue())
	settlement := conclude(l, retry, d.opts.retention(), res, record, l.At)
	return &settling{run: r, settlement: settlement, result: res, endedAt: now, swept: true, expired: why == errLeaseExpired}
}
