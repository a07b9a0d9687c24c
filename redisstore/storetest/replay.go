package storetest

import (
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
)

var replayCases = []testcase{
	{"a dead task waits again as if it were new", replayRenews},
	{"only dead tasks are replayed", replayRefuses},
	{"many at once", replayMany},
}

// die makes tasks dead after an attempt.
func (e *env) die(ids ...string) {
	e.Helper()
	e.put(ids...)
	for range ids {
		l := e.claim(alice, 1).Leased[0]
		s := ended(l, dispatch.Dead, time.Hour)
		s.Progress = &dispatch.Progress{Attempts: 7, History: []dispatch.AttemptRecord{{Number: 7, Error: "x"}}}
		e.applied(alice, s)
	}
}

func (e *env) replay(ids ...string) dispatch.ReplayReply {
	e.Helper()
	var list []dispatch.TaskID
	for _, id := range ids {
		list = append(list, dispatch.TaskID(id))
	}
	r, err := e.store.ReplayTasks(e.ctx, queue, list)
	e.ok(err)
	return r
}

func replayRenews(e *env) {
	e.die("a")
	r := e.replay("a")
	equal(e, "reply", r, dispatch.ReplayReply{Replayed: []bool{true}, Moved: true})
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
}

func replayMany(e *env) {
	var ids []string
	for i := range 300 {
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
