package dispatch

import (
	"errors"
	"math/rand/v2"
	"time"
)

// Outcome is what became of one attempt, as a small set of words fit for a metric's label.
type Outcome string

// The outcomes of an attempt.
const (
	// Succeeded ends the task.
	Succeeded Outcome = "succeeded"
	// Retry brings the task back later; the attempt counts.
	Retry Outcome = "retry"
	// Dead ends the task as failed.
	Dead Outcome = "dead"
	// Cancelled ends the task because somebody cancelled it, before the attempt was over. An attempt that reports before its
	// worker hears of that is Discarded.
	Cancelled Outcome = "cancelled"
	// Dropped ends the task instead of bringing it back: it was purged meanwhile, or is older than its queue's TaskTTL.
	Dropped Outcome = "dropped"
	// Released brings the task back; the attempt does not count.
	Released Outcome = "released"
	// Discarded is an outcome that came too late: the lease was no longer current, and nothing was changed.
	Discarded Outcome = "discarded"
)

// result is how the work of one attempt ended, before anyone has decided what that means for the task. The zero value
// is success.
type result struct {
	kind   ErrorKind
	err    error
	text   string // what the attempt record keeps of the error
	status int
	output string // what it leaves as the result, of an attempt that succeeded

	sent      bool // a request was sent
	congested bool // its receiver asked for less

	released bool          // the attempt does not count
	snoozed  bool          // with released: its handler says so
	after    time.Duration // with released or fixed: when to come back
	atLeast  time.Duration // the least wait before a retry, as the receiver has asked for
	fixed    bool          // come back after `after` instead of the backoff
	final    bool          // do not retry
}

// handlerResult reads a handler's error: what it says of the task, and why its context had ended, if it had.
func handlerResult(err, cause error) result {
	if err == nil {
		return result{}
	}
	var word *retryDirective
	errors.As(err, &word)
	switch {
	case word != nil && word.snooze:
		return result{released: true, snoozed: true, after: word.after, err: err}
	case isTakenAway(cause) && (word == nil || !word.skip): // "final" is final, also in the last second
		return result{released: true, err: err}
	}
	r := result{kind: KindHandler, err: err, text: err.Error()}
	if isTimeout(cause) {
		r.kind = KindTimeout
	}
	if word != nil {
		r.after, r.fixed, r.final = word.after, word.fixed, word.skip
	}
	return r
}

// isTakenAway says whether a context ended for a reason that is not the attempt's own.
func isTakenAway(cause error) bool {
	return errors.Is(cause, ErrDraining) || errors.Is(cause, ErrLeaseLost) || errors.Is(cause, ErrCancelled)
}

// conclude decides what becomes of a task after an attempt. It is the one place that does, for workers and for the
// sweep of lost leases alike, and but for the jitter of a retry it is pure: record is the attempt, now when it ended, both
// by the store's clock.
func conclude(task *Leased, retry RetryConfig, keep retention, r result, record AttemptRecord, now time.Time) Settlement {
	s := Settlement{ID: task.Task.ID, Lease: task.Lease, Tombstone: keep.tombstone(task.Named, task.Derived, task.Window)}
	record.Status = r.status
	if r.released {
		s.Outcome, s.After, s.GivenBack = Released, min(r.after, maxSchedule), !r.snoozed && r.kind != KindShed
		if r.kind == KindShed {
			record.ErrorKind, record.Error = r.kind, clip(r.text, maxErrorText)
			s.Progress = task.Progress.shed(record)
		}
		return s
	}
	if r.err == nil && r.kind == "" {
		s.Outcome, s.After = Succeeded, keep.success(&task.Task)
		if s.After > 0 {
			s.Progress = task.Progress.with(record)
			if r.output != "" {
				s.Progress.Result = []byte(r.output)
			}
		}
		return s
	}
	record.ErrorKind, record.Error = r.kind, clip(r.text, maxErrorText)
	progress := task.Progress.with(record)
	s.Progress = progress
	if r.final || Exhausted(retry, progress.Attempts, progress.FirstAttempt, now) {
		s.Outcome, s.After = Dead, keep.failed
		return s
	}
	s.Outcome = Retry
	backoff := jittered(retry, Backoff(retry, progress.Attempts), rand.Float64())
	if task.Urgent { // it counts from when the attempt was asked for
		backoff -= now.Sub(task.Due)
	}
	s.After = max(backoff, r.atLeast, 0)
	if r.fixed {
		s.After = r.after
	}
	s.After = min(s.After, maxSchedule)
	return s
}

// with is the progress after one more attempt. It does not touch p's history.
func (p Progress) with(record AttemptRecord) *Progress {
	p.Attempts++
	if record.Status > 0 {
		p.Responses++
	}
	if record.Status > 0 && record.Status < 500 {
		p.Executions++
	}
	p.LastAttempt = record.StartedAt
	if p.FirstAttempt.IsZero() {
		p.FirstAttempt = record.StartedAt
	}
	p.History = remember(p.History, record)
	return &p
}

// shed is the progress after an attempt that was not made. Only the last of several in a row is kept, so that they do
// not displace what happened. It does not touch p's history.
func (p Progress) shed(record AttemptRecord) *Progress {
	if n := len(p.History); n > 0 && p.History[n-1].ErrorKind == KindShed {
		p.History = p.History[:n-1]
	}
	p.History = remember(p.History, record)
	return &p
}

// previous is the last attempt that was made, as far as it is kept; nil before the first.
func (p *Progress) previous() *AttemptRecord {
	for i := len(p.History) - 1; i >= 0; i-- {
		if p.History[i].ErrorKind != KindShed {
			return &p.History[i]
		}
	}
	return nil
}

// remember is a new history with one record more, and the oldest left out that are too many.
func remember(history []AttemptRecord, record AttemptRecord) []AttemptRecord {
	kept := history[max(0, len(history)-(maxHistory-1)):]
	return append(append(make([]AttemptRecord, 0, len(kept)+1), kept...), record)
}

const (
	maxHistory   = 10      // attempts kept with a task
	maxErrorText = 4 << 10 // bytes of an attempt's error
)

// retention is how long what has ended is kept.
type retention struct {
	succeeded, failed time.Duration
	dedup             time.Duration // of names; 0 is none
}

// success is how long a task is kept that has succeeded.
func (k retention) success(t *Task) time.Duration {
	if t.Retention != 0 {
		return max(t.Retention, 0)
	}
	return k.succeeded
}

// derivedTombstone is how long a derived name stays taken at least: longer than any two processes may differ about
// whether what it was derived from is dealt with.
const derivedTombstone = time.Hour

// tombstone is how long the name of a task stays taken after its end, if it is a named one. window is its own, as in
// Submission.
func (k retention) tombstone(named, derived bool, window time.Duration) time.Duration {
	if window == 0 {
		window = k.dedup
	}
	switch {
	case !named:
		return 0
	case derived:
		return max(window, derivedTombstone)
	}
	return max(window, 0)
}
