package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
)

var queueCases = []testcase{
	{"every setting comes back", settingsComeBack},
	{"creating a queue again changes nothing", createAgain},
	{"create and replace do not pause", pausedIsNoSetting},
	{"settings are replaced only at their version", replaceAtVersion},
	{"of two who make the same change one is refused", replaceAlike},
	{"of many replacements at one version one counts", replaceAtOnce},
	{"a queue that does not exist is not found", queueNotFound},
	{"all queues are listed", queuesAreListed},
	{"pausing is remembered", pauseIsRemembered},
	{"settings do not touch tasks", settingsAndTasks},
	{"counts of an empty queue", countsOfEmpty},
}

func settingsComeBack(e *env) {
	now := e.now()
	for i, want := range []dispatch.Queue{
		{},
		{Rate: 0.0001, Burst: 1_000_000, MaxConcurrent: 1_000_000, Weight: 1000},
		{Rate: -1, MaxConcurrent: -1, Weight: 1, Retry: dispatch.RetryConfig{
			MaxAttempts: -1, MaxRetryDuration: -1, MinBackoff: -1, MaxBackoff: -1, MaxDoublings: -1}},
		{Rate: 123.456, Burst: 7, Retry: dispatch.RetryConfig{
			MaxAttempts: 1, MaxRetryDuration: 1, MinBackoff: time.Nanosecond, MaxBackoff: 1000 * time.Hour, MaxDoublings: 64}},
	} {
		want.Name = fmt.Sprint("q", i)
		created, err := e.store.CreateQueue(e.ctx, want)
		e.ok(err)
		equal(e, "created", created, true)
		got, err := e.store.Queue(e.ctx, want.Name)
		e.ok(err)
		equal(e, "queue", plain(*got), want)
		e.at("created", got.CreatedAt, now)

		other := *got
		other.Weight = 42 + i
		replaced, err := e.store.ReplaceQueue(e.ctx, other)
		e.ok(err)
		equal(e, "replaced", replaced, true)
		got, err = e.store.Queue(e.ctx, want.Name)
		e.ok(err)
		want.Weight = 42 + i
		equal(e, "queue after a change", plain(*got), want)
		e.at("created", got.CreatedAt, now)
		if got.Version <= other.Version {
			e.Errorf("version %d after %d", got.Version, other.Version)
		}
	}
}

func createAgain(e *env) {
	e.create(dispatch.Queue{Weight: 2})
	e.put("a")
	before, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	e.advance(time.Second)
	created, err := e.store.CreateQueue(e.ctx, dispatch.Queue{Name: queue, Weight: 3})
	e.ok(err)
	equal(e, "created", created, false)
	now, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	equal(e, "queue", now, before)
	e.one(alice, "a")
}

func pausedIsNoSetting(e *env) {
	e.create(dispatch.Queue{Paused: true})
	e.put("a")
	e.change(func(q *dispatch.Queue) {
		equal(e, "paused after create", q.Paused, false)
		q.Paused = true
	})
	e.one(alice, "a")
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueuePaused))
	e.change(func(q *dispatch.Queue) {
		equal(e, "paused", q.Paused, true)
		q.Paused, q.Weight = false, 2
	})
	q, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	equal(e, "paused after replace", q.Paused, true)
}

func replaceAtVersion(e *env) {
	e.create(dispatch.Queue{Weight: 1})
	old, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	e.change(func(q *dispatch.Queue) { q.Weight = 2 })
	for _, version := range []int64{old.Version, old.Version + 2, 0, -1} {
		q := *old
		q.Version, q.Weight = version, 9
		replaced, err := e.store.ReplaceQueue(e.ctx, q)
		e.ok(err)
		equal(e, fmt.Sprintf("replaced at version %d", version), replaced, false)
	}
	now, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	equal(e, "weight", now.Weight, 2)
}

// Two who count up from the same version must not end up with one step.
func replaceAlike(e *env) {
	e.create(dispatch.Queue{Weight: 1})
	q, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	q.Weight++
	for _, want := range []bool{true, false} {
		replaced, err := e.store.ReplaceQueue(e.ctx, *q)
		e.ok(err)
		equal(e, "replaced", replaced, want)
	}
}

func replaceAtOnce(e *env) {
	e.create(dispatch.Queue{})
	q, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	var wait sync.WaitGroup
	won := make([]bool, 10)
	for i := range won {
		mine := *q
		mine.Weight = i + 1
		wait.Go(func() {
			var err error
			if won[i], err = e.store.ReplaceQueue(e.ctx, mine); err != nil {
				e.Error(err)
			}
		})
	}
	wait.Wait()
	now, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	for i, w := range won {
		equal(e, fmt.Sprint("weight ", i+1), w, now.Weight == i+1)
	}
}

func queueNotFound(e *env) {
	_, err := e.store.Queue(e.ctx, queue)
	e.fails("queue", err, dispatch.ErrQueueNotFound)
	_, err = e.store.Counts(e.ctx, queue)
	e.fails("counts", err, dispatch.ErrQueueNotFound)
	_, err = e.store.ReplaceQueue(e.ctx, dispatch.Queue{Name: queue, Version: 1})
	e.fails("replace", err, dispatch.ErrQueueNotFound)
	e.fails("pause", e.store.SetState(e.ctx, queue, dispatch.QueuePaused), dispatch.ErrQueueNotFound)
	e.fails("resume", e.store.SetState(e.ctx, queue, dispatch.QueueRunning), dispatch.ErrQueueNotFound)
	e.fails("delete", e.store.DeleteQueue(e.ctx, queue), dispatch.ErrQueueNotFound)
	e.fails("purge", e.store.PurgeQueue(e.ctx, queue, time.Hour), dispatch.ErrQueueNotFound)
	equal(e, "queues", len(e.queues()), 0)
}

func queuesAreListed(e *env) {
	var want []string
	for i := range 250 {
		name := fmt.Sprintf("q%03d", i)
		want = append(want, name)
		if i%2 == 0 {
			_, err := e.store.CreateQueue(e.ctx, dispatch.Queue{Name: name})
			e.ok(err)
		} else {
			_, err := e.store.Enqueue(e.ctx, name, []dispatch.Submission{submit("a")}, dispatch.EnqueueOptions{})
			e.ok(err)
		}
	}
	got := e.queues()
	slices.Sort(got)
	equal(e, "queues", slices.Compact(got), want)
}

// pausedOr is the state of a queue that is paused or not.
func pausedOr(paused bool) dispatch.QueueState {
	if paused {
		return dispatch.QueuePaused
	}
	return dispatch.QueueRunning
}

func pauseIsRemembered(e *env) {
	e.put("a")
	for _, paused := range []bool{true, true, false, false, true} {
		e.ok(e.store.SetState(e.ctx, queue, pausedOr(paused)))
		q, err := e.store.Queue(e.ctx, queue)
		e.ok(err)
		equal(e, "paused", q.Paused, paused)
	}
	e.enqueue(submit("b"))
	equal(e, "ready", e.counts().Ready, 2)
}

func settingsAndTasks(e *env) {
	e.create(dispatch.Queue{})
	e.put("a", "b", "c")
	e.applied(alice, ended(e.one(alice, "a"), dispatch.Succeeded, time.Hour))
	l := e.one(alice, "b")
	before := e.counts()
	before.EffectiveRate = 5
	e.change(func(q *dispatch.Queue) { q.Rate, q.Burst, q.MaxConcurrent = 5, 1, 1 })
	equal(e, "counts", e.counts(), before)
	e.applied(alice, ended(l, dispatch.Retry, 0))
	equal(e, "leased", len(e.claim(alice, 10).Leased), 1)
}

func countsOfEmpty(e *env) {
	e.create(dispatch.Queue{})
	equal(e, "counts", e.counts(), dispatch.Counts{})
}

var deleteQueueCases = []testcase{
	{"everything is gone", deleteRemovesAll},
	{"attempts that run end with a lost lease", deleteLosesLeases},
	{"the name is free for a new queue", deleteAndCreate},
	{"other queues stay", deleteOne},
	{"producers that go on create the queue anew", deleteAgainstEnqueue},
}

// busyQueue leaves tasks in every state, and a name.
func (e *env) busyQueue() dispatch.Leased {
	e.Helper()
	e.create(dispatch.Queue{Weight: 5, MaxConcurrent: 50})
	e.put("ok", "dead", "runs", "waits")
	e.enqueue(submit("later", after(time.Hour)), submit("gone", named(1)))
	l := e.claimed(alice, 3, "dead", "gone", "ok")
	s := ended(l[1], dispatch.Succeeded, 0)
	s.Tombstone = time.Hour
	p := progress(e.now(), 1)
	dead := ended(l[0], dispatch.Dead, time.Hour)
	dead.Progress = &p
	e.applied(alice, dead, s, ended(l[2], dispatch.Succeeded, time.Hour))
	return e.one(alice, "runs")
}

func deleteRemovesAll(e *env) {
	e.busyQueue()
	e.ok(e.store.DeleteQueue(e.ctx, queue))
	for _, id := range []string{"ok", "dead", "runs", "waits", "later", "gone"} {
		e.gone(id)
	}
	for _, state := range allStates {
		equal(e, string(state), len(e.list(state)), 0)
	}
	e.fails("delete again", e.store.DeleteQueue(e.ctx, queue), dispatch.ErrQueueNotFound)
	equal(e, "queues", len(e.queues()), 0)
	_, err := e.store.Counts(e.ctx, queue)
	e.fails("counts", err, dispatch.ErrQueueNotFound)
	_, err = e.store.Claim(e.ctx, e.request(alice, 1))
	e.fails("claim", err, dispatch.ErrQueueNotFound)
	hints, err := e.store.Look(e.ctx, []string{queue})
	e.ok(err)
	equal(e, "looked at", len(hints), 0)
}

func deleteLosesLeases(e *env) {
	l := e.busyQueue()
	e.ok(e.store.DeleteQueue(e.ctx, queue))
	e.powerless(l)
	equal(e, "held", len(e.held(alice)), 0)
	over, _ := e.expired(10)
	equal(e, "expired", len(over), 0)
	e.put("runs")
	e.unchanged("runs", func() { e.powerless(l) })
}

func deleteAndCreate(e *env) {
	e.busyQueue()
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueuePaused))
	old, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	e.ok(e.store.DeleteQueue(e.ctx, queue))
	e.advance(time.Second)
	e.enqueue(submit("gone", named(9)), submit("ok"))
	equal(e, "counts", e.counts(), dispatch.Counts{Ready: 2})
	q, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	equal(e, "queue", plain(*q), dispatch.Queue{Name: queue})
	r := e.request(alice, 10)
	r.Version = old.Version // of the queue that is gone
	reply := e.send(r)
	equal(e, "leased", leasedIDs(reply.Leased), []string{"gone", "ok"})
	if reply.Settings == nil {
		e.Error("a worker that knows the old queue is not told of the new one's settings")
	}
}

func deleteOne(e *env) {
	e.put("a")
	for _, name := range []string{"mai", "mail2", "mail.x"} {
		_, err := e.store.Enqueue(e.ctx, name, []dispatch.Submission{submit("a")}, dispatch.EnqueueOptions{})
		e.ok(err)
	}
	e.ok(e.store.DeleteQueue(e.ctx, queue))
	got := e.queues()
	slices.Sort(got)
	equal(e, "queues", got, []string{"mai", "mail.x", "mail2"})
	for _, name := range got {
		_, err := e.store.Task(e.ctx, name, "a")
		e.ok(err)
	}
}

// deleteAgainstEnqueue is judged by the invariants: a queue that has tasks exists and is listed.
func deleteAgainstEnqueue(e *env) {
	var wait sync.WaitGroup
	for p := range 3 {
		wait.Go(func() {
			for i := range 60 {
				if _, err := e.store.Enqueue(e.ctx, queue, []dispatch.Submission{submit(fmt.Sprint(p, "-", i))}, dispatch.EnqueueOptions{}); err != nil {
					e.Error(err)
				}
			}
		})
	}
	wait.Go(func() {
		for range 40 {
			_ = e.store.DeleteQueue(e.ctx, queue) // it may just not exist
		}
	})
	wait.Wait()
	e.put("last")
	equal(e, "queues", e.queues(), []string{queue})
}
