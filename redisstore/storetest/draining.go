package storetest

import "github.com/dispatchkit/dispatch"

var drainingCases = []testcase{
	{"a queue that drains takes no new tasks, and gives away those it has", drainRefuses},
	{"who says so stores tasks all the same", drainForced},
	{"draining and pause are two things", drainAndPause},
	{"a state that there is not changes nothing", unknownState},
}

func (e *env) state(s dispatch.QueueState) {
	e.Helper()
	e.ok(e.store.SetState(e.ctx, queue, s))
}

func drainRefuses(e *env) {
	e.put("a")
	e.state(dispatch.QueueDraining)
	_, err := e.store.Enqueue(e.ctx, queue, []dispatch.Submission{submit("b")}, dispatch.EnqueueOptions{})
	e.fails("enqueue", err, dispatch.ErrQueueDraining)
	e.gone("b")
	e.applied(alice, ended(e.one(alice, "a"), dispatch.Retry, 0))
	e.applied(alice, ended(e.one(alice, "a"), dispatch.Succeeded, 0))
	e.state(dispatch.QueueRunning)
	e.put("b")
	e.one(alice, "b")
	err = e.store.SetState(e.ctx, "other", dispatch.QueueDraining)
	e.fails("no queue", err, dispatch.ErrQueueNotFound)
}

func unknownState(e *env) {
	e.put("a")
	e.state(dispatch.QueuePaused)
	if err := e.store.SetState(e.ctx, queue, "pausd"); err == nil {
		e.Error("it is set")
	}
	e.claimed(alice, 1)
}

func drainForced(e *env) {
	e.put("a")
	e.state(dispatch.QueueDraining)
	_, err := e.store.Enqueue(e.ctx, queue, []dispatch.Submission{submit("b")}, dispatch.EnqueueOptions{Draining: true})
	e.ok(err)
	e.info("b", dispatch.TaskWaiting)
}

func drainAndPause(e *env) {
	e.put("a")
	for _, c := range []struct {
		to               dispatch.QueueState
		paused, draining bool
	}{
		{dispatch.QueueDraining, false, true}, {dispatch.QueuePaused, true, true}, {dispatch.QueueRunning, false, false},
		{dispatch.QueuePaused, true, false}, {dispatch.QueueDraining, true, true},
	} {
		e.state(c.to)
		q, err := e.store.Queue(e.ctx, queue)
		e.ok(err)
		equal(e, "paused, draining", []bool{q.Paused, q.Draining}, []bool{c.paused, c.draining})
	}
	e.change(func(q *dispatch.Queue) { q.Weight = 3 })
	q, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	equal(e, "after a change", q.Draining, true)
}
