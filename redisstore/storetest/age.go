package storetest

import (
	"time"

	"github.com/dispatchkit/dispatch"
)

var ageCases = []testcase{
	{"a task past its age is dropped when it is due", ageDropped},
	{"a task past its age does not come back", ageNoRetry},
	{"a task that runs past its age may succeed", ageSucceeds},
	{"names of what is dropped stay taken", ageNames},
	{"age counts from when the task was stored", ageOfScheduled},
	{"the age may be changed", ageChanged},
}

func ageDropped(e *env) {
	e.create(dispatch.Queue{TaskTTL: time.Minute})
	e.put("old")
	e.advance(time.Minute - time.Millisecond)
	e.put("young")
	e.applied(alice, ended(e.one(alice, "old"), dispatch.Released, 0))
	e.advance(time.Millisecond)
	e.claimed(alice, 9, "young")
	e.gone("old")
	equal(e, "expired", e.counts().TotalExpired, 1)
}

func ageNoRetry(e *env) {
	e.create(dispatch.Queue{TaskTTL: time.Minute})
	e.put("a", "b")
	ls := e.claim(alice, 2).Leased
	e.advance(time.Minute)
	p := progress(e.now(), 1)
	s := ended(ls[0], dispatch.Retry, time.Second)
	s.Progress = &p
	equal(e, "dropped", e.applied(alice, s, ended(ls[1], dispatch.Released, 0)).Dropped, []bool{true, true})
	e.gone("a")
	e.gone("b")
	c := e.counts()
	equal(e, "expired, retried", []int64{c.TotalExpired, c.TotalRetried}, []int64{2, 0})
}

func ageSucceeds(e *env) {
	e.create(dispatch.Queue{TaskTTL: time.Minute})
	e.put("a", "b")
	ls := e.claim(alice, 2).Leased
	e.advance(time.Hour)
	e.applied(alice, ended(ls[0], dispatch.Succeeded, time.Hour), ended(ls[1], dispatch.Dead, time.Hour))
	e.info("a", dispatch.TaskSucceeded)
	e.info("b", dispatch.TaskDead)
}

func ageNames(e *env) {
	e.create(dispatch.Queue{TaskTTL: time.Minute})
	e.enqueue(submit("a", named(1)), submit("b", derived(2)), submit("c", named(3)))
	l := e.claimed(alice, 1, "a")[0]
	e.advance(time.Minute)
	s := ended(l, dispatch.Retry, 0)
	s.Tombstone = time.Minute
	e.applied(alice, s)
	r := e.request(alice, 9)
	r.Tombstone = time.Minute
	equal(e, "leased", len(e.send(r).Leased), 0)
	e.change(func(q *dispatch.Queue) { q.TaskTTL = 0 })
	e.takenFor(time.Minute, "a", "c")
	e.takenFor(time.Hour-time.Minute-time.Millisecond, "b")
}

func ageOfScheduled(e *env) {
	e.create(dispatch.Queue{TaskTTL: time.Minute})
	e.enqueue(submit("soon", after(59*time.Second)), submit("late", after(time.Minute)))
	e.advance(time.Minute - time.Millisecond)
	e.claimed(alice, 9, "soon")
	e.advance(time.Millisecond)
	e.claimed(alice, 9)
	e.gone("late")
}

func ageChanged(e *env) {
	e.put("a", "b")
	e.advance(time.Hour)
	e.one(alice, "a")
	e.change(func(q *dispatch.Queue) { q.TaskTTL = time.Hour })
	q, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	equal(e, "stored", q.TaskTTL, time.Hour)
	e.claimed(alice, 9)
	e.gone("b")
}
