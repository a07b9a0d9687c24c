package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

const ghost = cluster.WorkerID("w-ghost")

// die claims the due tasks of a queue as a worker that is never heard of again.
func (e *env) die(queue string, seq int64) []dispatch.Leased {
	e.Helper()
	reply, err := e.store.Claim(e.Context(), dispatch.ClaimRequest{
		Queue: queue, Worker: ghost, Seq: seq, Budget: 100, Grace: 10 * time.Second,
	})
	e.ok(err)
	return reply.Leased
}

// The attempts of a worker that died are lost when their leases end: they count, and are repeated after the backoff.
func TestLeaseOfADeadWorkerIsSwept(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.counting()
	id := e.enqueue(dispatch.Task{Kind: "k", Timeout: time.Minute})
	leased := e.die(dispatch.DefaultQueue, 1)
	if len(leased) != 1 {
		t.Fatalf("%d tasks are leased", len(leased))
	}
	e.run()
	e.advance(70*time.Second - time.Millisecond)
	if len(e.seen.list()) != 0 || e.task(id).State != dispatch.TaskRunning {
		t.Fatalf("before its lease ends the task is %s, events %+v", e.task(id).State, e.seen.list())
	}
	e.advance(time.Millisecond)
	info := e.task(id)
	if e.seen.of(id) != "retry" || info.State != dispatch.TaskWaiting || info.Progress.Attempts != 1 {
		t.Fatalf("outcomes %q, task %+v", e.seen.of(id), info)
	}
	lost := lastAttempt(t, info)
	if lost.ErrorKind != dispatch.KindLeaseLost || lost.Worker != ghost || lost.Token != leased[0].Lease.Token || lost.Number != 1 || lost.Error == "" {
		t.Errorf("the attempt is kept as %+v", lost)
	}
	if want := e.store.Clock.Now().Add(time.Second); !info.Due.Equal(want) {
		t.Errorf("due %v, want the backoff after %v", info.Due, e.store.Clock.Now())
	}
	event := e.seen.list()[0]
	if event.Attempt.ErrorKind != dispatch.KindLeaseLost || event.Attempt.Worker != ghost || event.Err == nil || event.Late != 0 {
		t.Errorf("the observer is told %+v", event)
	}
	e.advance(time.Second)
	if e.seen.of(id) != "retry succeeded" {
		t.Errorf("outcomes %q", e.seen.of(id))
	}
	e.check(dispatch.DefaultQueue)

	// What the dead worker reports after all is too late.
	reply, err := e.store.Settle(t.Context(), dispatch.SettleRequest{Queue: dispatch.DefaultQueue, Worker: ghost, Seq: 1,
		Items: []dispatch.Settlement{{ID: id, Lease: leased[0].Lease, Outcome: dispatch.Succeeded}}})
	e.ok(err)
	if reply.Applied[0] {
		t.Error("the settle of a lost lease is applied")
	}
}

// A lease that is extended while a sweeper already takes it for ended is its holder's still.
func TestLeaseExtendedUnderASweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", succeed)
		id := b.enqueue(d, dispatch.Task{Kind: "k", Timeout: time.Second})
		reply, err := b.redis.Claim(t.Context(), dispatch.ClaimRequest{Queue: dispatch.DefaultQueue, Worker: ghost, Seq: 1, Budget: 1, Grace: time.Second})
		b.ok(err)
		extend := dispatch.Extension{ID: id, Lease: reply.Leased[0].Lease, For: time.Hour}
		found := 0
		b.store.onCall("ExpiredLeases", func(ctx context.Context, do func() error) error {
			err := do()
			if found++; found == 1 {
				if held, err := b.redis.Extend(ctx, dispatch.DefaultQueue, []dispatch.Extension{extend}); err != nil || !held[0] {
					t.Errorf("extended: %v, %v", held, err)
				}
			}
			return err
		})
		time.Sleep(3 * time.Second) // the lease is over, and the first sweep finds it
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := b.seen.of(id); found == 0 || got != "" {
			t.Errorf("after %d sweeps the outcomes are %q", found, got)
		}
		if lease, err := b.redis.Lease(t.Context(), dispatch.DefaultQueue, id); err != nil || lease == nil || lease.Lease != reply.Leased[0].Lease {
			t.Errorf("the lease is %+v, %v", lease, err)
		}
		time.Sleep(time.Hour)
		if got := b.seen.of(id); got != "retry succeeded" {
			t.Errorf("when it is over at last: %q", got)
		}
	})
}

// A task that kills every worker ends as dead.
func TestPoisonTaskEndsDead(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	id := e.enqueue(dispatch.Task{Kind: "k", Timeout: time.Minute, Retry: &dispatch.RetryConfig{MaxAttempts: 3}})
	e.ok(e.d.PauseQueue(t.Context(), dispatch.DefaultQueue)) // for this process; the ghost lifts it for a moment
	for n := range 3 {
		e.ok(e.store.SetState(t.Context(), dispatch.DefaultQueue, dispatch.QueueRunning))
		if leased := e.die(dispatch.DefaultQueue, int64(n+1)); len(leased) != 1 {
			t.Fatalf("death %d: %d tasks are leased", n+1, len(leased))
		}
		e.ok(e.store.SetState(t.Context(), dispatch.DefaultQueue, dispatch.QueuePaused))
		e.ok(e.store.Announce(t.Context(), []dispatch.Hint{{Queue: dispatch.DefaultQueue}}))
		e.run()
		e.advance(70 * time.Second)
		if n < 2 {
			wait := e.task(id).Due.Sub(e.store.Clock.Now())
			if wait != time.Second<<n {
				t.Fatalf("after death %d it waits %v", n+1, wait)
			}
			e.advance(wait)
		}
	}
	info := e.task(id)
	if e.seen.of(id) != "retry retry dead" || info.State != dispatch.TaskDead || info.Progress.Attempts != 3 {
		t.Errorf("outcomes %q, task %+v", e.seen.of(id), info)
	}
}

// Leases are swept by the queue's own retries, also when the process has not claimed from it.
func TestSweepUsesTheQueuesRetries(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.counting()
	_, err := e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Retry: dispatch.RetryConfig{MaxAttempts: 1}})
	e.ok(err)
	id, err := e.d.Enqueue(t.Context(), dispatch.Task{Kind: "k", Queue: "q", Timeout: time.Second})
	e.ok(err)
	e.die("q", 1)
	e.advance(11 * time.Second)
	if e.seen.of(id) != "dead" {
		t.Errorf("outcomes %q", e.seen.of(id))
	}
}

// Many leases, of several queues, and two processes that sweep them: each is lost once.
func TestSweepByTwoProcesses(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.counting()
	other := another(t, e.store, dispatch.Options{Observer: e.seen.observe})
	other.counting()
	for q := range 3 {
		queue := fmt.Sprint("q", q)
		tasks := make([]dispatch.Task, 250)
		for i := range tasks {
			tasks[i] = dispatch.Task{Kind: "k", Queue: queue, Timeout: time.Second, Retry: &noWait}
		}
		_, err := e.d.EnqueueMany(t.Context(), tasks)
		e.ok(err)
		for seq := range 3 {
			e.die(queue, int64(seq+1))
		}
	}
	e.ok(e.d.Start(t.Context()))
	e.ok(other.d.Start(t.Context()))
	e.run()
	other.run() // no claim is under way when the time jumps: what it brings would be given back, its leases being over
	e.store.Advance(11 * time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		other.run()
	}()
	e.run()
	<-done
	e.run()
	if lost, ran := e.seen.count(dispatch.Retry), e.seen.count(dispatch.Succeeded); lost != 750 || ran != 750 || len(e.seen.list()) != 1500 {
		t.Errorf("%d leases were lost and %d tasks have run, want 750 each; %d events", lost, ran, len(e.seen.list()))
	}
	for q := range 3 {
		e.check(fmt.Sprint("q", q))
	}
}

// The loops do the same by themselves, within SweepInterval of the lease's end, give or take what the notes are late.
func TestSweepInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", succeed)
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		id, err := b.redis.Enqueue(t.Context(), "q", []dispatch.Submission{{Task: dispatch.Task{
			ID: "a", Queue: "q", Kind: "k", Timeout: 20 * time.Second}}}, dispatch.EnqueueOptions{})
		b.ok(err)
		_ = id
		_, err = b.redis.Claim(t.Context(), dispatch.ClaimRequest{Queue: "q", Worker: ghost, Seq: 1, Budget: 1, Grace: 10 * time.Second})
		b.ok(err)
		time.Sleep(30*time.Second - time.Millisecond)
		if b.seen.of("a") != "" {
			t.Errorf("swept early: %q", b.seen.of("a"))
		}
		time.Sleep(15 * time.Second)
		if b.seen.of("a") != "retry succeeded" {
			t.Errorf("15 s after the end of the lease: %q", b.seen.of("a"))
		}
	})
}

// A worker that is cut off longer than its lease and reports then is told Discarded; the task has gone on without it.
func TestStaleWorkerIsDiscarded(t *testing.T) {
	e := newEnv(t, dispatch.Options{GlobalConcurrency: 1}) // its place is taken: it claims no more
	other := another(t, e.store, dispatch.Options{Observer: e.seen.observe})
	gate, started := make(chan struct{}), make(chan struct{}, 1)
	e.handle("k", func(context.Context, *dispatch.Task) error {
		started <- struct{}{}
		<-gate
		return nil
	})
	other.counting()
	id := e.enqueue(dispatch.Task{Kind: "k", Timeout: time.Minute, Retry: &noWait})
	e.ok(e.d.Start(t.Context()))
	within(t, "the first attempt", started)
	e.store.Advance(70 * time.Second)
	other.run()
	other.run() // the lease may have been swept by either, and the task been due after the first look
	close(gate)
	e.run()
	events := e.seen.list() // of two processes: which tells first is open
	stale := slices.IndexFunc(events, func(e dispatch.Event) bool { return e.Outcome == dispatch.Discarded })
	if len(events) != 3 || stale < 0 || e.seen.count(dispatch.Retry) != 1 || e.seen.count(dispatch.Succeeded) != 1 {
		t.Fatalf("outcomes %q", e.seen.of(id))
	}
	if event := events[stale]; event.Attempt.Number != 1 || event.Attempt.Duration != 70*time.Second {
		t.Errorf("the stale worker's event is %+v", event)
	}
	e.gone(id)
}

// A handler that runs out of time has failed with a timeout; one that ignores it keeps its lease until that ends.
func TestTimeout(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	causes, started := make(chan error, 1), make(chan struct{}, 1)
	e.handle("k", func(ctx context.Context, _ *dispatch.Task) error {
		if deadline, ok := ctx.Deadline(); !ok || !deadline.Equal(dispatchtest.Start.Add(30*time.Second)) {
			t.Errorf("the deadline is %v, %v", deadline, ok)
		}
		started <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return ctx.Err()
	})
	id := e.enqueue(dispatch.Task{Kind: "k", Timeout: 30 * time.Second})
	e.ok(e.d.Start(t.Context()))
	within(t, "the attempt", started)
	e.store.Advance(30 * time.Second)
	requireError(t, within(t, "the end of the context", causes), context.DeadlineExceeded)
	e.run()
	last := lastAttempt(t, e.task(id))
	if e.seen.of(id) != "retry" || last.ErrorKind != dispatch.KindTimeout || last.Duration != 30*time.Second {
		t.Errorf("outcomes %q, attempt %+v", e.seen.of(id), last)
	}
}

func TestExtend(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	step, extended := make(chan struct{}), make(chan error)
	e.handle("k", func(ctx context.Context, _ *dispatch.Task) error {
		for range 3 {
			<-step
			extended <- dispatch.Extend(ctx, time.Minute)
		}
		<-step
		extended <- dispatch.Extend(ctx, 5*time.Second) // shorter
		<-ctx.Done()
		return ctx.Err()
	})
	id := e.enqueue(dispatch.Task{Kind: "k", Timeout: time.Minute})
	e.ok(e.d.Start(t.Context()))
	for range 3 {
		step <- struct{}{}
		e.ok(within(t, "Extend", extended))
		if end, want := e.task(id).LeaseEnd, e.store.Clock.Now().Add(70*time.Second); !end.Equal(want) {
			t.Errorf("the lease ends %v, want %v", end, want)
		}
		e.store.Advance(50 * time.Second)
	}
	step <- struct{}{}
	e.ok(within(t, "Extend", extended))
	if end, want := e.task(id).LeaseEnd, e.store.Clock.Now().Add(15*time.Second); !end.Equal(want) {
		t.Errorf("the lease ends %v, want %v", end, want)
	}
	e.advance(5 * time.Second)
	last := lastAttempt(t, e.task(id))
	if e.seen.of(id) != "retry" || last.ErrorKind != dispatch.KindTimeout || last.Duration != 155*time.Second {
		t.Errorf("outcomes %q, attempt %+v", e.seen.of(id), last)
	}
}

// Extend of a task that was deleted, or given to another worker, ends the handler's context with ErrLeaseLost.
func TestExtendOfALostLease(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	ended := make(chan error, 2)
	e.handle("k", func(ctx context.Context, task *dispatch.Task) error {
		if err := e.d.DeleteTask(context.WithoutCancel(ctx), task.Queue, task.ID); err != nil {
			t.Error(err)
		}
		ended <- dispatch.Extend(ctx, time.Minute)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	})
	id := e.enqueue(dispatch.Task{Kind: "k"})
	e.run()
	requireError(t, <-ended, dispatch.ErrLeaseLost)
	requireError(t, <-ended, dispatch.ErrLeaseLost)
	if e.seen.of(id) != "discarded" {
		t.Errorf("outcomes %q", e.seen.of(id))
	}
	e.gone(id)
	e.check(dispatch.DefaultQueue)
}
