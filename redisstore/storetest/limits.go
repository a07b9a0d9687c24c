package storetest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

var limitCases = []testcase{
	{"concurrency: never more leases than allowed", concurrencyIsExact},
	{"concurrency: a lease that is over holds its place until it is settled", concurrencyOfExpired},
	{"concurrency: no block when nothing more is due", noBlockWithoutNeed},
	{"concurrency: a change takes effect with the next claim", concurrencyChanges},
	{"concurrency: a purged task takes no place", concurrencyAndPurge},
	{"rate: a burst and then one by one", rateRefills},
	{"rate: a pause saves up no more than the burst", rateSavesBurst},
	{"rate: the long-term rate is exact", rateIsExact},
	{"rate: slower than one in a minute", slowRate},
	{"rate: no block when nothing more is due", rateNoBlock},
	{"rate: a clock set back blocks no longer than the burst takes", rateBackwards},
	{"rate: from slow to fast", rateSlowToFast},
	{"rate: from fast to slow", rateFastToSlow},
	{"rate: a change fills nothing", rateChangeFillsNothing},
	{"rate: removed", rateRemoved},
	{"rate and concurrency together", rateAndConcurrency},
}

// rateChangeFillsNothing lowers the rate of a queue whose bucket is empty: an operator who does that wants no burst.
func rateChangeFillsNothing(e *env) {
	e.create(dispatch.Queue{Rate: 100, Burst: 50})
	e.fill(60)
	e.advance(time.Second)
	equal(e, "leased", len(e.claim(alice, 100).Leased), 50)
	e.change(func(q *dispatch.Queue) { q.Rate = 1 })
	equal(e, "leased after the change", len(e.claim(bob, 100).Leased), 0)
}

// blocked claims and demands that nothing comes because of a limit.
func (e *env) blocked(why dispatch.Block, wait time.Duration) {
	e.Helper()
	r := e.claim(bob, 100)
	equal(e, "leased", leasedIDs(r.Leased), nil)
	equal(e, "block", r.Block, why)
	equal(e, "wait", r.Wait, wait)
	equal(e, "next", r.Next, 0)
}

// limited claims and demands that a limit let n tasks pass and held others back.
func (e *env) limited(why dispatch.Block, n int, wait time.Duration) []dispatch.Leased {
	e.Helper()
	r := e.claim(alice, 100)
	equal(e, "leased", len(r.Leased), n)
	equal(e, "block", r.Block, why)
	equal(e, "wait", r.Wait, wait)
	return r.Leased
}

func concurrencyIsExact(e *env) {
	const limit = 3
	e.create(dispatch.Queue{MaxConcurrent: limit})
	ids := e.fill(60)
	e.advance(time.Second)
	var running, done atomic.Int64
	var wait sync.WaitGroup
	for i := range 5 {
		w := cluster.WorkerID("w-" + string(rune('a'+i)))
		wait.Go(func() {
			for done.Load() < int64(len(ids)) && !e.Failed() {
				r, err := e.store.Claim(e.ctx, e.request(w, 2))
				if err != nil {
					e.Error(err)
					return
				}
				if n := running.Add(int64(len(r.Leased))); n > limit {
					e.Errorf("%d tasks run", n)
				}
				for _, l := range r.Leased {
					running.Add(-1) // before the place is free again
					done.Add(1)
					s, err := e.store.Settle(e.ctx, dispatch.SettleRequest{Queue: queue, Worker: w,
						Seq: e.nextSeq("settle", queue, w), Items: []dispatch.Settlement{ended(l, dispatch.Succeeded, 0)}})
					if err != nil || !s.Applied[0] {
						e.Errorf("settled: %v, %v", s.Applied, err)
						return
					}
				}
			}
		})
	}
	wait.Wait()
	equal(e, "succeeded", e.counts().TotalSucceeded, int64(len(ids)))
}

func concurrencyOfExpired(e *env) {
	e.create(dispatch.Queue{MaxConcurrent: 2})
	e.put("a", "b", "c", "d")
	leased := e.limited(dispatch.BlockedByConcurrency, 2, 0)
	e.blocked(dispatch.BlockedByConcurrency, 0)
	e.advance(lease)
	e.blocked(dispatch.BlockedByConcurrency, 0)
	e.applied(bob, ended(leased[0], dispatch.Retry, time.Hour))
	e.limited(dispatch.BlockedByConcurrency, 1, 0)
	e.applied(bob, ended(leased[1], dispatch.Released, time.Hour))
	r := e.claim(alice, 100)
	equal(e, "leased", len(r.Leased), 1)
	equal(e, "block", r.Block, "")
}

func noBlockWithoutNeed(e *env) {
	e.create(dispatch.Queue{MaxConcurrent: 2})
	e.enqueue(submit("a"), submit("b"), submit("later", after(time.Second)))
	r := e.claim(alice, 100)
	equal(e, "leased", len(r.Leased), 2)
	equal(e, "block", r.Block, "") // no task that is due was held back
	equal(e, "next", r.Next, time.Second)
	r = e.claim(alice, 100)
	equal(e, "block", r.Block, "")
	e.advance(time.Second)
	e.blocked(dispatch.BlockedByConcurrency, 0)
}

func concurrencyChanges(e *env) {
	e.create(dispatch.Queue{MaxConcurrent: 1})
	e.put("a", "b", "c", "d", "e")
	e.limited(dispatch.BlockedByConcurrency, 1, 0)
	e.change(func(q *dispatch.Queue) { q.MaxConcurrent = 3 })
	e.limited(dispatch.BlockedByConcurrency, 2, 0)
	e.change(func(q *dispatch.Queue) { q.MaxConcurrent = 2 })
	e.blocked(dispatch.BlockedByConcurrency, 0)
	e.change(func(q *dispatch.Queue) { q.MaxConcurrent = -1 })
	equal(e, "leased", len(e.claim(alice, 100).Leased), 2)
}

func concurrencyAndPurge(e *env) {
	e.create(dispatch.Queue{MaxConcurrent: 2})
	e.put("a", "b", "c")
	e.ok(e.store.PurgeQueue(e.ctx, queue, 0))
	e.put("d", "e", "f")
	e.limited(dispatch.BlockedByConcurrency, 2, 0)
}

func rateRefills(e *env) {
	e.create(dispatch.Queue{Rate: 5, Burst: 2})
	e.put("a", "b", "c", "d", "e")
	e.limited(dispatch.BlockedByRate, 2, 200*time.Millisecond)
	e.advance(199 * time.Millisecond)
	e.blocked(dispatch.BlockedByRate, time.Millisecond)
	e.advance(time.Millisecond)
	e.limited(dispatch.BlockedByRate, 1, 200*time.Millisecond)
	e.advance(400 * time.Millisecond)
	r := e.claim(alice, 100)
	equal(e, "leased", len(r.Leased), 2)
	equal(e, "block", r.Block, "")
}

func rateSavesBurst(e *env) {
	e.create(dispatch.Queue{Rate: 5, Burst: 3})
	e.fill(20)
	e.advance(time.Hour)
	e.limited(dispatch.BlockedByRate, 3, 200*time.Millisecond)
	e.advance(time.Hour)
	equal(e, "leased of a small budget", len(e.claim(alice, 2).Leased), 2)
	e.limited(dispatch.BlockedByRate, 1, 200*time.Millisecond)
	e.advance(time.Hour)
	e.limited(dispatch.BlockedByRate, 3, 200*time.Millisecond)
}

func rateIsExact(e *env) {
	e.create(dispatch.Queue{Rate: 300, Burst: 2}) // 3,333 µs: no whole number of milliseconds
	e.fill(100)
	e.advance(time.Second)
	leased := 0
	for range 300 {
		leased += len(e.claim(alice, 100).Leased)
		e.advance(time.Millisecond)
	}
	equal(e, "leased", leased, 2+299_000/3333)
}

func slowRate(e *env) {
	e.create(dispatch.Queue{Rate: 0.01, Burst: 1})
	e.put("a", "b", "c")
	e.limited(dispatch.BlockedByRate, 1, 100*time.Second)
	e.advance(99_999 * time.Millisecond)
	e.blocked(dispatch.BlockedByRate, time.Millisecond)
	e.advance(time.Millisecond)
	e.limited(dispatch.BlockedByRate, 1, 100*time.Second)
}

func rateNoBlock(e *env) {
	e.create(dispatch.Queue{Rate: 5, Burst: 2})
	e.enqueue(submit("a"), submit("b"), submit("later", after(time.Hour)))
	for _, want := range []int{2, 0} {
		r := e.claim(alice, 100)
		equal(e, "leased", len(r.Leased), want)
		equal(e, "block", r.Block, "")
		equal(e, "next", r.Next, time.Hour)
	}
}

func rateBackwards(e *env) {
	e.create(dispatch.Queue{Rate: 5, Burst: 2})
	e.fill(10)
	e.advance(time.Hour)
	e.limited(dispatch.BlockedByRate, 2, 200*time.Millisecond)
	e.advance(-30 * time.Minute)
	e.enqueue(submit("x"), submit("y"), submit("z"))
	e.reachable(200 * time.Millisecond)
}

// reachable demands that a queue whose tokens are used up gives one out after the wait that it names, and no later.
func (e *env) reachable(wait time.Duration) {
	e.Helper()
	e.blocked(dispatch.BlockedByRate, wait)
	e.advance(wait)
	if n := len(e.claim(alice, 100).Leased); n != 1 {
		e.Fatalf("leased %d after the wait, want 1", n)
	}
}

func rateSlowToFast(e *env) {
	e.create(dispatch.Queue{Rate: 0.01, Burst: 2})
	e.fill(30)
	e.advance(time.Second)
	e.limited(dispatch.BlockedByRate, 2, 100*time.Second)
	e.change(func(q *dispatch.Queue) { q.Rate = 5 })
	e.reachable(200 * time.Millisecond)
	e.advance(10 * time.Second)
	e.limited(dispatch.BlockedByRate, 2, 200*time.Millisecond)
}

func rateFastToSlow(e *env) {
	e.create(dispatch.Queue{Rate: 1000, Burst: 10})
	e.fill(60)
	e.advance(time.Second)
	e.limited(dispatch.BlockedByRate, 10, time.Millisecond)
	e.change(func(q *dispatch.Queue) { q.Rate, q.Burst = 1, 1 })
	leased := 0
	for range 50 {
		leased += len(e.claim(alice, 100).Leased)
		e.advance(100 * time.Millisecond)
	}
	if leased < 4 || leased > 5 {
		e.Errorf("leased %d in 5 s at 1/s", leased)
	}
}

func rateRemoved(e *env) {
	e.create(dispatch.Queue{Rate: 0.01, Burst: 1})
	e.put("a", "b", "c")
	e.limited(dispatch.BlockedByRate, 1, 100*time.Second)
	e.change(func(q *dispatch.Queue) { q.Rate = -1 })
	equal(e, "leased", len(e.claim(alice, 100).Leased), 2)
}

func rateAndConcurrency(e *env) {
	e.create(dispatch.Queue{Rate: 10, Burst: 3, MaxConcurrent: 4})
	e.fill(20)
	e.advance(time.Second)
	leased := e.limited(dispatch.BlockedByRate, 3, 100*time.Millisecond)
	e.advance(time.Second)
	leased = append(leased, e.limited(dispatch.BlockedByConcurrency, 1, 0)...)
	for _, l := range leased {
		e.applied(alice, ended(l, dispatch.Succeeded, 0))
	}
	e.limited(dispatch.BlockedByRate, 2, 100*time.Millisecond)
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueuePaused))
	e.blocked(dispatch.BlockedByPause, 0)
}
