package storetest

import (
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

var replayCases = []testcase{
	{"a dead task waits again as if it were new", replayRenews},
	{"only dead tasks are replayed", replayRefuses},
	{"many at once", replayMany},
	{"long tasks", replayLong},
	{"a purge before does not mean what is replayed", replayAfterPurge},
	{"a purge after means it", replayBeforePurge},
	{"under a new ID", replayRenames},
	{"a name is left behind by a new ID", replayRenamesNamed},
	{"what keeps its ID keeps its name", replayKeepsName},
	{"a new ID that exists is refused", replayRefusesNewID},
	{"a call with new IDs is repeated", replayRepeated},
	{"many under new IDs", replayRenamesMany},
}

// die makes tasks dead after an attempt.
func (e *env) die(ids ...string) {
	e.Helper()
	e.put(ids...)
	e.killAll(len(ids))
}

// killAll makes the first n tasks dead that wait.
func (e *env) killAll(n int) {
	e.Helper()
	for range n {
		s := ended(e.claim(alice, 1).Leased[0], dispatch.Dead, time.Hour)
		s.Progress = &dispatch.Progress{Attempts: 7, History: []dispatch.AttemptRecord{{Number: 7, Error: "x"}}}
		e.applied(alice, s)
	}
}

// replay replays tasks that keep their IDs.
func (e *env) replay(ids ...string) dispatch.ReplayReply {
	e.Helper()
	var tasks []dispatch.Replay
	for _, id := range ids {
		tasks = append(tasks, dispatch.Replay{ID: dispatch.TaskID(id)})
	}
	return e.replayAs(tasks...)
}

// renamed are the replays of tasks under new IDs: pairs of an old one and a new one.
func renamed(pairs ...string) (tasks []dispatch.Replay) {
	for i := 0; i < len(pairs); i += 2 {
		tasks = append(tasks, dispatch.Replay{ID: dispatch.TaskID(pairs[i]), NewID: dispatch.TaskID(pairs[i+1])})
	}
	return tasks
}

func (e *env) replayAs(tasks ...dispatch.Replay) dispatch.ReplayReply {
	e.Helper()
	r, err := e.store.ReplayTasks(e.ctx, queue, tasks)
	e.ok(err)
	return r
}

func replayRenews(e *env) {
	e.die("a")
	e.advance(time.Minute)
	now := e.now()
	r := e.replay("a")
	equal(e, "reply", r, dispatch.ReplayReply{Replayed: []bool{true}, Moved: true})
	info := e.info("a", dispatch.TaskWaiting)
	e.at("created", info.CreatedAt, now)
	e.at("due", info.Due, now)
	l := e.one(alice, "a")
	equal(e, "attempts", l.Progress.Attempts, 0)
	equal(e, "history", len(l.Progress.History), 0)
	e.applied(alice, ended(l, dispatch.Succeeded, 0))
	e.gone("a")
}

func replayRefuses(e *env) {
	e.die("a")
	e.put("waits", "runs")
	e.claimed(alice, 1, "runs")
	r := e.replay("waits", "none", "a", "runs", "a")
	equal(e, "replayed", r.Replayed, []bool{false, false, true, false, false})
	equal(e, "moved", r.Moved, false) // another one waits already
	equal(e, "nothing", len(e.replay().Replayed), 0)
	r = e.replayAs(renamed("waits", "n1", "none", "n2", "runs", "n3", "a", "n4")...)
	equal(e, "replayed under new IDs", r.Replayed, []bool{false, false, false, false})
	equal(e, "waiting", e.listed(dispatch.TaskWaiting), []string{"a", "waits"})
}

func replayMany(e *env) {
	var ids []string
	for i := range 300 { // more than one call's worth
		ids = append(ids, fmt.Sprintf("t%03d", i))
	}
	e.die(ids...)
	for i, done := range e.replay(ids...).Replayed {
		if !done {
			e.Fatalf("task %d is not replayed", i)
		}
	}
	equal(e, "waiting", len(e.listed(dispatch.TaskWaiting)), len(ids))
}

func replayLong(e *env) {
	for _, id := range []string{"a", "b", "c", "d"} {
		e.enqueue(submit(id, sized(700<<10)))
	}
	e.killAll(4)
	equal(e, "kept", e.replay("a", "none", "b").Replayed, []bool{true, false, true})
	equal(e, "renamed", e.replayAs(renamed("c", "x", "d", "y")...).Replayed, []bool{true, true})
	for _, id := range []string{"a", "b", "x", "y"} {
		l := e.one(alice, id)
		equal(e, "payload", len(l.Task.Payload), 700<<10)
		equal(e, "timeout", l.Task.Timeout, timeout)
	}
}

func replayAfterPurge(e *env) {
	e.die("a", "b", "c")
	e.purge(0)
	e.put("new")
	e.purge(0)
	e.replayAs(append(renamed("b", "x"), dispatch.Replay{ID: "a"})...)
	e.info("c", dispatch.TaskDead)
	for _, l := range e.claimed(alice, 10, "a", "x") {
		e.applied(alice, ended(l, dispatch.Retry, time.Second))
	}
	e.advance(time.Second)
	e.claimed(alice, 10, "a", "x")
}

func replayBeforePurge(e *env) {
	e.die("a", "b")
	e.replayAs(append(renamed("b", "x"), dispatch.Replay{ID: "a"})...)
	e.purge(0)
	e.gone("a")
	e.gone("x")
	e.claimed(alice, 10)
}

func replayRenames(e *env) {
	e.enqueue(submit("a", sized(3), func(s *dispatch.Submission) { s.Metadata = map[string]string{"k": "v"} }))
	created := e.now()
	e.killAll(1)
	e.advance(time.Minute)
	r := e.replayAs(renamed("a", "x")...)
	equal(e, "reply", r, dispatch.ReplayReply{Replayed: []bool{true}, Moved: true})
	e.gone("a")
	info := e.info("x", dispatch.TaskWaiting)
	e.at("created", info.CreatedAt, created.Add(time.Minute))
	equal(e, "progress", info.Progress, dispatch.Progress{})
	equal(e, "payload", len(info.Payload), 3)
	equal(e, "metadata", info.Metadata["k"], "v")
	equal(e, "counts", e.counts(), dispatch.Counts{Ready: 1, TotalDead: 1})
	e.applied(alice, ended(e.one(alice, "x"), dispatch.Succeeded, 0))
	e.gone("x")
}

func replayRenamesNamed(e *env) {
	e.enqueue(submit("named", named(1)), submit("derived", derived(2)), submit("requires", named(3),
		func(s *dispatch.Submission) { s.Requires = cluster.Resources{"cpu": 2} }))
	for range 3 {
		s := ended(e.claim(alice, 1).Leased[0], dispatch.Dead, time.Hour)
		s.Tombstone = time.Minute
		e.applied(alice, s)
	}
	e.replayAs(renamed("named", "x", "derived", "y", "requires", "z")...)
	equal(e, "requires", e.info("z", dispatch.TaskWaiting).Requires["cpu"], 2) // a flag of another meaning
	e.taken("named", true)                                                     // for its tombstone, as if it had been deleted
	for _, l := range e.claimed(alice, 10, "x", "y", "z") {
		equal(e, "named", l.Named, false)
		equal(e, "derived", l.Derived, false)
	}
	e.remove(time.Hour, "x", "y", "z")
	for _, id := range []string{"x", "y", "z"} {
		e.taken(id, false)
	}
	e.advance(time.Minute + time.Millisecond)
	e.taken("named", false)
	e.taken("derived", false)
}

func replayKeepsName(e *env) {
	e.enqueue(submit("named", named(1)), submit("derived", derived(2)))
	e.killAll(2)
	e.replay("named", "derived")
	for _, l := range e.claimed(alice, 10, "derived", "named") {
		equal(e, "named", l.Named, true)
		equal(e, "derived", l.Derived, l.Task.ID == "derived")
	}
	e.taken("named", true)
	e.remove(time.Minute, "named", "derived")
	e.takenFor(time.Minute, "named")
	e.taken("derived", true)
}

func replayRefusesNewID(e *env) {
	e.busyQueue()
	e.die("a", "b")
	r := e.replayAs(renamed("a", "later", "a", "runs", "a", "ok", "a", "dead", "a", "a", "a", "x", "b", "x", "a", "y")...)
	equal(e, "replayed", r.Replayed, []bool{false, false, false, false, false, true, false, false})
	e.info("later", dispatch.TaskWaiting)
	e.info("runs", dispatch.TaskRunning)
	e.info("ok", dispatch.TaskSucceeded)
	e.info("dead", dispatch.TaskDead)
	e.info("b", dispatch.TaskDead)
	e.info("x", dispatch.TaskWaiting)
	e.gone("a")
	e.gone("y")
}

func replayRepeated(e *env) {
	e.die("a", "b", "c")
	call := renamed("a", "x", "none", "y", "b", "z", "a", "u")
	want := []bool{true, false, true, false}
	equal(e, "replayed", e.replayAs(call...).Replayed, want)
	r := e.replayAs(call...)
	equal(e, "again", r.Replayed, want)
	equal(e, "moved", r.Moved, true) // nobody may have heard of it
	l := e.one(alice, "x")
	equal(e, "while one runs", e.replayAs(call...).Replayed, want)
	e.applied(alice, ended(l, dispatch.Dead, time.Hour))
	equal(e, "when one is dead again", e.replayAs(call...).Replayed, want)
	equal(e, "waiting", e.listed(dispatch.TaskWaiting), []string{"z"})
	equal(e, "dead", e.listed(dispatch.TaskDead), []string{"c", "x"})
}

func replayRenamesMany(e *env) {
	var ids, pairs, want []string
	for i := range 300 {
		ids = append(ids, fmt.Sprintf("t%03d", i))
		want = append(want, fmt.Sprintf("x%03d", i))
		pairs = append(pairs, ids[i], want[i])
	}
	e.die(ids...)
	for i, done := range e.replayAs(renamed(pairs...)...).Replayed {
		if !done {
			e.Fatalf("task %d is not replayed", i)
		}
	}
	equal(e, "waiting", e.listed(dispatch.TaskWaiting), want)
	equal(e, "dead", len(e.listed(dispatch.TaskDead)), 0)
}
