package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
)

var purgeCases = []testcase{
	{"what was stored before is gone, what comes after stays", purgeIsPrecise},
	{"an attempt that runs finishes and is not retried", purgeAndRunning},
	{"a task that was retried or released before is gone", purgeOfRetried},
	{"what has ended and is retained stays", purgeKeepsRetained},
	{"names stay taken", purgeKeepsNames},
	{"again and again", purgeRepeated},
	{"a long queue of long tasks", purgeOfMany},
	{"settings and pause stay", purgeKeepsSettings},
	{"nothing stored before starts once it has begun", purgeAgainstWork},
}

func (e *env) purge(tombstone time.Duration) {
	e.Helper()
	e.ok(e.store.PurgeQueue(e.ctx, queue, tombstone))
}

func purgeIsPrecise(e *env) {
	e.enqueue(submit("a"), submit("b", after(time.Hour)), submit("c", named(1)))
	e.purge(0)
	e.put("d", "a") // in the same millisecond
	e.gone("b")
	e.gone("c")
	equal(e, "counts", e.counts(), dispatch.Counts{Ready: 2})
	equal(e, "leased", len(e.claim(alice, 10).Leased), 2)
	e.advance(2 * time.Hour)
	e.claimed(alice, 10)
}

func purgeAndRunning(e *env) {
	e.enqueue(submit("ok"), submit("retry", named(1)), submit("release", named(2)), submit("dead"), submit("lost", named(3)))
	l := e.claimed(alice, 10, "dead", "lost", "ok", "release", "retry")
	e.purge(time.Hour)
	equal(e, "running", e.counts().Running, 5)
	equal(e, "extended", e.extend(time.Hour, l[0]), []bool{true})
	p := progress(e.now(), 1)
	retry := ended(l[4], dispatch.Retry, 0)
	retry.Progress = &p
	r := e.applied(alice, ended(l[0], dispatch.Dead, time.Hour), ended(l[2], dispatch.Succeeded, time.Hour),
		ended(l[3], dispatch.Released, 0), retry)
	equal(e, "moved", r.Moved, false)
	e.info("ok", dispatch.TaskSucceeded)
	e.info("dead", dispatch.TaskDead)
	e.gone("retry")
	e.gone("release")
	e.advance(lease)
	over, _ := e.expired(10)
	equal(e, "expired", leasedIDs(over), []string{"lost"})
	e.applied(bob, ended(over[0], dispatch.Retry, 0))
	e.gone("lost")
	for _, id := range []string{"retry", "release", "lost"} {
		e.taken(id, true)
	}
	equal(e, "retried", e.counts().TotalRetried, 0)
}

func purgeOfRetried(e *env) {
	e.put("a", "b")
	l := e.claimed(alice, 10, "a", "b")
	p := progress(e.now(), 1)
	s := ended(l[0], dispatch.Retry, time.Minute)
	s.Progress = &p
	e.applied(alice, s, ended(l[1], dispatch.Released, 0))
	e.purge(0)
	e.gone("a")
	e.gone("b")
	e.put("a")
	equal(e, "progress", e.one(alice, "a").Progress, dispatch.Progress{})
}

func purgeKeepsRetained(e *env) {
	e.busyQueue()
	e.purge(0)
	e.info("ok", dispatch.TaskSucceeded)
	e.info("dead", dispatch.TaskDead)
	e.info("runs", dispatch.TaskRunning)
	e.gone("waits")
	e.gone("later")
	e.taken("gone", true)
}

func purgeKeepsNames(e *env) {
	e.enqueue(submit("a", named(1)), submit("b", named(2), after(time.Hour)), submit("c"))
	e.purge(time.Minute)
	e.taken("a", true)
	e.taken("b", true)
	equal(e, "unnamed", e.enqueue(submit("c")).Duplicate, []bool{false})
	e.advance(time.Minute - time.Millisecond)
	e.taken("a", true)
	e.advance(2 * time.Millisecond)
	e.taken("a", false)
	e.taken("b", false)
	e.purge(0)
	e.taken("a", false)
}

func purgeRepeated(e *env) {
	for i := range 5 {
		e.put(fmt.Sprint("old", i))
		l := e.claim(alice, 1).Leased
		e.put(fmt.Sprint("older", i))
		e.purge(0)
		e.purge(0)
		e.put(fmt.Sprint("new", i))
		e.applied(alice, ended(l[0], dispatch.Retry, 0))
		equal(e, "waiting", e.listed(dispatch.TaskWaiting), []string{fmt.Sprint("new", i)})
	}
}

func purgeOfMany(e *env) {
	e.fill(300)
	for i := range 4 {
		e.enqueue(submit(fmt.Sprint("long", i), sized(700<<10), named(uint64(i))))
	}
	e.purge(time.Hour)
	equal(e, "counts", e.counts(), dispatch.Counts{})
	e.taken("long3", true)
}

func purgeKeepsSettings(e *env) {
	e.create(dispatch.Queue{Weight: 3})
	e.put("a")
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueuePaused))
	before, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	e.purge(time.Hour)
	now, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	equal(e, "queue", now, before)
}

func purgeAgainstWork(e *env) {
	for i := range 120 {
		e.enqueue(submit(fmt.Sprint("old", i), after(time.Duration(i%3)*time.Millisecond)))
	}
	e.advance(time.Second)
	begun := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		close(begun)
		if err := e.store.PurgeQueue(e.ctx, queue, 0); err != nil {
			e.Error(err)
		}
	})
	<-begun
	for i := range 20 {
		e.put(fmt.Sprint("new", i))
	}
	r := e.claim(alice, 5).Leased // may still be old ones
	wait.Wait()
	for _, l := range r {
		e.applied(alice, ended(l, dispatch.Released, 0))
	}
	for _, l := range e.claim(alice, 100).Leased {
		if l.Task.ID[:3] != "new" {
			e.Errorf("task %s was stored before the purge", l.Task.ID)
		}
	}
}
