package storetest

import (
	"time"

	"github.com/dispatchkit/dispatch"
)

var cancelCases = []testcase{
	{"a task that waits is cancelled", cancelWaiting},
	{"a task that runs is cancelled, and its worker refused", cancelRunning},
	{"a lease that is not current cancels nothing", cancelFenced},
	{"a cancelled task is gone when its time is over", cancelExpires},
	{"without retention it is gone at once", cancelWithoutRetention},
	{"a cancelled task keeps its name", cancelNames},
	{"cancelled twice it is cancelled once", cancelTwice},
	{"what has ended, is purged or never was is not cancelled", cancelRefuses},
	{"a cancelled task is deleted", cancelDeleted},
	{"the lease of a task is read", leaseIsRead},
	{"a worker can ask what it holds", holdsIsAsked},
}

func (e *env) cancel(c dispatch.Cancellation) bool {
	e.Helper()
	done, err := e.store.CancelTask(e.ctx, queue, c)
	e.ok(err)
	return done
}

func cancelWaiting(e *env) {
	e.put("a", "b")
	equal(e, "cancelled", e.cancel(dispatch.Cancellation{ID: "a", Retention: time.Hour}), true)
	info := e.info("a", dispatch.TaskCancelled)
	e.at("expires", info.ExpiresAt, e.now().Add(time.Hour))
	equal(e, "attempts", info.Progress.Attempts, 0)
	e.claimed(alice, 9, "b")
	c := e.counts()
	equal(e, "counts", []int64{c.Cancelled, c.TotalCancelled, c.Dead, c.Succeeded}, []int64{1, 1, 0, 0})
	equal(e, "listed", e.listed(dispatch.TaskCancelled), []string{"a"})
}

func cancelRunning(e *env) {
	e.put("a")
	l := e.one(alice, "a")
	p := progress(e.now(), 1)
	equal(e, "cancelled", e.cancel(dispatch.Cancellation{ID: "a", Lease: l.Lease, Retention: time.Hour, Progress: &p}), true)
	e.sameProgress("progress", e.info("a", dispatch.TaskCancelled).Progress, p)
	for _, outcome := range []dispatch.Outcome{dispatch.Succeeded, dispatch.Retry, dispatch.Dead, dispatch.Released} {
		e.refused(alice, ended(l, outcome, time.Second))
	}
	moved, err := e.store.Extend(e.ctx, queue, []dispatch.Extension{{ID: "a", Lease: l.Lease, For: time.Hour}})
	e.ok(err)
	equal(e, "extended", moved, []bool{false})
	e.info("a", dispatch.TaskCancelled)
	e.advance(lease)
	over, _ := e.expired(10)
	equal(e, "leases", len(over), 0)
}

func cancelFenced(e *env) {
	e.put("a")
	old := e.one(alice, "a")
	e.applied(alice, ended(old, dispatch.Retry, 0))
	equal(e, "by an old lease", e.cancel(dispatch.Cancellation{ID: "a", Lease: old.Lease, Retention: time.Hour}), false)
	l := e.one(alice, "a")
	equal(e, "by an old lease of a task that runs", e.cancel(dispatch.Cancellation{ID: "a", Lease: old.Lease, Retention: time.Hour}), false)
	equal(e, "without a lease", e.cancel(dispatch.Cancellation{ID: "a", Retention: time.Hour}), false)
	e.applied(alice, ended(l, dispatch.Succeeded, 0))
}

func cancelExpires(e *env) {
	e.put("a")
	e.cancel(dispatch.Cancellation{ID: "a", Retention: time.Hour})
	e.advance(time.Hour - time.Millisecond)
	_, err := e.store.Cleanup(e.ctx, queue, 100)
	e.ok(err)
	e.info("a", dispatch.TaskCancelled)
	e.advance(time.Millisecond)
	names, err := e.store.Expiring(e.ctx, 10)
	e.ok(err)
	equal(e, "expiring", names, []string{queue})
	_, err = e.store.Cleanup(e.ctx, queue, 100)
	e.ok(err)
	e.gone("a")
}

func cancelWithoutRetention(e *env) {
	e.put("a", "b")
	l := e.one(alice, "a")
	p := progress(e.now(), 1)
	e.cancel(dispatch.Cancellation{ID: "a", Lease: l.Lease, Progress: &p})
	e.cancel(dispatch.Cancellation{ID: "b"})
	e.gone("a")
	e.gone("b")
	equal(e, "total", e.counts().TotalCancelled, 2)
}

func cancelNames(e *env) {
	e.enqueue(submit("a", named(1)), submit("b", named(2)), submit("c", derived(3)))
	e.cancel(dispatch.Cancellation{ID: "a", Retention: time.Hour, Tombstone: time.Minute})
	e.cancel(dispatch.Cancellation{ID: "b", Tombstone: time.Minute})
	e.cancel(dispatch.Cancellation{ID: "c"})
	e.taken("a", true)
	e.takenFor(time.Minute, "b")
	e.taken("a", true) // it is retained
	e.taken("c", true)
	e.remove(0, "a")
	e.taken("a", false)
	e.takenFor(time.Hour-time.Minute-time.Millisecond, "c")
}

func cancelTwice(e *env) {
	e.put("a")
	for range 2 {
		equal(e, "cancelled", e.cancel(dispatch.Cancellation{ID: "a", Retention: time.Hour}), true)
	}
	equal(e, "total", e.counts().TotalCancelled, 1)
}

func cancelRefuses(e *env) {
	e.put("a", "b", "c")
	e.applied(alice, ended(e.one(alice, "a"), dispatch.Dead, time.Hour))
	e.applied(alice, ended(e.one(alice, "b"), dispatch.Succeeded, time.Hour))
	for id, want := range map[dispatch.TaskID]error{
		"a": dispatch.ErrTaskEnded, "b": dispatch.ErrTaskEnded, "none": dispatch.ErrTaskNotFound,
	} {
		_, err := e.store.CancelTask(e.ctx, queue, dispatch.Cancellation{ID: id, Retention: time.Hour})
		e.fails(string(id), err, want)
	}
	_, err := e.store.CancelTask(e.ctx, "other", dispatch.Cancellation{ID: "a"})
	e.fails("no queue", err, dispatch.ErrTaskNotFound)
	e.ok(e.store.PurgeQueue(e.ctx, queue, 0))
	_, err = e.store.CancelTask(e.ctx, queue, dispatch.Cancellation{ID: "c"})
	e.fails("purged", err, dispatch.ErrTaskNotFound)
}

func cancelDeleted(e *env) {
	e.put("a")
	e.cancel(dispatch.Cancellation{ID: "a", Retention: time.Hour})
	e.remove(0, "a")
	e.gone("a")
	equal(e, "cancelled", e.counts().Cancelled, 0)
}

func leaseIsRead(e *env) {
	e.put("a", "b")
	l := e.one(alice, "a")
	e.advance(time.Second)
	got, err := e.store.Lease(e.ctx, queue, "a")
	e.ok(err)
	equal(e, "lease", got.Lease, l.Lease)
	equal(e, "worker", got.Worker, alice)
	e.at("at", got.At, l.At.Add(time.Second))
	for _, id := range []dispatch.TaskID{"b", "none"} {
		got, err := e.store.Lease(e.ctx, queue, id)
		e.ok(err)
		if got != nil {
			e.Errorf("%s has lease %v", id, got.Lease)
		}
	}
}

func holdsIsAsked(e *env) {
	e.put("a", "b", "c")
	ls := e.claim(alice, 3).Leased
	e.applied(alice, ended(ls[0], dispatch.Succeeded, 0), ended(ls[1], dispatch.Retry, 0))
	e.one(bob, "b")
	var asked []dispatch.Held
	for _, l := range ls {
		asked = append(asked, dispatch.Held{ID: l.Task.ID, Lease: l.Lease})
	}
	held, err := e.store.Holds(e.ctx, queue, asked)
	e.ok(err)
	equal(e, "held", held, []bool{false, false, true})
	held, err = e.store.Holds(e.ctx, "other", asked)
	e.ok(err)
	equal(e, "held elsewhere", held, []bool{false, false, false})
}
