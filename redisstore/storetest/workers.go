package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

var workerCases = []testcase{
	{"a row is read back as it was registered", workerIsReadBack},
	{"a worker that states nothing states nothing", workerStatesNothing},
	{"registering again replaces all but the creation", registerReplaces},
	{"the creation can be brought along", registerBringsCreation},
	{"a beat moves the last sight alone", beatMoves},
	{"a beat of a worker that is not there", beatOfNobody},
	{"a beat of a worker that is dead", beatOfTheDead},
	{"who was dead registers again", registerAfterDeath},
	{"workers are listed by ID", workersAreListed},
	{"deregistering removes the row and the leadership", deregisterRemoves},
	{"deregistering leaves others their leadership", deregisterLeaves},
	{"the silent are marked dead, once, and stay", reapMarks},
	{"many are marked at once", reapManyWorkers},
	{"draining workers are marked too", reapDraining},
	{"old rows are deleted, whatever their state", sweepDeletes},
	{"the leadership goes with an old row", sweepFreesLeadership},
	{"changes are announced", workersAreAnnounced},
	{"what cannot be a worker is refused", workersAreChecked},
}

// full is a worker that states everything.
func fullWorker(id cluster.WorkerID) *cluster.Worker {
	return &cluster.Worker{
		ID: id, Hostname: "host-1", Queues: []string{"mail", "images"}, Concurrency: 64, State: cluster.StateActive,
		Capacity: cluster.Resources{"cpu": 4000, "memory": 1 << 40, "gpu": 0},
		Metadata: map[string]string{"version": "1.2", "zone": "ä b"},
	}
}

func (e *env) register(workers ...*cluster.Worker) {
	e.Helper()
	for _, w := range workers {
		e.ok(e.store.RegisterWorker(e.ctx, w))
	}
}

// join registers plain workers.
func (e *env) join(ids ...cluster.WorkerID) {
	e.Helper()
	for _, id := range ids {
		e.register(&cluster.Worker{ID: id, Concurrency: 1})
	}
}

func (e *env) worker(id cluster.WorkerID) *cluster.Worker {
	e.Helper()
	w, err := e.store.GetWorker(e.ctx, id)
	e.ok(err)
	return w
}

func (e *env) noWorker(id cluster.WorkerID) {
	e.Helper()
	_, err := e.store.GetWorker(e.ctx, id)
	e.fails("get "+string(id), err, cluster.ErrWorkerNotFound)
	e.fails("beat of "+string(id), e.store.HeartbeatWorker(e.ctx, id), cluster.ErrWorkerNotFound)
	for _, w := range e.workers() {
		if w.ID == id {
			e.Errorf("%s is listed", id)
		}
	}
}

func (e *env) workers() []*cluster.Worker {
	e.Helper()
	workers, err := e.store.ListWorkers(e.ctx)
	e.ok(err)
	return workers
}

func (e *env) reap(threshold time.Duration) []cluster.WorkerID {
	e.Helper()
	dead, err := e.store.ReapDeadWorkers(e.ctx, threshold)
	e.ok(err)
	for _, w := range dead {
		got, want := *w, *e.worker(w.ID)
		got.LeaderUntil, want.LeaderUntil = nil, nil // it moves with the real clock where the store's stands still
		equal(e, "reaped", got, want)
		equal(e, "state", w.State, cluster.StateDead)
	}
	return workerIDs(dead)
}

func workerIDs(workers []*cluster.Worker) []cluster.WorkerID {
	ids := make([]cluster.WorkerID, 0, len(workers))
	for _, w := range workers {
		ids = append(ids, w.ID)
	}
	slices.Sort(ids)
	return ids
}

func (e *env) deleteStale(threshold time.Duration, want int) {
	e.Helper()
	n, err := e.store.DeleteStaleWorkers(e.ctx, threshold)
	e.ok(err)
	equal(e, "deleted", n, want)
}

func workerIsReadBack(e *env) {
	now, want := e.now(), fullWorker(alice)
	e.register(want)
	want.LastSeen, want.CreatedAt = now, now
	equal(e, "worker", *e.worker(alice), *want)
	equal(e, "listed", e.workers(), []*cluster.Worker{want})
	draining := *want
	draining.State = cluster.StateDraining
	e.register(&draining)
	equal(e, "draining", *e.worker(alice), draining)
}

func workerStatesNothing(e *env) {
	now := e.now()
	e.register(&cluster.Worker{ID: alice})
	equal(e, "worker", *e.worker(alice), cluster.Worker{ID: alice, State: cluster.StateActive, LastSeen: now, CreatedAt: now})
	e.register(&cluster.Worker{ID: bob, Capacity: cluster.Resources{}})
	if c := e.worker(bob).Capacity; c == nil || len(c) > 0 {
		e.Errorf("capacity %v, want one that is empty", c)
	}
}

func registerReplaces(e *env) {
	created := e.now()
	e.register(fullWorker(alice))
	e.advance(time.Minute)
	e.register(&cluster.Worker{ID: alice, Hostname: "other", Concurrency: 2, State: cluster.StateDraining})
	equal(e, "worker", *e.worker(alice), cluster.Worker{ID: alice, Hostname: "other", Concurrency: 2,
		State: cluster.StateDraining, LastSeen: created.Add(time.Minute), CreatedAt: created})
}

func registerBringsCreation(e *env) {
	now := e.now()
	e.advance(time.Hour)
	e.register(&cluster.Worker{ID: alice, CreatedAt: now.Add(-time.Hour)})
	e.at("created", e.worker(alice).CreatedAt, now.Add(-time.Hour))
	e.at("last seen", e.worker(alice).LastSeen, now.Add(time.Hour))
	e.join(alice)
	e.at("created", e.worker(alice).CreatedAt, now.Add(-time.Hour))
}

func beatMoves(e *env) {
	e.register(fullWorker(alice))
	e.join(bob)
	for range 3 {
		want, other := e.worker(alice), e.worker(bob)
		e.advance(10 * time.Second)
		want.LastSeen = want.LastSeen.Add(10 * time.Second)
		e.ok(e.store.HeartbeatWorker(e.ctx, alice))
		equal(e, "worker", *e.worker(alice), *want)
		equal(e, "other", *e.worker(bob), *other)
	}
}

func beatOfNobody(e *env) {
	e.noWorker(alice)
	e.join(alice)
	e.ok(e.store.DeregisterWorker(e.ctx, alice))
	e.noWorker(alice)
	equal(e, "listed", len(e.workers()), 0)
}

func beatOfTheDead(e *env) {
	e.join(alice)
	e.advance(time.Minute)
	e.reap(30 * time.Second)
	dead := e.worker(alice)
	e.advance(time.Second)
	e.fails("beat", e.store.HeartbeatWorker(e.ctx, alice), cluster.ErrWorkerNotFound)
	equal(e, "worker", *e.worker(alice), *dead)
}

func registerAfterDeath(e *env) {
	created := e.now()
	e.join(alice)
	e.advance(time.Minute)
	e.reap(30 * time.Second)
	e.join(alice)
	equal(e, "worker", *e.worker(alice), cluster.Worker{ID: alice, Concurrency: 1, State: cluster.StateActive,
		LastSeen: created.Add(time.Minute), CreatedAt: created})
	e.ok(e.store.HeartbeatWorker(e.ctx, alice))
	e.advance(time.Minute)
	equal(e, "dead again", e.reap(30*time.Second), []cluster.WorkerID{alice})
}

func workersAreListed(e *env) {
	equal(e, "workers", len(e.workers()), 0)
	var want []cluster.WorkerID
	for i := range 230 {
		want = append(want, cluster.WorkerID(fmt.Sprintf("w-%03d", i)))
	}
	for i := range want {
		e.join(want[(i*7)%len(want)])
	}
	e.acquires("w-005", time.Hour, true)
	var got []cluster.WorkerID
	for _, w := range e.workers() {
		got = append(got, w.ID)
		equal(e, "leads: "+string(w.ID), w.IsLeader, w.ID == "w-005")
		equal(e, "until: "+string(w.ID), w.LeaderUntil != nil, w.IsLeader)
	}
	equal(e, "workers", got, want)
}

func deregisterRemoves(e *env) {
	e.join(alice, bob)
	e.acquires(alice, time.Hour, true)
	for range 2 {
		e.ok(e.store.DeregisterWorker(e.ctx, alice))
		e.noWorker(alice)
		e.leads("")
	}
	e.worker(bob)
	e.renews(alice, time.Hour, false)
	e.acquires(bob, time.Hour, true)
}

func deregisterLeaves(e *env) {
	e.join(alice, bob)
	e.acquires(bob, time.Hour, true)
	e.ok(e.store.DeregisterWorker(e.ctx, alice))
	e.ok(e.store.DeregisterWorker(e.ctx, "w-nobody"))
	e.leads(bob)
	e.worker(bob)
	// A leader may have no row at all.
	e.ok(e.store.DeregisterWorker(e.ctx, bob))
	e.acquires("w-nobody", time.Hour, true)
	e.ok(e.store.DeregisterWorker(e.ctx, "w-nobody"))
	e.leads("")
}

func reapMarks(e *env) {
	e.register(fullWorker(alice))
	e.join(bob, "w-carol")
	e.advance(30 * time.Second)
	e.ok(e.store.HeartbeatWorker(e.ctx, bob))
	equal(e, "dead at the threshold", len(e.reap(30*time.Second)), 0)
	e.advance(time.Millisecond)
	before := e.worker(bob)
	equal(e, "dead", e.reap(30*time.Second), []cluster.WorkerID{alice, "w-carol"})
	equal(e, "alive", *e.worker(bob), *before)
	equal(e, "dead again", len(e.reap(30*time.Second)), 0)
	e.advance(10 * time.Hour)
	equal(e, "dead later", e.reap(30*time.Second), []cluster.WorkerID{bob})
	equal(e, "rows", workerIDs(e.workers()), []cluster.WorkerID{alice, bob, "w-carol"})
	want := fullWorker(alice)
	got := e.worker(alice)
	want.State, want.LastSeen, want.CreatedAt = cluster.StateDead, got.LastSeen, got.CreatedAt
	equal(e, "row", *got, *want)
}

func reapManyWorkers(e *env) {
	var want []cluster.WorkerID
	for i := range 250 {
		want = append(want, cluster.WorkerID(fmt.Sprintf("w-%03d", i)))
	}
	e.join(want...)
	e.advance(time.Minute)
	e.join(alice)
	equal(e, "dead", e.reap(30*time.Second), want)
	e.deleteStale(30*time.Second, len(want))
	equal(e, "left", workerIDs(e.workers()), []cluster.WorkerID{alice})
}

func reapDraining(e *env) {
	e.register(&cluster.Worker{ID: alice, State: cluster.StateDraining})
	e.advance(time.Minute)
	equal(e, "dead", e.reap(30*time.Second), []cluster.WorkerID{alice})
}

func sweepDeletes(e *env) {
	e.join(alice, "w-carol")
	e.register(&cluster.Worker{ID: "w-drains", State: cluster.StateDraining})
	e.advance(time.Minute)
	e.ok(e.store.HeartbeatWorker(e.ctx, "w-carol"))
	e.reap(30 * time.Second)
	e.join(bob)
	e.deleteStale(time.Minute, 0)
	e.advance(time.Millisecond)
	e.deleteStale(time.Minute, 2)
	e.noWorker(alice)
	e.noWorker("w-drains")
	equal(e, "left", workerIDs(e.workers()), []cluster.WorkerID{bob, "w-carol"})
	e.ok(e.store.HeartbeatWorker(e.ctx, bob))
	e.deleteStale(time.Minute, 0)
}

func sweepFreesLeadership(e *env) {
	e.join(alice)
	e.acquires(alice, time.Hour, true)
	e.advance(time.Minute)
	e.join(bob)
	equal(e, "dead", e.reap(30*time.Second), []cluster.WorkerID{alice})
	e.leads(alice) // dead in the registry, but the lock is the lock
	e.deleteStale(2*time.Minute, 0)
	e.leads(alice)
	e.deleteStale(30*time.Second, 1)
	e.leads("")
	e.acquires(bob, time.Hour, true)
	e.deleteStale(30*time.Second, 0)
	e.leads(bob)
}

func workersAreAnnounced(e *env) {
	l := e.listen()
	defer l.stop(e)
	workers, leader := hint(dispatch.HintWorkers, 0), hint(dispatch.HintLeader, 0)
	e.join(alice)
	l.hears(e, workers)
	e.join(alice) // no news, and so is a beat
	e.ok(e.store.HeartbeatWorker(e.ctx, alice))
	for _, w := range []cluster.Worker{
		{ID: alice, Concurrency: 1, State: cluster.StateDraining},
		{ID: alice, Concurrency: 2},
		{ID: alice, Concurrency: 2, Queues: []string{"mail"}},
		{ID: alice, Concurrency: 2, Queues: []string{"mail"}, Capacity: cluster.Resources{"cpu": 1}},
	} {
		e.register(&w)
		l.hears(e, workers)
	}
	e.acquires(alice, time.Hour, true)
	e.advance(time.Minute)
	e.reap(time.Second)
	l.hears(e, workers)
	e.reap(time.Second)
	e.deleteStale(time.Second, 1)
	l.hearsBoth(e, workers, leader)
	e.join(bob)
	l.hears(e, workers)
	e.acquires(bob, time.Hour, true)
	e.ok(e.store.DeregisterWorker(e.ctx, bob))
	l.hearsBoth(e, workers, leader)
	e.ok(e.store.DeregisterWorker(e.ctx, bob))
	e.announce(hint("last", 0), hint(dispatch.HintCron, 0))
	l.hears(e, hint("last", 0), hint(dispatch.HintCron, 0))
	e.noted(time.Hour, hint("last", 0)) // what belongs to no queue is not noted
}

// hearsBoth is hears for two hints in whatever order.
func (l *listener) hearsBoth(e *env, a, b dispatch.Hint) {
	e.Helper()
	var got []dispatch.Hint
	for len(got) < 2 {
		got = append(got, receive(e, "message", l.heard)...)
	}
	if !slices.Equal(got, []dispatch.Hint{a, b}) && !slices.Equal(got, []dispatch.Hint{b, a}) {
		e.Errorf("heard %v, want %v and %v", got, a, b)
	}
}

func workersAreChecked(e *env) {
	long := string(make([]byte, 256))
	for _, w := range []*cluster.Worker{
		nil, {}, {ID: "a b"}, {ID: "a:b"}, {ID: "{x}"}, {ID: cluster.WorkerID(long)}, {ID: "a\n"},
		{ID: alice, Hostname: long}, {ID: alice, Queues: make([]string, 1001)}, {ID: alice, Concurrency: -1},
		{ID: alice, State: "asleep"}, {ID: alice, Metadata: map[string]string{"big": string(make([]byte, 1<<20))}},
	} {
		e.badInput("register", e.store.RegisterWorker(e.ctx, w))
	}
	const bad = cluster.WorkerID("a b")
	_, err := e.store.GetWorker(e.ctx, bad)
	e.badInput("get", err)
	e.badInput("beat", e.store.HeartbeatWorker(e.ctx, bad))
	e.badInput("deregister", e.store.DeregisterWorker(e.ctx, bad))
	equal(e, "workers", len(e.workers()), 0)
}
