package dispatch

import (
	"context"
	"slices"
	"time"
)

const (
	// restAfter is how long a queue must have been empty before its note is put right.
	restAfter = 2 * time.Second
	// noteSlack is by how much the instant of a note may be off by this process's clock.
	noteSlack = 10 * time.Millisecond
)

// hear takes in hints: from messages, from notes, from this process's own producers.
func (d *Dispatcher) hear(hints []Hint) {
	now := d.opts.Clock.Now()
	d.mu.Lock()
	d.hearRevoked(hints)
	if d.life.draining.Load() {
		d.mu.Unlock()
		return
	}
	for _, h := range hints {
		if d.hearOfFleet(h.Queue) || !d.serves(h.Queue) {
			continue
		}
		if h.Changed {
			if q := d.queues[h.Queue]; q != nil {
				q.stale = true
			}
			d.sched.Reset(h.Queue, now) // the next claim brings the new limits, and nothing said before holds it up
		}
		if h.Revoked != 0 || d.isOldNews(h, now) {
			continue
		}
		if at, mine := d.turn(h, now); mine || h.Changed {
			d.sched.Due(h.Queue, later(at, now), now)
			if h.Wait <= 0 && mine && !h.HandOver {
				d.handOver(d.queue(h.Queue), now)
			}
		}
	}
	d.mu.Unlock()
	d.poke()
}

// isOldNews says whether a hint was noted before this process last found the queue empty. Before it forgets the queue it
// puts the note right and looks once more, so nothing is missed. d.mu is held.
func (d *Dispatcher) isOldNews(h Hint, now time.Time) bool {
	q := d.queues[h.Queue]
	return q != nil && h.Wait < 0 && !h.Changed && !h.HandOver && !now.Add(h.Wait-noteSlack).After(q.emptyAt)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// hearOfFleet passes on what is about no queue, and says whether it was.
func (d *Dispatcher) hearOfFleet(name string) bool {
	var heard []chan struct{}
	switch name {
	case HintPlan:
		heard = []chan struct{}{d.planHeard}
	case HintWorkers:
		heard = []chan struct{}{d.workersHeard}
		if d.opts.Leader == nil {
			heard = append(heard, d.planHeard)
		}
	case HintCron:
		heard = []chan struct{}{d.cronHeard}
	case HintLeader: // the store tells its elector
	default:
		return false
	}
	for _, c := range heard {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	return true
}

// listenLoop hears the messages of other processes.
func (d *Dispatcher) listenLoop(ctx context.Context) {
	joined := make(chan struct{}, 1)
	d.life.goLoop(func(ctx context.Context) {
		for {
			select {
			case <-joined: // messages may have been missed
				d.hear([]Hint{{Queue: HintPlan}, {Queue: HintWorkers}, {Queue: HintCron}})
				d.suspectOlderThan(0)
				d.readNotes(ctx, 0)
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

// reconcileLoop reads the notes every ReconcileInterval.
func (d *Dispatcher) reconcileLoop(ctx context.Context) {
	for ctx.Err() == nil {
		d.readNotes(ctx, d.opts.ReconcileInterval/2)
		d.pause(ctx, soonerThan(d.opts.ReconcileInterval))
	}
}

// readNotes puts the notes of quiet queues right, and returns those of queues that have something to do soon, after it
// has taken them in. If that was done less than fresh ago, it returns what was read then.
func (d *Dispatcher) readNotes(ctx context.Context, fresh time.Duration) ([]Hint, error) {
	select {
	case d.reading <- struct{}{}: // two who come at once read once
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-d.reading }()
	if notes, age := d.lastNotes(); age < fresh {
		return notes, nil
	}
	d.restQueues(ctx, restAfter)
	notes, err := d.store.Hints(ctx, 2*d.opts.ReconcileInterval)
	if err != nil {
		if ctx.Err() == nil {
			d.log.failing("hints", err)
			d.hear(d.knownQueues()) // any of them may have something, and nobody can say
		}
		return nil, err
	}
	d.log.recovered("hints")
	d.mu.Lock()
	d.notes, d.notesAt = notes, d.opts.Clock.Now()
	d.mu.Unlock()
	d.hear(notes)
	return notes, nil
}

// lastNotes are the notes as they were read last, with what is left of their waits, and how long ago that was.
func (d *Dispatcher) lastNotes() (notes []Hint, age time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	age = d.opts.Clock.Now().Sub(d.notesAt)
	notes = slices.Clone(d.notes)
	for i := range notes {
		notes[i].Wait -= age
	}
	return notes, age
}

// knownQueues are the queues that this process remembers, as if each had something to do.
func (d *Dispatcher) knownQueues() []Hint {
	d.mu.Lock()
	defer d.mu.Unlock()
	var hints []Hint
	for name := range d.queues {
		hints = append(hints, Hint{Queue: name})
	}
	return hints
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
		if q.idle() && !now.Before(q.actingUntil) && !now.Before(q.strangeUntil) {
			delete(d.queues, name) // before the look: whoever hears of the queue from now on begins anew
			d.sched.Forget(name)
		}
	}
	d.mu.Unlock()
	if len(hints) == 0 {
		return
	}
	busy, err := d.store.Rest(ctx, hints)
	if err != nil {
		// The notes stay as they are, too early, and the next pass tries again.
		d.mu.Lock()
		for _, h := range hints {
			d.queue(h.Queue).emptyAt = now
		}
		d.mu.Unlock()
		if ctx.Err() == nil {
			d.log.failing("rest", err)
		}
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
