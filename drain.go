package dispatch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
)

const (
	// obeyPatience is how long handlers may take to return once their context has ended.
	obeyPatience = time.Second
	// answerPatience is how long claims whose answers were lost are asked for once more.
	answerPatience = 2 * time.Second
	// flushPatience is how long the last outcomes may take into the store, and after that to be told to the observer.
	flushPatience = 5 * time.Second
)

// drain is the way from running to stopped. It runs once, on a goroutine of its own, and takes little more than
// DrainTimeout at the most.
func (d *Dispatcher) drain() error {
	d.member.Drain()
	d.life.endLoops() // the leadership is given up at once, so that another process has it while this one drains
	d.giveBack(d.pool.Withdraw(nil))
	// Claims in flight are answered, and what they lease is given back at once, because draining is on.
	d.life.group.Wait()
	d.answerClaims()
	d.giveBack(d.pool.Withdraw(nil))

	err := d.awaitPool(d.opts.DrainTimeout)
	if err != nil {
		d.endAttempts()
		if err = d.awaitPool(obeyPatience); err != nil {
			left := d.abandon()
			d.log.Error("dispatch: handlers ignore the end of their context; their tasks are given back while they run",
				"handlers", left)
			err = ErrDrainTimeout
		}
	}
	if d.awaitSettled(flushPatience) != nil {
		d.log.Warn("dispatch: stopped before all outcomes were stored; their tasks will run again")
	}
	d.awaitTold()
	d.life.endReports() // what is not stored by now is given up, and told
	if d.awaitSent(flushPatience) != nil {
		d.log.Error("dispatch: stopped while an observer blocks, or a store that ignores the end of its context")
	}
	d.life.late.Wait()
	d.http.Close()
	d.awaitReleased()
	d.life.endBeats()
	<-d.beaten
	d.leave()
	d.giveUp()
	return err
}

// awaitTold waits until other processes know of what was given back, or cannot be told. Announcements go one after
// another, so the last one is enough, and none takes longer than announcePatience.
func (d *Dispatcher) awaitTold() {
	d.mu.Lock()
	told := d.told
	d.mu.Unlock()
	if told != nil {
		<-told
	}
}

// awaitReleased waits for the elector, which may be anybody's code.
func (d *Dispatcher) awaitReleased() {
	ctx, cancel := clockwork.WithTimeout(context.Background(), d.opts.Clock, releasePatience)
	defer cancel()
	select {
	case <-d.led:
	case <-ctx.Done():
		d.log.Error("dispatch: the elector does not release the leadership")
	}
}

// answerClaims repeats the claims whose answers were lost, once: what they have leased would wait for its leases to end.
func (d *Dispatcher) answerClaims() {
	d.mu.Lock()
	var open []servedQueue
	for _, q := range d.queues {
		if q.unanswered != nil {
			open = append(open, *q)
		}
	}
	d.mu.Unlock()
	var wait sync.WaitGroup
	for _, q := range open {
		again := *q.unanswered
		again.Repeat = true
		wait.Go(func() { d.claim(again, q.sentAt, answerPatience) })
	}
	wait.Wait()
}

func (d *Dispatcher) giveBack(waiting []*running) {
	for _, r := range waiting {
		d.release(r, 0)
	}
}

// endAttempts ends the contexts of all attempts.
func (d *Dispatcher) endAttempts() {
	d.mu.Lock()
	d.attemptsEnded = true
	d.giveUp()
	open := slices.Collect(maps.Keys(d.running))
	d.mu.Unlock()
	for _, r := range open {
		r.ctx.end(ErrDraining)
	}
}

// abandon gives back the tasks whose handlers do not return. What these report later is not settled.
func (d *Dispatcher) abandon() int {
	d.mu.Lock()
	left := slices.Collect(maps.Keys(d.running))
	clear(d.running)
	d.mu.Unlock()
	d.giveBack(left)
	return len(left)
}

func (d *Dispatcher) awaitPool(patience time.Duration) error {
	ctx, cancel := clockwork.WithTimeout(context.Background(), d.opts.Clock, patience)
	defer cancel()
	return d.pool.Wait(ctx)
}

// awaitSettled waits until no lease is held any more.
func (d *Dispatcher) awaitSettled(patience time.Duration) error {
	ctx, cancel := clockwork.WithTimeout(context.Background(), d.opts.Clock, patience)
	defer cancel()
	return d.awaitQuiet(ctx)
}

// awaitSent waits until no outcome is on its way any more, and all are told to the observer, which may be anybody's code.
func (d *Dispatcher) awaitSent(patience time.Duration) error {
	ctx, cancel := clockwork.WithTimeout(context.Background(), d.opts.Clock, patience)
	defer cancel()
	return d.settles.wait(ctx)
}

// WaitIdle returns when this process has nothing to do at this moment: the notes of all queues were read, what is due
// was claimed as far as limits allow, and every attempt has ended and is settled. Later tasks, retries among them, do
// not count. It returns the error of ctx when that ends first. Tests use it; see dispatchtest.
func (d *Dispatcher) WaitIdle(ctx context.Context) error {
	for {
		d.sweepQueues(ctx, d.queuesToSweep(0))
		if d.opts.Leader == nil {
			if _, err := d.fireDue(ctx, 0); err != nil {
				return err
			}
		}
		d.restQueues(ctx, 0)
		hints, err := d.store.Hints(ctx, 0)
		if err != nil {
			return err
		}
		for i := range hints {
			hints[i].HandOver = true // it is not for another process to do
		}
		d.hear(hints)
		d.mu.Lock()
		done := d.isQuiet(d.opts.Clock.Now())
		d.mu.Unlock()
		if done && len(d.queuesToSweep(0)) == 0 {
			return nil
		}
		if err := d.awaitQuiet(ctx); err != nil {
			return err
		}
	}
}

// awaitQuiet waits until no claim is in flight, no lease held and no queue eligible, or ctx ends.
func (d *Dispatcher) awaitQuiet(ctx context.Context) error {
	d.mu.Lock()
	if d.isQuiet(d.opts.Clock.Now()) {
		d.mu.Unlock()
		return nil
	}
	quiet := make(chan struct{})
	d.quiet = append(d.quiet, quiet)
	d.mu.Unlock()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isQuiet says whether nothing is in progress. A dispatcher that stops looks for nothing, so what is due does not
// count then. d.mu is held.
func (d *Dispatcher) isQuiet(now time.Time) bool {
	if d.sched.InFlight() > 0 || d.sched.Claiming() > 0 || d.unsettled.Load() > 0 {
		return false
	}
	at, known := d.sched.NextAt(now)
	return !known || at.After(now) || d.life.loops.Err() != nil
}

// tellQuiet wakes those who wait for quiet, when it is. d.mu is held.
func (d *Dispatcher) tellQuiet(now time.Time) {
	if len(d.quiet) == 0 || !d.isQuiet(now) {
		return
	}
	for _, c := range d.quiet {
		close(c)
	}
	d.quiet = nil
}
