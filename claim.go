package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch/scheduler"
)

const (
	// claimPatience bounds one claim; a claim whose answer is lost is repeated under its number until it is known.
	claimPatience = 5 * time.Second
	// lateAfter is how long a claim in flight keeps places from other queues, which another part of the store may serve.
	lateAfter = 100 * time.Millisecond
	// prefetchPatience is how long a leased task may wait for a place before it is given back.
	prefetchPatience = time.Second
	// unknownKindDelay is how long a task of a kind without handler is put off, for a process that has one.
	unknownKindDelay = 5 * time.Second
	// firstUnknownDelay is the same when this process meets them in the queue for the first time, and others may know them.
	firstUnknownDelay = time.Second
	// maxUnknownKinds bounds what is remembered of kinds that producers made up.
	maxUnknownKinds = 1000
	// strangeFor is how long others come first with a queue of which this process could not run every task.
	strangeFor = 10 * time.Minute
	// strangeQueueHold is how long a queue is left alone after a full claim of nothing but such tasks, and after a smaller
	// one for its part of that: so a hundred of them a second go by, and do not keep other tasks of the queue waiting.
	strangeQueueHold = time.Second
	// concurrencyHold is how soon a queue is tried again whose places are taken by other processes.
	concurrencyHold = time.Second
)

// claimLoop hands out grants as long as there are any and sleeps until the next queue is due, or something happens. It
// is the only caller of the scheduler's Next.
func (d *Dispatcher) claimLoop(ctx context.Context) {
	timer := d.opts.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := d.opts.Clock.Now()
		d.returnLateStarters(now)
		timer.Reset(d.claimDue(now))
		select {
		case <-d.signal:
		case <-timer.Chan():
		case <-ctx.Done():
		}
	}
}

// claimDue starts a claim for every grant there is, and says how long to sleep.
func (d *Dispatcher) claimDue(now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isolated.Load() {
		return time.Hour // rejoin wakes the loop
	}
	for {
		grant, ok := d.sched.Next(now)
		if !ok && !d.wakeStarved(now) {
			break
		}
		if !ok {
			continue
		}
		if d.stuck[grant.Queue] {
			d.sched.Claimed(grant.Queue, scheduler.Claim{}, now) // watchSettles brings it back
			continue
		}
		request, sentAt := d.prepareClaim(grant, now)
		if d.queue(grant.Queue).failures > 0 {
			d.sched.Late(grant.Queue) // it keeps no places before it has been answered once
		}
		d.life.group.Go(func() { d.claim(request, sentAt, claimPatience) })
	}
	d.tellBounds()
	sleep := time.Hour
	if at, ok := d.sched.NextAt(now); ok {
		sleep = min(sleep, at.Sub(now))
	}
	if d.pool.Waiting() > 0 {
		sleep = min(sleep, prefetchPatience/4)
	}
	return max(sleep, 0)
}

// prepareClaim makes the request for a grant, or takes up the one that is still unanswered. d.mu is held.
func (d *Dispatcher) prepareClaim(g scheduler.Grant, now time.Time) (ClaimRequest, time.Time) {
	q := d.queue(g.Queue)
	if q.unanswered == nil {
		q.unanswered = &ClaimRequest{
			Queue: g.Queue, Worker: d.worker, Seq: d.seq.Add(1), Budget: g.Budget, Grace: d.opts.LeaseGrace,
			Free: d.reserve(q, g.Budget), Skip: q.skipped(now), Tombstone: d.keep.dedup,
			SkipPassed: now.Before(q.urgentAfter),
		}
		q.sentAt = now
		if q.settings != nil && !q.stale {
			q.unanswered.Version = q.settings.Version
		}
		q.stale = false
	} else {
		q.unanswered.Repeat = true
	}
	return *q.unanswered, q.sentAt
}

// claim sends one claim and hands what it leased to the pool. Its lease times count from before the claim was first
// sent, so that by this process's clock a lease never outlives the store's view of it.
func (d *Dispatcher) claim(r ClaimRequest, sentAt time.Time, patience time.Duration) {
	ctx, cancel := context.WithTimeout(d.life.reports, patience)
	late := d.opts.Clock.AfterFunc(lateAfter, func() { d.claimLate(r) })
	reply, err := d.store.Claim(ctx, r)
	late.Stop()
	cancel()
	now := d.opts.Clock.Now()
	if err != nil {
		d.claimFailed(r, err, now)
		return
	}
	d.log.recovered("claim")

	starters, strangers, overflow := d.take(r, reply, sentAt, now)
	d.mu.Lock()
	strange := 0
	if len(starters) == 0 {
		strange = len(strangers)
	}
	putOff := unknownKindDelay
	if q := d.queue(r.Queue); len(strangers) > 0 {
		if now.After(q.strangeUntil) && d.knowsPeers() {
			putOff = firstUnknownDelay
		}
		q.strangeUntil = now.Add(strangeFor)
		if slices.ContainsFunc(strangers, func(s *running) bool { return s.leased.Urgent }) {
			q.urgentAfter = now.Add(unknownKindDelay)
		}
	}
	d.claimAnswered(r.Queue, reply, strange, now)
	if u := d.queue(r.Queue).urgentAfter; now.Before(u) {
		d.sched.Due(r.Queue, u, now)
	}
	d.mu.Unlock()
	for _, s := range strangers {
		d.release(s, putOff)
	}
	d.giveBack(overflow) // a claim that was late, or brought larger tasks than before, has met the room of others
	if d.life.draining.Load() || d.isolated.Load() {
		d.giveBack(starters)
	} else {
		d.pool.Add(r.Queue, starters...)
	}
	d.poke()
}

// claimLate gives the places that a claim in flight was to fill to other queues.
func (d *Dispatcher) claimLate(r ClaimRequest) {
	d.mu.Lock()
	if q := d.queues[r.Queue]; q != nil && q.unanswered != nil && q.unanswered.Seq == r.Seq {
		d.sched.Late(r.Queue)
		d.unreserve(q)
		d.wakeStarved(d.opts.Clock.Now())
	}
	d.mu.Unlock()
	d.poke()
}

// take makes attempts of leased tasks and parts them into those that this process can run, those that it cannot, and those
// for which it has no room.
func (d *Dispatcher) take(r ClaimRequest, reply *ClaimReply, sentAt, now time.Time) (starters, strangers, overflow []*running) {
	d.mu.Lock()
	settings := reply.Settings
	if settings == nil {
		settings = d.queue(r.Queue).settings
	}
	d.mu.Unlock()
	starters = make([]*running, 0, len(reply.Leased))
	runs := make([]running, len(reply.Leased)) // one allocation; they come and go together
	for i := range reply.Leased {
		leased, run := &reply.Leased[i], &runs[i]
		*run = running{
			d: d, leased: leased, settings: settings, sentAt: sentAt, claimedAt: now,
			leaseUntil: sentAt.Add(leased.Task.Timeout + d.opts.LeaseGrace),
		}
		switch {
		case !d.canRun(leased):
			run.stranger = true
			strangers = append(strangers, run)
		case !d.admit(run):
			overflow = append(overflow, run)
		default:
			starters = append(starters, run)
		}
	}
	return starters, strangers, overflow
}

// canRun says whether this process can run a task. What it cannot is warned of once, and never costs an attempt:
// another version of the program may know it.
func (d *Dispatcher) canRun(l *Leased) bool {
	if l.Err == nil && (l.Task.URL != "" || d.handlers[l.Task.Kind] != nil) {
		return true
	}
	kind := l.Task.Kind
	if l.Err != nil {
		kind = "(unreadable record)"
	}
	d.mu.Lock()
	warned := d.unknown[kind] || len(d.unknown) >= maxUnknownKinds
	if !warned {
		d.unknown[kind] = true
	}
	d.mu.Unlock()
	if !warned {
		d.log.Warn("dispatch: this process has no handler for a kind of tasks, or cannot read them; it leaves them to others",
			"kind", kind, "queue", l.Task.Queue, "task", l.Task.ID)
	}
	return false
}

// claimAnswered tells the scheduler what a claim has brought. strange counts its tasks when it brought nothing but
// tasks that this process cannot run. d.mu is held.
func (d *Dispatcher) claimAnswered(name string, reply *ClaimReply, strange int, now time.Time) {
	q := d.queue(name)
	q.unanswered, q.failures, q.answeredAt = nil, 0, now
	d.filled(q, reply)
	if reply.Settings != nil {
		q.settings = reply.Settings
		if !q.stale {
			d.sched.SetLimits(name, d.limitsOf(q), now)
		}
	}
	claimed := scheduler.Claim{Leased: len(reply.Leased)}
	for i := range reply.Leased {
		if reply.Leased[i].Urgent {
			claimed.Uncharged++
		}
	}
	var again time.Time // when to look again for tasks that fit
	q.nextDue = time.Time{}
	if reply.Next >= 0 {
		q.nextDue = now.Add(reply.Next)
		claimed.Next = q.nextDue
	}
	if reply.Next > 0 {
		claimed.Next, _ = d.turn(Hint{Queue: name, Wait: reply.Next}, now) // zero: it is for others
	}
	switch {
	case reply.Urgent && len(reply.Leased) > 0: // the rest of them, whatever blocks the others
		q.stale = true
		d.sched.Reset(name, now)
	case reply.Block == BlockedByPause:
		claimed.Next, q.nextDue = time.Time{}, time.Time{} // resuming it is announced
	case reply.Block == BlockedByRate:
		claimed.Retry = now.Add(min(d.rateWait(q, reply), d.opts.ReconcileInterval)) // the rate may be changed meanwhile
	case reply.Block == BlockedByConcurrency:
		claimed.Blocked = true
		claimed.Retry = now.Add(concurrencyHold)
	case reply.Block == BlockedByCapacity:
		if d.lookFurther(q, reply, now) {
			break
		}
		claimed.Next, again = time.Time{}, d.starve(q, reply, now)
	case strange > 0:
		claimed.Retry = now.Add(strangeQueueHold * time.Duration(strange) / time.Duration(d.opts.PerQueueClaimCap))
	}
	q.emptyAt = time.Time{}
	if reply.Next != 0 || reply.Block == BlockedByPause {
		q.emptyAt = now
	}
	q.leaseEnd = time.Time{}
	if reply.LeaseEnd >= 0 {
		q.leaseEnd = now.Add(reply.LeaseEnd)
	}
	d.sched.Claimed(name, claimed, now)
	d.tellBounds()
	if !again.IsZero() {
		d.sched.Due(name, again, now)
	}
	if len(reply.Leased) > strange {
		d.stepIn(q, now)
	}
	d.adapt(q, reply, now)
	if reply.Next == 0 && reply.Block == "" {
		d.handOver(q, now)
	}
	d.wakeStarved(now)
	d.tellQuiet(now)
}

// claimFailed puts a queue off after a claim that got no answer. The claim stays unanswered: it may have leased tasks,
// and repeating it finds them.
func (d *Dispatcher) claimFailed(r ClaimRequest, err error, now time.Time) {
	d.mu.Lock()
	q := d.queue(r.Queue)
	gone := isNotFound(err)
	if gone {
		q.unanswered, q.failures, q.settings, q.leaseEnd = nil, 0, nil, time.Time{}
		q.emptyAt, q.nextDue = now, time.Time{}
	} else {
		q.failures++
	}
	claimed := scheduler.Claim{Next: now, Retry: now.Add(backoffAfter(q.failures))}
	if gone {
		claimed = scheduler.Claim{}
	}
	d.sched.Claimed(r.Queue, claimed, now)
	d.unreserve(q)
	d.wakeStarved(now)
	d.tellQuiet(now)
	d.mu.Unlock()
	if !gone && d.life.reports.Err() == nil {
		d.log.failing("claim", err, "queue", r.Queue)
	}
	d.poke()
}

// returnLateStarters gives back tasks that have waited too long for a place: another process may have one.
func (d *Dispatcher) returnLateStarters(now time.Time) {
	if d.pool.Waiting() == 0 {
		return
	}
	patience := min(prefetchPatience, d.opts.LeaseGrace/2)
	late := d.pool.Withdraw(func(r *running) bool { return now.Sub(r.claimedAt) >= patience })
	for _, r := range late {
		d.release(r, 0)
	}
}

// poke wakes the claim loop.
func (d *Dispatcher) poke() {
	select {
	case d.signal <- struct{}{}:
	default:
	}
}
