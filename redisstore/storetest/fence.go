package storetest

import (
	"time"

	"github.com/dispatchkit/dispatch"
)

var fenceCases = []testcase{
	{"a wrong fence changes nothing", wrongFence},
	{"a task that was never leased, or never was", notLeased},
	{"a queue that does not exist", settleOfNoQueue},
	{"after a sweep and another claim the old lease is stale", staleAfterSweep},
	{"what was extended after a sweep had read it is not swept", extendedAfterRead},
	{"after a release and another claim by the same worker", staleAfterRelease},
	{"after success", staleAfterSuccess},
	{"after deletion", staleAfterDelete},
	{"of two at once exactly one counts", sweepAgainstSettle},
}

var allOutcomes = []dispatch.Outcome{dispatch.Succeeded, dispatch.Retry, dispatch.Dead, dispatch.Released}

// unchanged runs f and demands that the task reads the same before and after.
func (e *env) unchanged(id string, f func()) {
	e.Helper()
	before, err := e.store.Task(e.ctx, queue, dispatch.TaskID(id))
	e.ok(err)
	counts := e.counts()
	f()
	now, err := e.store.Task(e.ctx, queue, dispatch.TaskID(id))
	e.ok(err)
	equal(e, "task "+id, now, before)
	equal(e, "counts", e.counts(), counts)
}

// powerless demands that nothing can be done with a lease.
func (e *env) powerless(l dispatch.Leased) {
	e.Helper()
	for _, outcome := range allOutcomes {
		for _, after := range []time.Duration{0, time.Hour} {
			s := ended(l, outcome, after)
			s.Tombstone = time.Hour
			p := progress(l.At, 5)
			s.Progress = &p
			e.refused(l.Worker, s)
		}
	}
	moved, err := e.store.Extend(e.ctx, queue, []dispatch.Extension{{ID: l.Task.ID, Lease: l.Lease, For: time.Hour}})
	e.ok(err)
	equal(e, "extended", moved, []bool{false})
}

func wrongFence(e *env) {
	e.put("a", "b")
	l := e.claimed(alice, 2, "a", "b")
	e.unchanged("a", func() {
		for _, fence := range []string{"", " ", l[0].Lease.Fence + "0", l[0].Lease.Fence[1:], l[1].Lease.Fence} {
			forged := l[0]
			forged.Lease.Fence = fence
			e.powerless(forged)
		}
	})
	e.applied(alice, ended(l[0], dispatch.Succeeded, 0))
}

func notLeased(e *env) {
	e.put("lent", "waits")
	l := e.one(alice, "lent")
	e.unchanged("waits", func() {
		for _, id := range []dispatch.TaskID{"waits", "never"} {
			forged := l
			forged.Task.ID = id
			e.powerless(forged)
			forged.Lease = dispatch.Lease{}
			e.powerless(forged)
		}
	})
	e.gone("never")
}

func settleOfNoQueue(e *env) {
	e.powerless(dispatch.Leased{Task: task("a"), Worker: alice, Lease: dispatch.Lease{Token: 1, Fence: "1 w-alice 1 1"}})
	equal(e, "queues", len(e.queues()), 0)
}

func staleAfterSweep(e *env) {
	e.enqueue(submit("a", named(1)))
	old := e.one(alice, "a")
	e.advance(lease)
	e.applied(bob, ended(old, dispatch.Retry, 0))
	e.unchanged("a", func() { e.powerless(old) })
	now := e.one(bob, "a")
	e.unchanged("a", func() { e.powerless(old) })
	e.applied(bob, ended(now, dispatch.Succeeded, time.Hour))
	e.unchanged("a", func() { e.powerless(old) })
	e.unchanged("a", func() { e.powerless(now) })
}

func extendedAfterRead(e *env) {
	e.put("extended", "over")
	leased := e.claimed(alice, 2, "extended", "over")
	e.advance(lease)
	over, _ := e.expired(10)
	equal(e, "expired", leasedIDs(over), []string{"extended", "over"})
	e.extend(time.Second, leased[0])
	sweep := func(want ...bool) {
		e.Helper()
		r := dispatch.SettleRequest{Queue: queue, Worker: bob, Ended: true}
		for _, l := range over {
			r.Items = append(r.Items, ended(l, dispatch.Retry, time.Hour))
		}
		equal(e, "applied", e.settleAs(r).Applied, want)
	}
	sweep(false, true)
	e.info("extended", dispatch.TaskRunning)
	e.advance(time.Second - time.Millisecond)
	sweep(false, false)
	e.advance(time.Millisecond)
	sweep(true, false)
	e.info("extended", dispatch.TaskWaiting)
}

func staleAfterRelease(e *env) {
	e.put("a")
	old := e.one(alice, "a")
	e.applied(alice, ended(old, dispatch.Released, 0))
	now := e.one(alice, "a")
	e.unchanged("a", func() { e.powerless(old) })
	e.applied(alice, ended(now, dispatch.Succeeded, 0))
}

func staleAfterSuccess(e *env) {
	e.put("a")
	old := e.one(alice, "a")
	e.applied(alice, ended(old, dispatch.Succeeded, 0))
	e.powerless(old)
	e.gone("a")
	e.put("a")
	e.unchanged("a", func() { e.powerless(old) })
}

func staleAfterDelete(e *env) {
	e.put("a")
	old := e.one(alice, "a")
	e.remove(0, "a")
	e.powerless(old)
	e.put("a")
	e.one(bob, "a")
	e.unchanged("a", func() { e.powerless(old) })
}

func sweepAgainstSettle(e *env) {
	ids := e.fill(40)
	e.advance(time.Second)
	leased := e.claim(alice, len(ids)).Leased
	e.advance(lease)
	results := make(chan int)
	for i := range 4 { // a worker that comes late and three sweepers
		go func() {
			won := 0
			for _, l := range leased {
				outcome := dispatch.Retry
				if i == 0 {
					outcome = dispatch.Succeeded
				}
				r, err := e.store.Settle(e.ctx, dispatch.SettleRequest{Queue: queue, Worker: alice,
					Items: []dispatch.Settlement{ended(l, outcome, time.Hour)}})
				if err != nil {
					e.Error(err)
				} else if r.Applied[0] {
					won++
				}
			}
			results <- won
		}()
	}
	won := 0
	for range 4 {
		won += <-results
	}
	equal(e, "outcomes that counted", won, len(ids))
	c := e.counts()
	equal(e, "succeeded and retried", c.TotalSucceeded+c.TotalRetried, int64(len(ids)))
}
