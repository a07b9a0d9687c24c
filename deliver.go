package dispatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch/worker"
)

// running is one attempt from its lease to its settlement.
type running struct {
	d        *Dispatcher
	leased   *Leased
	settings *Queue // as of the claim

	sentAt    time.Time       // local: when the claim was sent first
	claimedAt time.Time       // local: when it was answered, which is leased.At by the store's clock
	startedAt time.Time       // local
	ctx       *attemptContext // nil until it starts; then &attempt
	admitted  bool            // it has taken room of the process's capacity
	stranger  bool            // this process cannot run it
	token     string          // the bearer token that went out with the request; only the attempt's goroutine uses it
	suspected bool            // its lease may be gone; guarded by Dispatcher.mu
	cancelled bool            // a message says that its task was cancelled; guarded by Dispatcher.mu

	// leaseUntil is when the lease ends by the local clock; ctx.mu guards it once the attempt has started.
	leaseUntil time.Time
	// output is what the handler writes to its ResultWriter.
	output output
	// extending is held by one Extend at a time.
	extending sync.Mutex

	attempt attemptContext
	outcome settling // once it has ended
}

// maxRetryAfter is the longest wait that a receiver may ask for.
const maxRetryAfter = 24 * time.Hour

// run is the pool's function: one attempt, from start to settlement.
func (d *Dispatcher) run(r *running) {
	now := d.opts.Clock.Now()
	if d.life.draining.Load() || d.isolated.Load() || r.leaseUntil.Sub(now) < r.leased.Task.Timeout/2 {
		d.release(r, 0) // a lease with little time left is not worth an attempt
		return
	}
	if d.mayBeRevoked(r, r.sentAt) && !d.holds(r) {
		d.release(r, 0) // which the store will refuse
		return
	}
	r.start(now)
	res := result{kind: KindPanic, err: errGoexit, text: errGoexit.Error()} // unless deliver returns
	defer func() { r.end(res) }()
	res = r.deliver()
}

// deliver does the work of the attempt. A panic in it is a failed attempt, whoever's code it was: a handler's, a
// transport's, or that of an error that was returned.
func (r *running) deliver() (res result) {
	defer func() {
		if p := recover(); p != nil {
			r.d.log.Error("dispatch: delivery panicked", "queue", r.leased.Task.Queue, "task", r.leased.Task.ID,
				"kind", r.leased.Task.Kind)
			text := r.conceal(fmt.Sprintf("panic: %v", p))
			res = result{kind: KindPanic, err: errors.New(text), text: text + "\n" + r.conceal(string(debug.Stack()))}
		}
	}()
	if r.leased.Task.URL != "" {
		return r.deliverHTTP()
	}
	err := r.d.handlers[r.leased.Task.Kind].Handle(r.ctx, &r.leased.Task)
	return handlerResult(err, r.ctx.cause())
}

var errGoexit = errors.New("the handler ended its goroutine")

// start opens the attempt's context. The attempt ends when its Timeout is over, and never after its lease.
func (r *running) start(now time.Time) {
	r.startedAt = now
	deadline := now.Add(r.leased.Task.Timeout)
	if deadline.After(r.leaseUntil) {
		deadline = r.leaseUntil
	}
	r.attempt.begin(r.d.opts.Clock, r, deadline)
	r.ctx = &r.attempt
	r.d.mu.Lock()
	r.d.running[r] = struct{}{}
	if q := r.d.queues[r.leased.Task.Queue]; q != nil && q.revokedAt.After(now) { // since run has asked
		r.suspected = true
		r.d.wakeSuspects()
	}
	ended, isolated := r.d.attemptsEnded, r.d.isolated.Load()
	r.d.mu.Unlock()
	switch {
	case ended:
		r.ctx.end(ErrDraining)
	case isolated:
		r.ctx.end(ErrLeaseLost)
	}
}

// end closes the attempt's context and hands the outcome to be settled.
func (r *running) end(res result) {
	r.ctx.end(context.Canceled)
	if written := r.output.close(); r.leased.Task.URL == "" {
		res.output = written
	}
	r.d.mu.Lock()
	_, open := r.d.running[r]
	delete(r.d.running, r)
	r.d.mu.Unlock()
	if !open {
		return // the drain has given the task back already
	}
	now := r.d.opts.Clock.Now()
	retry := resolveRetry(r.leased.Task.Retry, r.retryOfQueue())
	settlement := conclude(r.leased, retry, r.d.opts.retention(), res, r.record(now), r.storeTime(now))
	s := &r.outcome
	*s = settling{run: r, settlement: settlement, result: res, endedAt: now}
	if s.isLetter() && !r.d.bury(r.d.attempts, s, r.until()) {
		s.settlement.Outcome, s.settlement.After, s.settlement.Progress = Released, 0, nil // it waits like any other
	}
	r.d.settle(s)
}

func (r *running) deliverHTTP() result {
	header := r.header()
	if err := r.authorize(header); err != nil {
		return r.unsent(err)
	}
	if err := r.sign(header, r.storeTime(r.d.opts.Clock.Now())); err != nil {
		return r.unsent(err)
	}
	res := r.d.http.Deliver(r.ctx, worker.Request{
		Method: r.leased.Task.Method,
		URL:    r.leased.Task.URL,
		Header: header,
		Body:   r.leased.Task.Payload,
		Insist: r.leased.Urgent,
	})
	res.Snippet = r.conceal(res.Snippet)
	if res.Err != nil && r.conceal(res.Err.Error()) != res.Err.Error() {
		res.Err = errors.New(r.conceal(res.Err.Error()))
	}
	switch {
	case res.Kind == "":
		return result{status: res.Status, output: res.Snippet, sent: true}
	case res.Kind == worker.KindCancelled:
		return result{released: true, err: r.ctx.cause()}
	case res.Kind == worker.KindShed:
		return result{released: true, kind: KindShed, after: res.RetryIn, err: res.Err, text: res.Err.Error()}
	}
	out := result{
		kind: ErrorKind(res.Kind), err: res.Err, status: res.Status, text: res.Snippet,
		final: res.Advice.NoRetry || res.Permanent,
	}
	out.atLeast = res.Advice.RetryAfter
	if !res.Advice.RetryAt.IsZero() {
		out.atLeast = res.Advice.RetryAt.Sub(r.storeTime(r.d.opts.Clock.Now()))
	}
	out.atLeast = min(out.atLeast, maxRetryAfter)
	out.sent, out.congested = res.Kind != worker.KindConfig, isCongested(res)
	if out.err == nil {
		out.err = fmt.Errorf("HTTP status %d", res.Status)
	}
	if out.text == "" {
		out.text = out.err.Error()
	}
	return out
}

// isCongested says whether a receiver asks for less.
func isCongested(res worker.Result) bool {
	switch res.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return res.Advice.RetryAfter > 0 || !res.Advice.RetryAt.IsZero()
}

func (r *running) retryOfQueue() RetryConfig {
	if r.settings == nil {
		return RetryConfig{}
	}
	return r.settings.Retry
}

// number is the attempt's: released attempts do not count.
func (r *running) number() int { return r.leased.Progress.Attempts + 1 }

// storeTime is a local instant by the store's clock, late by at most the time that the claim's answer took.
func (r *running) storeTime(local time.Time) time.Time {
	return r.leased.At.Add(local.Sub(r.claimedAt))
}

func (r *running) describe() Attempt {
	return Attempt{
		Task: &r.leased.Task, Number: r.number(), Token: r.leased.Lease.Token, Worker: r.leased.Worker,
		ScheduledAt: r.leased.Due, StartedAt: r.storeTime(r.startedAt),
	}
}

// record is what the task keeps of an attempt that ended now, its failure aside.
func (r *running) record(now time.Time) AttemptRecord {
	return AttemptRecord{
		Number: r.number(), StartedAt: r.storeTime(r.startedAt), Duration: max(now.Sub(r.startedAt), 0),
		Worker: r.leased.Worker, Token: r.leased.Lease.Token,
	}
}

// extend moves the deadline to d from now, and the lease with it.
func (r *running) extend(ctx context.Context, d time.Duration) error {
	r.extending.Lock() // so that the last answer of the store is the one that counts here
	defer r.extending.Unlock()
	asked := r.d.opts.Clock.Now()
	length := d + r.d.opts.LeaseGrace
	current, err := r.d.store.Extend(ctx, r.leased.Task.Queue,
		[]Extension{{ID: r.leased.Task.ID, Lease: r.leased.Lease, For: length}})
	if err != nil {
		return err
	}
	if !current[0] {
		r.ctx.end(ErrLeaseLost)
		return ErrLeaseLost
	}
	r.ctx.move(asked.Add(d), asked.Add(length))
	return nil
}

func isTimeout(cause error) bool { return errors.Is(cause, context.DeadlineExceeded) }
