package storetest

import (
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

var capacityCases = []testcase{
	{"a task comes back with what it requires", requiresAreKept},
	{"a worker without a capacity takes whatever is due", noCapacity},
	{"a worker with a capacity takes what fits", capacityFits},
	{"what one claim takes counts together", capacityAddsUp},
	{"a name that the capacity lacks is zero", capacityLacksName},
	{"a claim passes over what does not fit", capacityPassesOver},
	{"a claim sees behind any number of tasks that do not fit", capacitySkips},
	{"a repeated claim answers the same", capacityRepeated},
	{"what a queue requires has to be known to the sender", queueRequires},
	{"a queue that does not exist requires nothing", newQueueRequires},
}

// requiring makes a task ask for resources.
func requiring(r cluster.Resources) func(*dispatch.Submission) {
	return func(s *dispatch.Submission) { s.Requires = r }
}

// within is a claim of a worker that has so much left.
func (e *env) within(free cluster.Resources, budget int) *dispatch.ClaimReply {
	e.Helper()
	r := e.request(alice, budget)
	r.Free = free
	return e.send(r)
}

func requiresAreKept(e *env) {
	want := cluster.Resources{"cpu": 500, "memory": 1 << 40, "example.com/gpu": 1}
	e.enqueue(submit("a", requiring(want)), submit("b"))
	equal(e, "requires", e.info("a", dispatch.TaskWaiting).Requires, want)
	leased := e.claimed(alice, 2, "a", "b")
	equal(e, "requires of the leased", leased[0].Task.Requires, want)
	equal(e, "requires of the other", len(leased[1].Task.Requires), 0)
}

func noCapacity(e *env) {
	e.enqueue(submit("a", requiring(cluster.Resources{"cpu": 1 << 53})))
	e.one(alice, "a")
}

func capacityFits(e *env) {
	e.enqueue(submit("a", requiring(cluster.Resources{"cpu": 500})))
	r := e.within(cluster.Resources{"cpu": 499}, 9)
	equal(e, "leased", len(r.Leased), 0)
	equal(e, "block", r.Block, dispatch.BlockedByCapacity)
	equal(e, "next", r.Next, 0)
	equal(e, "leased", leasedIDs(e.within(cluster.Resources{"cpu": 500}, 9).Leased), []string{"a"})
}

func capacityAddsUp(e *env) {
	for i := range 5 {
		e.enqueue(submit(fmt.Sprint(i), requiring(cluster.Resources{"cpu": 2, "memory": 10})))
	}
	r := e.within(cluster.Resources{"cpu": 100, "memory": 35}, 9)
	equal(e, "leased", leasedIDs(r.Leased), []string{"0", "1", "2"})
	equal(e, "block", r.Block, dispatch.BlockedByCapacity)
	equal(e, "leased then", leasedIDs(e.within(cluster.Resources{"cpu": 100, "memory": 35}, 1).Leased), []string{"3"})
}

func capacityLacksName(e *env) {
	e.enqueue(submit("a", requiring(cluster.Resources{"gpu": 1})), submit("zero", requiring(cluster.Resources{"gpu": 0})))
	equal(e, "leased", leasedIDs(e.within(cluster.Resources{"cpu": 1}, 9).Leased), []string{"zero"})
	equal(e, "leased with nothing left", len(e.within(cluster.Resources{}, 9).Leased), 0)
}

func capacityPassesOver(e *env) {
	for i := range 60 {
		e.enqueue(submit(fmt.Sprintf("big%02d", i), requiring(cluster.Resources{"cpu": 9})))
	}
	e.advance(time.Millisecond)
	e.put("plain")
	e.enqueue(submit("small", requiring(cluster.Resources{"cpu": 1})))
	r := e.within(cluster.Resources{"cpu": 8}, 2)
	equal(e, "leased", leasedIDs(r.Leased), []string{"plain", "small"})
	equal(e, "next", r.Next, 0)
}

func capacitySkips(e *env) {
	for range 6 {
		var batch []dispatch.Submission
		for range 200 {
			batch = append(batch, submit(fmt.Sprintf("big%04d", e.nextSeq("big", queue, alice)), requiring(cluster.Resources{"cpu": 9})))
		}
		e.enqueue(batch...)
	}
	e.advance(time.Millisecond)
	e.put("plain")
	r := e.request(alice, 2)
	r.Free = cluster.Resources{"cpu": 8}
	for looks := 1; ; looks++ {
		reply := e.send(r)
		if got := leasedIDs(reply.Leased); len(got) > 0 {
			equal(e, "leased", got, []string{"plain"})
			break
		}
		equal(e, "block", reply.Block, dispatch.BlockedByCapacity)
		if reply.Skip <= r.Skip || looks > 20 {
			e.Fatalf("claim %d skips %d, and the next one %d", looks, r.Skip, reply.Skip)
		}
		r.Skip = reply.Skip
		r.Seq = e.nextSeq("claim", queue, alice)
	}
	// Skipping more than there are sees nothing, and begins anew.
	r.Seq, r.Skip = e.nextSeq("claim", queue, alice), 5000
	reply := e.send(r)
	equal(e, "block", reply.Block, dispatch.BlockedByCapacity)
	equal(e, "skip", reply.Skip, 0)
}

func capacityRepeated(e *env) {
	for i := range 3 {
		e.enqueue(submit(fmt.Sprint(i), requiring(cluster.Resources{"cpu": 2})))
	}
	r := e.request(alice, 9)
	r.Free = cluster.Resources{"cpu": 4}
	want := leasedIDs(e.send(r).Leased)
	equal(e, "leased", want, []string{"0", "1"})
	r.Repeat = true
	equal(e, "leased again", leasedIDs(e.send(r).Leased), want)
}

// stored enqueues a task of a sender who takes the queue to require something.
func (e *env) stored(id string, requires cluster.Resources, want bool) dispatch.EnqueueReply {
	e.Helper()
	r, err := e.store.Enqueue(e.ctx, queue, []dispatch.Submission{submit(id)}, dispatch.EnqueueOptions{Requires: requires})
	e.ok(err)
	equal(e, "refused", r.Refused, !want)
	return r
}

func queueRequires(e *env) {
	requires := cluster.Resources{"memory": 4096, "cpu": 250}
	e.create(dispatch.Queue{Requires: requires})
	q, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	equal(e, "settings", q.Requires, requires)
	r := e.stored("a", nil, false)
	equal(e, "told", r.Requires, requires)
	e.gone("a")
	e.stored("a", r.Requires, true)
	e.change(func(q *dispatch.Queue) { q.Requires = nil })
	r = e.stored("b", requires, false)
	equal(e, "told", len(r.Requires), 0)
	e.stored("b", nil, true)
}

func newQueueRequires(e *env) {
	r := e.stored("a", cluster.Resources{"cpu": 1}, false)
	equal(e, "told", len(r.Requires), 0)
	e.stored("a", nil, true)
}
