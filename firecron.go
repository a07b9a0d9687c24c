package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	cronBatch = 100
	// cronPoll is how often the store is asked for due entries without a message of a change.
	cronPoll = 15 * time.Second
	// cronStale is how long what the store said of due entries is acted on. A leader that was frozen asks again.
	cronStale = 10 * time.Second
	// missedAfter is how late a tick is missed, and dealt with as the entry's Misfire says.
	missedAfter = time.Minute
	// maxMissed is how many missed ticks MisfireAll fires.
	maxMissed = 100
)

// fireCron enqueues the tasks of cron entries when their ticks come. The ID of a task is made of the tick, so that a tick
// makes one task however often, and by however many leaders, it is fired. First the task is stored, then the entry moved
// on: a leader that dies in between is followed by one that stores it again, in vain.
func (t *term) fireCron(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		wait, err := t.d.fireDue(ctx, t.number)
		if err != nil {
			t.failed(ctx, "cron", err)
			failures++
			t.d.pause(ctx, backoffAfter(failures))
			continue
		}
		failures = 0
		t.d.log.recovered("cron")
		if wait < 0 || wait > cronPoll {
			wait = soonerThan(cronPoll)
		}
		t.d.pauseOr(ctx, wait, t.d.cronHeard)
	}
}

// fireDue fires all entries that are due, and says how long until the next one is; below zero is not known. An entry that
// fails, or that cannot be fired by this process, does not hold up the others: those behind it are asked for past it. The
// error is that of one that failed.
func (d *Dispatcher) fireDue(ctx context.Context, term int64) (wait time.Duration, err error) {
	select {
	case d.firing <- struct{}{}: // a tick that is stored is announced before somebody else here finds it stored
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-d.firing }()
	next := time.Duration(-1)
	for stuck := 0; ; {
		asked := d.opts.Clock.Now()
		due, now, wait, failed := d.store.DueEntries(ctx, stuck, cronBatch)
		if failed != nil {
			return 0, failed
		}
		var mu sync.Mutex // guards what follows
		each(ctx, due, func(e *EntryInfo) {
			if d.opts.Clock.Now().Sub(asked) > cronStale {
				mu.Lock()
				next = 0 // this process was frozen, or the store is slow: it asks again
				mu.Unlock()
				return
			}
			at, failed := d.fireEntry(ctx, e, now, term)
			mu.Lock()
			defer mu.Unlock()
			if failed != nil {
				stuck++
			}
			if errors.Is(failed, errUnreadable) {
				d.log.failing("cron entry "+clip(e.Name, 100), failed)
				return
			}
			if failed != nil {
				err = cmp.Or(err, fmt.Errorf("cron entry %.100s: %w", e.Name, failed))
				return
			}
			d.log.recovered("cron entry " + clip(e.Name, 100))
			next = shorter(next, at.Sub(now), !at.IsZero())
		})
		if wait != 0 || len(due) == 0 || errors.Is(err, ErrLeadershipLost) || ctx.Err() != nil {
			return shorter(next, wait, wait >= 0), err
		}
	}
}

// shorter is the shorter of two waits, of which the first may be below zero for none and the second is if it counts.
func shorter(wait, other time.Duration, counts bool) time.Duration {
	if counts && (wait < 0 || other < wait) {
		return other
	}
	return wait
}

var errUnreadable = errors.New("dispatch: unreadable cron entry")

// fireEntry fires the ticks of an entry up to now and moves it on, to the next tick. An entry that this version cannot
// read, or whose zone it does not know, is left as it is for another leader to fire.
func (d *Dispatcher) fireEntry(ctx context.Context, e *EntryInfo, now time.Time, term int64) (next time.Time, err error) {
	schedule, err := e.schedule()
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	onTime := now.Add(-missedAfter)
	ticks, missed := e.missedTicks(schedule, onTime)
	if missed > 0 {
		d.log.Warn("dispatch: ticks of a cron entry were missed", "entry", e.Name, "missed", missed,
			"fired", len(ticks), "policy", e.Misfire)
	}
	if e.Since.After(onTime) {
		onTime = e.Since
	}
	fresh, _ := schedule.Last(onTime, now, int(missedAfter/time.Second)+1)
	for _, tick := range append(ticks, fresh...) {
		if err := d.fireTick(ctx, &e.Entry, tick); err != nil {
			return time.Time{}, err
		}
	}
	next, _ = schedule.Next(now)
	_, err = d.store.AdvanceEntry(ctx, EntryAdvance{
		Name: e.Name, Revision: e.Revision, Since: now, Next: next, Term: term,
	})
	return next, err
}

// missedTicks are the ticks that were missed and are fired all the same, and how many were missed in all.
func (e *EntryInfo) missedTicks(schedule ticker, until time.Time) (fire []time.Time, missed int64) {
	if !e.Since.Before(until) {
		return nil, 0
	}
	most := 1
	switch e.Misfire {
	case MisfireSkip:
		most = 0
	case MisfireAll:
		most = maxMissed
	}
	return schedule.Last(e.Since, until, most)
}

// ticker is what firing needs of a schedule; see internal/cron.
type ticker interface {
	Last(after, upTo time.Time, n int) (ticks []time.Time, total int64)
}

// fireTick stores the task of one tick, unless it is stored or was. A task that its queue does not take is dropped with
// a warning, so that it does not keep the entry from its next tick.
func (d *Dispatcher) fireTick(ctx context.Context, e *Entry, tick time.Time) error {
	task := e.Task
	task.ID = tickID(e.Name, tick)
	task.ScheduleTime = tick
	submission, err := d.submit(task)
	if err == nil {
		submission.Derived = true
		var reply EnqueueReply
		var refused []error
		reply, refused, err = d.storeTasks(ctx, d.store, submission.Queue, []Submission{submission}, EnqueueOptions{Strict: d.strict})
		if announced := d.announceEnqueue(submission.Queue, reply, err); announced != nil {
			await(ctx, announced)
		}
		if err == nil && !errors.Is(refused[0], ErrDuplicateTask) {
			err = refused[0]
		}
	}
	var bad *FieldError
	if errors.As(err, &bad) || errors.Is(err, ErrQueueNotFound) || errors.Is(err, ErrUnschedulable) ||
		errors.Is(err, ErrQueueDraining) {
		d.log.Warn("dispatch: a cron entry's task was refused; this tick is dropped", "entry", e.Name, "tick", tick, "queue", task.Queue, "error", err)
		return nil
	}
	return err
}
