package storetest

import (
	"slices"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

var claimCases = []testcase{
	{"at most the budget is leased", claimBudget},
	{"the longest due comes first", claimOrder},
	{"an empty queue has nothing next", claimOfNothing},
	{"next and lease end are waits", claimWaits},
	{"a lease lasts timeout and grace", leaseLength},
	{"a lease says who, when and what", leaseFields},
	{"progress of earlier attempts comes along", claimBringsProgress},
	{"tokens rise with every lease", tokensRise},
	{"tokens rise when the clock is set back", tokensRiseBackwards},
	{"tokens rise when the queue is deleted and made again", tokensRiseAfterDelete},
	{"a queue that does not exist is not found", claimOfNoQueue},
	{"a paused queue hands out nothing", claimOfPaused},
	{"long tasks come in parts", claimInParts},
	{"settings come when their version differs", claimBringsSettings},
	{"many workers get every task once", manyWorkers},
}

func claimBudget(e *env) {
	e.put("a", "b", "c", "d", "e")
	r := e.claim(alice, 2)
	equal(e, "leased", len(r.Leased), 2)
	equal(e, "next", r.Next, 0)
	equal(e, "block", r.Block, "")
	r = e.claim(alice, 3)
	equal(e, "leased", len(r.Leased), 3)
	e.never("next", r.Next)
	equal(e, "block", r.Block, "")
}

func claimOrder(e *env) {
	now := e.now()
	e.enqueue(submit("c", after(30*time.Millisecond)), submit("a", after(10*time.Millisecond)),
		submit("d", schedule(now.Add(40*time.Millisecond))), submit("b", schedule(now.Add(20*time.Millisecond))))
	e.advance(30 * time.Millisecond)
	e.claimed(alice, 2, "a", "b")
	e.claimed(alice, 2, "c")
	e.advance(10 * time.Millisecond)
	e.claimed(alice, 2, "d")
}

func claimOfNothing(e *env) {
	e.create(dispatch.Queue{})
	r := e.claim(alice, 10)
	equal(e, "leased", len(r.Leased), 0)
	e.never("next", r.Next)
	e.never("lease end", r.LeaseEnd)
	equal(e, "block", r.Block, "")
}

func claimWaits(e *env) {
	e.enqueue(submit("a"), submit("b", after(time.Second)), submit("c", after(time.Minute)))
	r := e.claim(alice, 10)
	equal(e, "leased", leasedIDs(r.Leased), []string{"a"})
	equal(e, "next", r.Next, time.Second)
	equal(e, "lease end", r.LeaseEnd, lease)
	e.advance(time.Second)
	r = e.claim(bob, 10)
	equal(e, "leased", leasedIDs(r.Leased), []string{"b"})
	equal(e, "next", r.Next, 59*time.Second)
	equal(e, "lease end, whoever holds it", r.LeaseEnd, lease-time.Second)
	e.advance(lease)
	equal(e, "end of a lease that is over", e.claim(alice, 1).LeaseEnd, 0)
}

func leaseLength(e *env) {
	short, long := submit("short"), submit("long")
	short.Timeout, long.Timeout = time.Second, 24*time.Hour
	e.enqueue(short, long)
	now := e.now()
	r := e.request(alice, 10)
	r.Grace = 2500 * time.Millisecond
	equal(e, "leased", len(e.send(r).Leased), 2)
	e.at("end", e.info("short", dispatch.TaskRunning).LeaseEnd, now.Add(3500*time.Millisecond))
	e.at("end", e.info("long", dispatch.TaskRunning).LeaseEnd, now.Add(24*time.Hour+2500*time.Millisecond))
}

func leaseFields(e *env) {
	e.enqueue(submit("a"), submit("n", named(1)))
	due := e.now()
	e.advance(time.Second)
	leased := e.claimed(alice, 10, "a", "n")
	for i, l := range leased {
		e.at("at", l.At, due.Add(time.Second))
		e.at("due", l.Due, due)
		equal(e, "worker", l.Worker, alice)
		equal(e, "queue", l.Task.Queue, queue)
		equal(e, "named", l.Named, i == 1)
		equal(e, "progress", l.Progress, dispatch.Progress{})
		if l.Lease.Token <= 0 || l.Lease.Fence == "" {
			e.Errorf("lease is %+v", l.Lease)
		}
		info := e.info(string(l.Task.ID), dispatch.TaskRunning)
		equal(e, "token", info.Token, l.Lease.Token)
		equal(e, "leased by", info.LeasedBy, alice)
	}
}

func claimBringsProgress(e *env) {
	e.put("a")
	want := progress(e.now(), 2)
	s := ended(e.one(alice, "a"), dispatch.Retry, 0)
	s.Progress = &want
	e.applied(alice, s)
	e.sameProgress("claimed", e.one(bob, "a").Progress, want)
}

// tokens collects leases and demands that each token is above all before, and that no fence comes twice.
type tokens struct {
	e      *env
	last   int64
	fences map[string]bool
}

func newTokens(e *env) *tokens { return &tokens{e: e, fences: make(map[string]bool)} }

func (t *tokens) add(leased ...dispatch.Leased) {
	t.e.Helper()
	slices.SortFunc(leased, func(a, b dispatch.Leased) int { return int(a.Lease.Token - b.Lease.Token) })
	for _, l := range leased {
		if l.Lease.Token <= t.last {
			t.e.Errorf("token %d of task %s comes after %d", l.Lease.Token, l.Task.ID, t.last)
		}
		if t.fences[l.Lease.Fence] {
			t.e.Errorf("fence %q comes twice", l.Lease.Fence)
		}
		t.last = max(t.last, l.Lease.Token)
		t.fences[l.Lease.Fence] = true
	}
}

// round leases everything that is due, for two workers, and gives it back.
func (t *tokens) round() {
	t.e.Helper()
	for _, w := range []cluster.WorkerID{alice, bob} {
		leased := t.e.claim(w, 3).Leased
		if len(leased) == 0 {
			t.e.Fatal("nothing was leased")
		}
		t.add(leased...)
		for _, l := range leased {
			t.e.applied(w, ended(l, dispatch.Released, 0))
		}
	}
}

func tokensRise(e *env) {
	e.put("a", "b", "c", "d", "e")
	t := newTokens(e)
	for i := range 30 {
		t.round()
		e.advance(time.Duration(i%3) * time.Millisecond)
	}
}

func tokensRiseBackwards(e *env) {
	e.put("a", "b", "c")
	t := newTokens(e)
	for _, id := range []string{"d", "e", "f"} {
		t.round()
		e.advance(-time.Hour)
		e.put(id) // due by the clock of now, unlike the others
	}
}

func tokensRiseAfterDelete(e *env) {
	t := newTokens(e)
	for range 5 {
		e.put("a", "b", "c", "d")
		t.round()
		e.ok(e.store.DeleteQueue(e.ctx, queue))
		e.advance(time.Millisecond)
	}
}

func claimOfNoQueue(e *env) {
	_, err := e.store.Claim(e.ctx, e.request(alice, 1))
	e.fails("claim", err, dispatch.ErrQueueNotFound)
}

func claimOfPaused(e *env) {
	e.put("a", "b")
	l := e.one(alice, "a")
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueuePaused))
	r := e.claim(alice, 10)
	equal(e, "leased", len(r.Leased), 0)
	equal(e, "block", r.Block, dispatch.BlockedByPause)
	equal(e, "next", r.Next, 0)
	e.applied(alice, ended(l, dispatch.Retry, 0)) // what runs goes on
	equal(e, "leased", len(e.claim(alice, 10).Leased), 0)
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueueRunning))
	equal(e, "leased", len(e.claim(alice, 10).Leased), 2)
}

func claimInParts(e *env) {
	var want []string
	for i := range 7 {
		id := string(rune('a' + i))
		want = append(want, id)
		e.enqueue(submit(id, sized(300<<10), after(time.Duration(i)*time.Millisecond)))
	}
	e.enqueue(submit("huge", sized(1<<20-1000), after(7*time.Millisecond)), submit("tiny", after(8*time.Millisecond)))
	want = append(want, "huge", "tiny")
	e.advance(time.Second)
	var got []string
	for range want {
		r := e.claim(alice, 100)
		if len(r.Leased) == 0 {
			break
		}
		got = append(got, leasedIDs(r.Leased)...)
		if len(got) < len(want) {
			equal(e, "next", r.Next, 0)
			equal(e, "block", r.Block, "")
		}
	}
	equal(e, "leased", got, want)
}

func claimBringsSettings(e *env) {
	want := dispatch.Queue{Name: queue, MaxConcurrent: 7, Retry: dispatch.RetryConfig{MaxAttempts: 3}}
	e.create(want)
	ask := func(version int64) *dispatch.Queue {
		r := e.request(alice, 1)
		r.Version = version
		return e.send(r).Settings
	}
	q := ask(0)
	if q == nil {
		e.Fatal("no settings for a worker that knows none")
	}
	equal(e, "settings", plain(*q), want)
	stored, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	equal(e, "version", q.Version, stored.Version)
	e.at("created", q.CreatedAt, stored.CreatedAt)
	equal(e, "settings that are known", ask(q.Version), nil)
	e.change(func(q *dispatch.Queue) { q.MaxConcurrent = 8 })
	next := ask(q.Version)
	if next == nil {
		e.Fatal("no settings after a change")
	}
	equal(e, "settings", next.MaxConcurrent, 8)
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueuePaused))
	equal(e, "paused", ask(0).Paused, true)
}

func manyWorkers(e *env) {
	ids := e.fill(200)
	e.advance(time.Second)
	var mu sync.Mutex
	var all []dispatch.Leased
	var wait sync.WaitGroup
	for i := range 6 {
		w := cluster.WorkerID("w-" + string(rune('a'+i)))
		wait.Go(func() {
			for {
				r, err := e.store.Claim(e.ctx, e.request(w, 1+i*3))
				if err != nil {
					e.Error(err)
					return
				}
				if len(r.Leased) == 0 {
					return
				}
				mu.Lock()
				all = append(all, r.Leased...)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	got := leasedIDs(all)
	slices.Sort(got)
	equal(e, "leased", got, ids)
	newTokens(e).add(all...)
}
