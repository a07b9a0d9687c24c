package dispatch

import (
	"context"
	"slices"
	"time"
)

const (
	settleBatchItems = 150
	settleBatchBytes = 512 << 10
	settlePatience   = 5 * time.Second
)

// settling is one attempt's outcome on its way into the store.
type settling struct {
	run        *running
	settlement Settlement
	result     result
	endedAt    time.Time // local; what the settlement says of "after" counts from here
	swept      bool      // the lease was not this process's
	expired    bool      // and it had ended; otherwise its holder had
	freed      bool      // its place was given to others before it was stored; guarded by Dispatcher.mu
}

func (s *settling) size() int {
	n := 200
	if p := s.settlement.Progress; p != nil {
		n += len(p.Result)
		for _, a := range p.History {
			n += 100 + len(a.Error)
		}
	}
	return n
}

// settle hands an outcome over to be stored. Outcomes of a queue that come together are stored together.
func (d *Dispatcher) settle(s *settling) {
	d.unsettled.Add(1)
	d.vacate(s.run)
	queue := s.run.leased.Task.Queue
	d.settles.add(queue, s)
	d.freeIfStuck(queue, s)
}

// release gives a task back that has not started; it is due again after the delay.
func (d *Dispatcher) release(r *running, delay time.Duration) {
	r.outcome = settling{
		run: r,
		settlement: Settlement{
			ID: r.leased.Task.ID, Lease: r.leased.Lease, Outcome: Released, After: delay, GivenBack: true,
			Tombstone: d.keep.tombstone(r.leased.Named, r.leased.Derived, r.leased.Window), // should it be too old to come back
		},
		result:  result{released: true},
		endedAt: d.opts.Clock.Now(),
	}
	d.settle(&r.outcome)
}

// sendSettles stores the outcomes that gathered for one queue, under one number, and tries again until it has an answer
// or every lease is over by the local clock: by then the tasks are given to others, and nothing of this is needed. It
// says whether there was an answer.
func (d *Dispatcher) sendSettles(queue string, batch []*settling) (stored bool) {
	request := SettleRequest{Queue: queue, Worker: d.worker, Items: make([]Settlement, len(batch))}
	if !batch[0].swept { // a sweep is not alone with the queue, and needs no memory: the next one finds what it left
		request.Seq = d.seq.Add(1)
	}
	request.Ended = batch[0].expired // as all of them are, or none: see loseLeases
	request.Traffic = traffic(batch)
	d.freeAhead(queue, batch)
	unwatch := d.watchSettles(queue, batch)
	for failures := 1; ; failures++ {
		now := d.opts.Clock.Now()
		for i, s := range batch {
			request.Items[i] = s.settlement
			if o := s.settlement.Outcome; o == Retry || o == Released {
				request.Items[i].After = max(s.settlement.After-max(now.Sub(s.endedAt), 0), 0) // a clock that goes back delays nothing
			}
		}
		ctx, cancel := context.WithTimeout(d.life.reports, settlePatience)
		reply, err := d.store.Settle(ctx, request)
		cancel()
		if err == nil {
			d.log.recovered("settle")
			unwatch()
			d.settled(queue, batch, reply)
			return true
		}
		if d.life.reports.Err() != nil || isNotFound(err) || d.allOver(batch) {
			d.log.Warn("dispatch: outcomes could not be stored; their tasks will run again",
				"queue", queue, "tasks", len(batch), "error", err)
			unwatch()
			d.settled(queue, batch, SettleReply{Applied: make([]bool, len(batch)), Dropped: make([]bool, len(batch))})
			return false
		}
		d.log.failing("settle", err, "queue", queue)
		d.pause(d.life.reports, backoffAfter(failures))
	}
}

// freeAhead gives the places of a batch away while it is on its way, so that the next tasks come while these are stored.
// In a queue that is near its limit of how many run, the store counts them until it has their outcomes: it would refuse the
// others.
func (d *Dispatcher) freeAhead(queue string, batch []*settling) {
	if batch[0].swept || batch[0].run.settings == nil {
		return
	}
	now := d.opts.Clock.Now()
	d.mu.Lock()
	near := d.sched.Near(queue, now)
	if !near {
		d.leasesEnded(queue, batch, now)
	}
	d.mu.Unlock()
	if !near {
		d.poke()
	}
}

// traffic counts what receivers said to the attempts of a batch, as far as their queue is to be slowed down by that.
func traffic(batch []*settling) (t Traffic) {
	for _, s := range batch {
		if !s.result.sent || s.run.settings == nil || s.run.settings.NoThrottle {
			continue
		}
		t.Sent++
		if s.result.kind != "" {
			t.Failed++
		}
		if s.result.congested {
			t.Congested++
		}
	}
	return t
}

// allOver says whether no lease of a batch can still be this process's. Swept ones never are.
func (d *Dispatcher) allOver(batch []*settling) bool {
	now := d.opts.Clock.Now()
	for _, s := range batch {
		if !s.swept && now.Before(s.run.until()) {
			return false
		}
	}
	return true
}

// until is when the attempt's lease ends by the local clock.
func (r *running) until() time.Time {
	if r.ctx == nil {
		return r.leaseUntil
	}
	return r.ctx.leaseUntil()
}

// settled frees the places of a batch and then tells the observer how each attempt ended, for which no place waits. Of a
// lease that somebody else swept, or that could not be swept, there is nothing to tell.
func (d *Dispatcher) settled(queue string, batch []*settling, reply SettleReply) {
	var told <-chan struct{}
	// What this process cannot run, or gives back at its end, is for the others to look at, whatever waits before it.
	if i := slices.IndexFunc(batch, func(s *settling) bool { return s.run.stranger }); i >= 0 && !reply.Moved {
		told = d.announce(Hint{Queue: queue, Wait: batch[i].settlement.After, HandOver: true})
	} else if reply.Moved {
		told = d.announce(Hint{Queue: queue, Wait: max(reply.Wait, 0), HandOver: i >= 0 || d.life.draining.Load()})
	}
	now := d.opts.Clock.Now()
	d.mu.Lock()
	if told != nil {
		d.told = told
	}
	d.leasesEnded(queue, batch, now)
	d.mu.Unlock()
	d.poke()

	own := 0
	outcomes := make([]Outcome, len(batch))
	for i, s := range batch {
		switch {
		case reply.Applied[i] && reply.Dropped[i]:
			outcomes[i] = Dropped
		case reply.Applied[i]:
			outcomes[i] = s.settlement.Outcome
		case s.run.isCancelled():
			outcomes[i] = Cancelled
		case !s.swept:
			outcomes[i] = Discarded
		}
		if !s.swept {
			own++
		}
	}
	d.observeBatch(batch, outcomes)
	d.mu.Lock()
	d.unsettled.Add(int64(-own)) // who waits for quiet is to find everything told
	d.tellQuiet(d.opts.Clock.Now())
	d.mu.Unlock()
}

// leasesEnded tells the scheduler, once, that leases of this process are over; those of tasks that have not started may never
// have had a place. d.mu is held.
func (d *Dispatcher) leasesEnded(queue string, batch []*settling, now time.Time) {
	done, returned := 0, 0
	for _, s := range batch {
		switch {
		case s.swept || s.freed:
			continue
		case s.run.startedAt.IsZero():
			returned++
		default:
			done++
		}
		s.freed = true
	}
	if done+returned == 0 {
		return
	}
	working := 0
	if d.opts.shared() {
		working = d.pool.Freeze(queue) // until tellBounds
	}
	d.sched.Done(queue, done, now)
	d.sched.Returned(queue, returned, now)
	d.sched.Working(queue, working) // before anybody is given the places of those that have ended
	d.tellBounds()
}

// tellBounds has the pool run as many tasks of each queue at once as the scheduler says. It is called after what may change
// that, and before the scheduler is asked for a grant. d.mu is held, so that what is told last is true.
func (d *Dispatcher) tellBounds() {
	if d.opts.shared() {
		d.sched.Bounds(func(queue string, places int) { d.pool.Bound(queue, places) })
	}
}
