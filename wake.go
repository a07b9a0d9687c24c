package dispatch

import (
	"context"
	"time"

	"github.com/dispatchkit/dispatch/scheduler"
)

const (
	// lookPace is how often one queue is looked at that nothing was heard of. It finds tasks whose announcement was
	// lost, with a producer that died between storing and announcing them.
	lookPace = 2 * time.Second
	// restAfter is how long a queue must have been empty before its note is put right.
	restAfter = 2 * time.Second
)

// hear takes in hints: from messages, from notes, from this process's own producers.
func (d *Dispatcher) hear(hints []Hint) {
	now := d.opts.Clock.Now()
	d.mu.Lock()
	if d.life.draining.Load() {
		d.mu.Unlock()
		return
	}
	for _, h := range hints {
		if !d.serves(h.Queue) {
			continue
		}
		if h.Changed {
			if q := d.queues[h.Queue]; q != nil {
				q.stale = true
			}
			d.sched.SetLimits(h.Queue, scheduler.Limits{}, now) // the next claim brings the new ones
		}
		d.sched.Due(h.Queue, now.Add(max(h.Wait, 0)), now)
	}
	d.mu.Unlock()
	d.poke()
}

// listenLoop hears the messages of other processes.
func (d *Dispatcher) listenLoop(ctx context.Context) {
	joined := make(chan struct{}, 1)
	d.life.goLoop(func(ctx context.Context) {
		for {
			select {
			case <-joined:
				d.reconcile(ctx) // messages may have been missed
			case <-ctx.Done():
				return
			}
		}
	})
	for failures := 1; ctx.Err() == nil; failures++ {
		err := d.store.Listen(ctx, func() {
			failures = 0
			select {
			case joined <- struct{}{}:
			default:
			}
		}, d.hear)
		if ctx.Err() == nil {
			d.log.failing("listen", err)
			d.pause(ctx, backoffAfter(failures))
		}
	}
}

// reconcileLoop reads the notes every ReconcileInterval, and looks at one queue after another at a slow pace.
func (d *Dispatcher) reconcileLoop(ctx context.Context) {
	var looks looker
	reconcileAt := d.opts.Clock.Now()
	lookAt := reconcileAt
	for ctx.Err() == nil {
		if !d.opts.Clock.Now().Before(reconcileAt) {
			d.reconcile(ctx)
			reconcileAt = d.opts.Clock.Now().Add(soonerThan(d.opts.ReconcileInterval))
		}
		if !d.opts.Clock.Now().Before(lookAt) {
			d.lookAtOne(ctx, &looks)
			lookAt = d.opts.Clock.Now().Add(lookPace)
		}
		now := d.opts.Clock.Now()
		d.pause(ctx, max(min(reconcileAt.Sub(now), lookAt.Sub(now)), 0))
	}
}

// reconcile puts the notes of quiet queues right and takes in the notes of busy ones.
func (d *Dispatcher) reconcile(ctx context.Context) {
	d.restQueues(ctx, restAfter)
	hints, err := d.store.Hints(ctx, 2*d.opts.ReconcileInterval)
	if err != nil {
		if ctx.Err() == nil {
			d.log.failing("hints", err)
		}
		return
	}
	d.log.recovered("hints")
	d.hear(hints)
}

// restQueues corrects the notes of queues that have been empty for a while: to when their next task is due or lease
// ends, or to nothing. Until then a note says "now", which costs other processes a claim now and then and no more.
func (d *Dispatcher) restQueues(ctx context.Context, after time.Duration) {
	now := d.opts.Clock.Now()
	var hints []Hint
	d.mu.Lock()
	for name, q := range d.queues {
		if q.emptyAt.IsZero() || now.Sub(q.emptyAt) < after {
			continue
		}
		q.emptyAt = time.Time{}
		hints = append(hints, Hint{Queue: name, Wait: q.restUntil(now)})
		if q.idle() {
			delete(d.queues, name)
			d.sched.Forget(name)
		}
	}
	d.mu.Unlock()
	if len(hints) == 0 {
		return
	}
	busy, err := d.store.Rest(ctx, hints)
	if err != nil && ctx.Err() == nil {
		d.log.failing("rest", err) // the notes stay as they are, too early, and the next claim tries again
	}
	d.hear(busy)
}

// restUntil is how long the queue has nothing to do, as far as its last claim knew; below zero is for good.
func (q *servedQueue) restUntil(now time.Time) time.Duration {
	wait := time.Duration(-1)
	for _, at := range []time.Time{q.nextDue, q.leaseEnd} {
		if left := max(at.Sub(now), 0); !at.IsZero() && (wait < 0 || left < wait) {
			wait = left
		}
	}
	return wait
}

// idle says whether nothing worth remembering is known of the queue.
func (q *servedQueue) idle() bool {
	return q.nextDue.IsZero() && q.leaseEnd.IsZero() && q.unanswered == nil
}

// looker goes through the names of all queues, page by page, again and again.
type looker struct {
	names  []string
	cursor uint64
}

// lookAtOne looks at the next queue, whatever is noted of it.
func (d *Dispatcher) lookAtOne(ctx context.Context, l *looker) {
	if len(l.names) == 0 {
		names, next, err := d.store.Queues(ctx, l.cursor)
		if err != nil {
			return
		}
		l.names, l.cursor = names, next
		return
	}
	name := l.names[0]
	l.names = l.names[1:]
	if !d.serves(name) {
		return
	}
	if hints, err := d.store.Look(ctx, []string{name}); err == nil {
		d.hear(hints)
	}
}
