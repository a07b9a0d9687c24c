package storetest

import (
	"time"

	"github.com/dispatchkit/dispatch"
)

var rescheduleCases = []testcase{
	{"a waiting task gets another due time", rescheduleMoves},
	{"sooner than all others is told", rescheduleTells},
	{"only a waiting task is rescheduled", rescheduleRefuses},
	{"a purged task is gone", reschedulePurged},
}

func (e *env) reschedule(id string, delay time.Duration) dispatch.EnqueueReply {
	e.Helper()
	r, err := e.store.RescheduleTask(e.ctx, queue, dispatch.Task{ID: dispatch.TaskID(id), Delay: delay})
	e.ok(err)
	return r
}

func rescheduleMoves(e *env) {
	e.put("a")
	e.reschedule("a", time.Hour)
	e.at("due", e.info("a", dispatch.TaskWaiting).Due, e.now().Add(time.Hour))
	e.claimed(alice, 9)
	at := e.now().Add(time.Minute)
	r, err := e.store.RescheduleTask(e.ctx, queue, dispatch.Task{ID: "a", ScheduleTime: at})
	e.ok(err)
	equal(e, "wait", r.Wait, time.Minute)
	e.advance(time.Minute)
	l := e.one(alice, "a")
	e.applied(alice, ended(l, dispatch.Retry, time.Hour)) // its progress stays
	e.reschedule("a", 0)
	equal(e, "attempts", e.one(alice, "a").Progress.Attempts, l.Progress.Attempts)
}

func rescheduleTells(e *env) {
	e.enqueue(submit("a", after(time.Minute)), submit("b", after(time.Hour)))
	equal(e, "moved behind", e.reschedule("b", 2*time.Minute).Moved, false)
	r := e.reschedule("b", time.Second)
	equal(e, "moved before", r.Moved, true)
	equal(e, "wait", r.Wait, time.Second)
	equal(e, "past", e.reschedule("b", 0).Wait, 0)
}

func rescheduleRefuses(e *env) {
	e.put("a", "b")
	_, err := e.store.RescheduleTask(e.ctx, queue, dispatch.Task{ID: "none"})
	e.fails("none", err, dispatch.ErrTaskNotFound)
	l := e.one(alice, "a")
	refused := func(what string) {
		e.Helper()
		_, err := e.store.RescheduleTask(e.ctx, queue, dispatch.Task{ID: "a"})
		e.fails(what, err, dispatch.ErrNotWaiting)
	}
	refused("running")
	e.applied(alice, ended(l, dispatch.Dead, time.Hour))
	refused("dead")
}

func reschedulePurged(e *env) {
	e.put("a")
	e.ok(e.store.PurgeQueue(e.ctx, queue, 0))
	_, err := e.store.RescheduleTask(e.ctx, queue, dispatch.Task{ID: "a"})
	e.fails("purged", err, dispatch.ErrTaskNotFound)
}
