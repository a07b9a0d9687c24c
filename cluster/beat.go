package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// topCall is the longest deadline of a call.
	topCall = 5 * time.Second
	// leaveCall is how long a call may go on when its context has ended, by the contract of Store.
	leaveCall = time.Second
	// firstRetry and topRetry are the shortest and the longest pause after a failed beat.
	firstRetry = 50 * time.Millisecond
	topRetry   = 5 * time.Second
)

// Run registers the worker and beats at once, then every Interval, until ctx ends: one write per beat, whatever the
// worker does. A beat that fails is repeated after a pause with jitter, so often that several tries fit into Threshold;
// each call has a deadline of min(Interval, 5 s). A worker that the registry does not know any more, or takes for dead,
// registers again with the CreatedAt that it had.
//
// Stale is called at its instant even while a call hangs. A process that was frozen finds that it is stale before Run
// does anything else, and so it calls Stale before it beats again.
//
// A second call, or one after Leave, returns at once. Otherwise Run returns when ctx has ended and no call is in flight, which takes at most
// a second: a call that ignores its context for longer keeps its goroutine until it returns.
func (m *Member) Run(ctx context.Context) {
	if !m.begin() {
		return
	}
	defer close(m.returned)
	now := m.opts.Clock.Now()
	b := beating{m: m, alive: now, next: now}
	for ctx.Err() == nil {
		b.turn(ctx)
	}
	b.end()
}

// beating is the state of Run; only its goroutine uses it.
type beating struct {
	m *Member

	alive    time.Time // the start of the last good beat, or of Run
	stale    bool      // Stale was called, and Fresh was not
	failures int       // beats that failed since the last good one

	next   time.Time   // when the next beat is due
	hurry  bool        // the state has changed: do not wait for next
	state  WorkerState // as it is in the registry; empty means that the worker has to register
	unread bool        // CreatedAt is to be read
	swept  bool        // the rows of the long dead were deleted, or it was tried

	flight *flight // the call in flight, if any
}

// flight is a call of the store that goes on.
type flight struct {
	done <-chan error
	land func(error) // takes in how it ended
}

// turn does what is due, and waits until something happens.
func (b *beating) turn(ctx context.Context) {
	now := b.m.opts.Clock.Now()
	b.checkStale(now) // first of all: between the turns the process may have been frozen
	if b.flight == nil {
		b.flight = b.takeOff(ctx, now)
	}
	var done <-chan error
	if b.flight != nil {
		done = b.flight.done
	}
	var alarm <-chan time.Time
	if at, ok := b.wakeAt(); ok {
		timer := b.m.opts.Clock.NewTimer(max(at.Sub(now), 0))
		defer timer.Stop()
		alarm = timer.Chan()
	}
	select {
	case err := <-done:
		b.checkStale(b.m.opts.Clock.Now()) // before an answer that came too late makes it fresh
		land := b.flight.land
		b.flight = nil
		if ctx.Err() == nil { // else it may have failed for that reason alone
			land(err)
		}
	case <-alarm:
	case <-b.m.wake:
		b.hurry = true
	case <-ctx.Done():
	}
}

// wakeAt is when the next turn is due if nothing happens before.
func (b *beating) wakeAt() (at time.Time, ok bool) {
	if b.flight == nil {
		at, ok = b.next, true
	}
	if staleAt := b.alive.Add(b.m.opts.Threshold); !b.stale && (!ok || staleAt.Before(at)) {
		at, ok = staleAt, true
	}
	return at, ok
}

func (b *beating) checkStale(now time.Time) {
	if !b.stale && b.silent(now) {
		b.stale = true
		b.m.opts.Stale()
	}
}

// silent says whether others may take the worker for dead. The beat counts from its start, because the registry may have
// written it at any moment since.
func (b *beating) silent(now time.Time) bool { return now.Sub(b.alive) >= b.m.opts.Threshold }

// takeOff starts the call that is due, if one is.
func (b *beating) takeOff(ctx context.Context, now time.Time) *flight {
	m := b.m
	self := m.Self()
	switch {
	case !now.Before(b.next) || b.hurry && self.State != b.state:
		b.hurry = false
		if self.State != b.state {
			return b.call(ctx, func(ctx context.Context) error { return m.store.RegisterWorker(ctx, &self) },
				func(err error) { b.registered(&self, now, err) })
		}
		return b.call(ctx, func(ctx context.Context) error { return m.store.HeartbeatWorker(ctx, self.ID) },
			func(err error) { b.beaten(now, err) })
	case b.state == "":
		return nil // what follows is for a worker that has registered
	case b.unread:
		b.unread = false // until the next good beat
		var row *Worker
		return b.call(ctx, func(ctx context.Context) (err error) {
			row, err = m.store.GetWorker(ctx, self.ID)
			return err
		}, func(err error) {
			if err == nil && row != nil {
				m.noteCreated(row.CreatedAt)
			}
		})
	case !b.swept:
		b.swept = true
		return b.call(ctx, func(ctx context.Context) error {
			_, err := m.store.DeleteStaleWorkers(ctx, m.opts.Forget)
			return err
		}, func(error) {}) // it is no harm if they stay until another worker starts
	}
	return nil
}

// call starts a call with its deadline.
func (b *beating) call(ctx context.Context, f func(context.Context) error, land func(error)) *flight {
	b.m.slot <- struct{}{} // free: there is no other call
	patience := min(b.m.opts.Interval, topCall)
	return &flight{land: land, done: b.m.call(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return f(ctx)
	})}
}

// registered takes in how a registration of self that started at an instant has ended.
func (b *beating) registered(self *Worker, start time.Time, err error) {
	if err != nil {
		b.failed(err)
		return
	}
	b.state = self.State
	if !self.CreatedAt.IsZero() {
		b.m.noteCreated(self.CreatedAt) // stores may, and need not, put it there
	}
	b.good(start)
}

// beaten takes in how a heartbeat that started at an instant has ended.
func (b *beating) beaten(start time.Time, err error) {
	switch {
	case err == nil:
		b.good(start)
	case errors.Is(err, ErrWorkerNotFound):
		b.failed(err)
		b.state = ""
		b.next = start // the registry answers: there is nothing to wait for
	default:
		b.failed(err)
	}
}

func (b *beating) good(start time.Time) {
	b.m.noteGood(start)
	b.alive = start
	b.next = start.Add(b.m.opts.Interval)
	b.unread = b.m.Self().CreatedAt.IsZero()
	if b.failures > 0 {
		b.failures = 0
		b.m.opts.Recovered()
	}
	if b.stale && !b.silent(b.m.opts.Clock.Now()) {
		b.stale = false
		b.m.opts.Fresh()
	}
}

func (b *beating) failed(err error) {
	b.m.noteFailed()
	b.failures++
	b.next = b.m.opts.Clock.Now().Add(b.retryAfter())
	if b.failures == 1 {
		b.m.opts.Failing(err)
	}
}

// retryAfter is the pause after the failed beats: 50 ms doubling to 5 s, or to a tenth of what is left of Threshold after
// the first try if that is less, so that even where each try runs into its deadline there are several. Half of it is
// random, so that workers that failed together do not come back together.
func (b *beating) retryAfter() time.Duration {
	top := min(topRetry, (b.m.opts.Threshold-b.m.opts.Interval)/10)
	pause := min(firstRetry<<min(b.failures-1, 10), top)
	return pause/2 + rand.N(pause/2+1)
}

// end waits for the call in flight.
func (b *beating) end() {
	if b.flight == nil {
		return
	}
	timer := b.m.opts.Clock.NewTimer(leaveCall)
	defer timer.Stop()
	select {
	case <-b.flight.done:
	case <-timer.Chan():
	}
}
