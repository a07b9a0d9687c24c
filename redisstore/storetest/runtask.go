package storetest

import (
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
)

var runTaskCases = []testcase{
	{"a task that waits is due at once, before all others", runBefore},
	{"a task is run in a paused queue", runPaused},
	{"a task is run outside of the limits, and does not use them up", runUnlimited},
	{"its old time does not come again", runMoves},
	{"an attempt that runs loses its lease", runTakesLease},
	{"a failed run waits like any other", runThenRetry},
	{"a run that was sent twice is one", runTwice},
	{"a run that is given back unstarted is still to be run at once", runReleased},
	{"a worker may pass such tasks on, and leave them to others", runLeftToOthers},
	{"what is skipped does not hide such a task", runBehindSkip},
	{"a claim that was sent twice knows it", runClaimRepeated},
	{"what has ended, is purged or never was is not run", runRefuses},
	{"more than one claim takes", runMany},
	{"a paused queue with such a task has something to do", runIsSeen},
}

func (e *env) runTask(id string) (lost int64) {
	e.Helper()
	lost, err := e.store.RunTask(e.ctx, queue, dispatch.TaskID(id))
	e.ok(err)
	return lost
}

func runBefore(e *env) {
	e.put("first", "second")
	e.enqueue(submit("late", after(time.Hour)))
	e.advance(time.Second)
	asked := e.now()
	equal(e, "lost", e.runTask("late"), 0)
	e.at("due", e.info("late", dispatch.TaskWaiting).Due, asked)
	e.advance(time.Second)
	l := e.claimed(alice, 3, "late", "first", "second")
	equal(e, "urgent", []bool{l[0].Urgent, l[1].Urgent}, []bool{true, false})
	e.at("due", l[0].Due, asked)
	e.at("leased at", l[0].At, asked.Add(time.Second))
}

func runPaused(e *env) {
	e.put("a", "b")
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueuePaused))
	e.claimed(alice, 9)
	e.runTask("b")
	r := e.claim(alice, 9)
	equal(e, "leased", leasedIDs(r.Leased), []string{"b"})
	equal(e, "block", r.Block, dispatch.BlockedByPause)
	e.claimed(alice, 9)
	e.applied(alice, ended(r.Leased[0], dispatch.Succeeded, 0))
	e.gone("b")
}

func runUnlimited(e *env) {
	e.create(dispatch.Queue{Rate: 1, Burst: 2, MaxConcurrent: 3})
	for i := range 8 {
		e.put(fmt.Sprint("t", i))
	}
	e.claimed(alice, 9, "t0", "t1") // the burst
	e.runTask("t7")
	e.runTask("t6")
	e.advance(500 * time.Millisecond)
	equal(e, "without a token", len(e.claim(alice, 9).Leased), 2)
	e.advance(500 * time.Millisecond)
	e.claimed(alice, 9) // four run, and no more than three may
	e.runTask("t5")
	r := e.claim(alice, 9)
	equal(e, "beyond the concurrency", leasedIDs(r.Leased), []string{"t5"})
	equal(e, "block", r.Block, dispatch.BlockedByConcurrency)
	e.change(func(q *dispatch.Queue) { q.MaxConcurrent = 0 })
	e.claimed(alice, 9, "t2") // the token of the second that went by
}

func runMoves(e *env) {
	e.enqueue(submit("a", after(time.Hour)))
	e.runTask("a")
	e.applied(alice, ended(e.one(alice, "a"), dispatch.Succeeded, 0))
	e.advance(2 * time.Hour)
	e.claimed(alice, 9)
	e.gone("a")
}

func runTakesLease(e *env) {
	e.put("a")
	l := e.one(alice, "a")
	equal(e, "lost", e.runTask("a"), l.Lease.Token)
	again := e.one(bob, "a")
	equal(e, "attempts", again.Progress.Attempts, 0)
	e.refused(alice, ended(l, dispatch.Succeeded, 0))
	e.applied(bob, ended(again, dispatch.Succeeded, 0))
	e.gone("a")
}

func runThenRetry(e *env) {
	e.put("a")
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueuePaused))
	e.runTask("a")
	e.applied(alice, ended(e.one(alice, "a"), dispatch.Retry, time.Second))
	e.advance(time.Minute)
	e.claimed(alice, 9)
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueueRunning))
	equal(e, "urgent", e.one(alice, "a").Urgent, false)
}

func runReleased(e *env) {
	e.put("a", "b")
	e.runTask("a")
	asked := e.info("a", dispatch.TaskWaiting).Due
	e.state(dispatch.QueuePaused)
	e.advance(time.Second)
	given := ended(e.one(alice, "a"), dispatch.Released, 0)
	given.GivenBack = true
	e.applied(alice, given)
	e.at("due", e.info("a", dispatch.TaskWaiting).Due, asked)
	l := e.one(bob, "a")
	equal(e, "urgent", l.Urgent, true)
	e.applied(bob, ended(l, dispatch.Released, 0)) // its handler's own word
	e.claimed(alice, 9)
}

// passOn releases a task that its worker cannot run.
func (e *env) passOn(l dispatch.Leased) {
	e.Helper()
	s := ended(l, dispatch.Released, 5*time.Second)
	s.GivenBack = true
	e.applied(alice, s)
}

func runLeftToOthers(e *env) {
	e.put("a")
	e.enqueue(submit("b", after(time.Minute)))
	e.runTask("a")
	asked := e.info("a", dispatch.TaskWaiting).Due
	e.passOn(e.one(alice, "a"))
	e.at("due", e.info("a", dispatch.TaskWaiting).Due, asked)
	r := e.request(alice, 9)
	r.SkipPassed = true
	reply := e.send(r)
	equal(e, "leased", len(reply.Leased), 0)
	equal(e, "next", reply.Next, time.Minute)
	e.put("c")
	r = e.request(alice, 9)
	r.SkipPassed = true
	equal(e, "leased", leasedIDs(e.send(r).Leased), []string{"c"})
	e.advance(time.Second)
	e.put("d")
	e.runTask("d") // asked for later, and nobody has passed it on
	r = e.request(alice, 9)
	r.SkipPassed = true
	l := e.send(r).Leased
	equal(e, "leased", leasedIDs(l), []string{"d"})
	given := ended(l[0], dispatch.Released, 0)
	given.GivenBack = true
	e.applied(alice, given)
	equal(e, "leased", leasedIDs(e.claim(bob, 9).Leased), []string{"d", "a"})
}

func runBehindSkip(e *env) {
	e.put("a", "b", "c")
	e.runTask("c")
	r := e.request(alice, 9)
	r.Skip = 1
	equal(e, "leased", leasedIDs(e.send(r).Leased), []string{"c", "b"})
}

func runTwice(e *env) {
	e.put("a")
	e.runTask("a")
	e.runTask("a") // by two callers: still one task
	e.one(alice, "a")
	e.claimed(alice, 9)
}

func runClaimRepeated(e *env) {
	e.put("a")
	e.advance(time.Minute)
	e.runTask("a")
	r := e.request(alice, 1)
	first := e.send(r).Leased[0]
	r.Repeat = true
	again := e.send(r).Leased[0]
	equal(e, "urgent", again.Urgent, true)
	e.at("due", again.Due, first.Due)
	equal(e, "lease", again.Lease, first.Lease)
}

func runRefuses(e *env) {
	e.put("a", "b", "c")
	e.applied(alice, ended(e.one(alice, "a"), dispatch.Dead, time.Hour))
	e.applied(alice, ended(e.one(alice, "b"), dispatch.Succeeded, time.Hour))
	for id, want := range map[dispatch.TaskID]error{
		"a": dispatch.ErrTaskEnded, "b": dispatch.ErrTaskEnded, "none": dispatch.ErrTaskNotFound,
	} {
		_, err := e.store.RunTask(e.ctx, queue, id)
		e.fails(string(id), err, want)
	}
	_, err := e.store.RunTask(e.ctx, "other", "a")
	e.fails("no queue", err, dispatch.ErrTaskNotFound)
	e.ok(e.store.PurgeQueue(e.ctx, queue, 0))
	_, err = e.store.RunTask(e.ctx, queue, "c")
	e.fails("purged", err, dispatch.ErrTaskNotFound)
}

func runMany(e *env) {
	ids := e.fill(300)
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueuePaused))
	for _, id := range ids {
		e.runTask(id)
	}
	left := len(ids)
	for range 3 {
		r := e.claim(alice, 100)
		equal(e, "leased", len(r.Leased), 100)
		left -= len(r.Leased)
		equal(e, "more are due", r.Next == 0, left > 0)
	}
	e.claimed(alice, 100)
}

func runIsSeen(e *env) {
	e.put("a")
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueuePaused))
	hints, err := e.store.Look(e.ctx, []string{queue})
	e.ok(err)
	equal(e, "hints of a paused queue", len(hints), 0)
	e.runTask("a")
	hints, err = e.store.Look(e.ctx, []string{queue})
	e.ok(err)
	equal(e, "hints", hints, []dispatch.Hint{{Queue: queue}})
}
