package storetest

import (
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
)

var taskCases = []testcase{
	{"a task tells of its state and nothing else", taskInfo},
	{"a task that does not exist is not found", taskNotFound},
	{"each state lists its own", listByState},
	{"all pages of every state", listPages},
	{"a page of long tasks", listLongTasks},
	{"a listing has what stays while others come and go", listWhileChanging},
}

var allStates = []dispatch.TaskState{dispatch.TaskWaiting, dispatch.TaskRunning, dispatch.TaskSucceeded, dispatch.TaskDead,
	dispatch.TaskCancelled}

// list reads all pages of a state.
func (e *env) list(state dispatch.TaskState) []*dispatch.TaskInfo {
	e.Helper()
	var all []*dispatch.TaskInfo
	for cursor := ""; ; {
		page, next, err := e.store.Tasks(e.ctx, queue, state, cursor)
		e.ok(err)
		all = append(all, page...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// listed is the IDs of a state, sorted, each once.
func (e *env) listed(state dispatch.TaskState) []string {
	e.Helper()
	var ids []string
	for _, t := range e.list(state) {
		equal(e, "state of "+string(t.ID), t.State, state)
		ids = append(ids, string(t.ID))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func taskInfo(e *env) {
	created := e.now()
	e.put("a")
	e.advance(time.Second)
	want := dispatch.TaskInfo{Task: task("a"), State: dispatch.TaskWaiting, CreatedAt: created, Due: created}
	same := func(got *dispatch.TaskInfo) {
		e.Helper()
		e.at("created", got.CreatedAt, want.CreatedAt)
		e.at("due", got.Due, want.Due)
		e.at("lease end", got.LeaseEnd, want.LeaseEnd)
		e.at("expires", got.ExpiresAt, want.ExpiresAt)
		e.sameProgress("progress", got.Progress, want.Progress)
		rest := *got
		rest.CreatedAt, rest.Due, rest.LeaseEnd, rest.ExpiresAt, rest.Progress = want.CreatedAt, want.Due, want.LeaseEnd, want.ExpiresAt, want.Progress
		equal(e, "task", rest, want)
	}
	both := func() {
		e.Helper()
		same(e.info("a", want.State))
		page := e.list(want.State)
		if len(page) != 1 {
			e.Fatalf("%d tasks listed", len(page))
		}
		same(page[0])
	}
	both()

	l := e.one(alice, "a")
	want.State, want.Due, want.LeaseEnd = dispatch.TaskRunning, time.Time{}, created.Add(time.Second+lease)
	want.LeasedBy, want.Token = alice, l.Lease.Token
	both()

	want.Progress = progress(created, 1)
	s := ended(l, dispatch.Retry, time.Minute)
	s.Progress = &want.Progress
	e.applied(alice, s)
	want.State, want.Due = dispatch.TaskWaiting, created.Add(time.Second+time.Minute)
	want.LeaseEnd, want.LeasedBy, want.Token = time.Time{}, "", 0
	both()

	e.advance(time.Minute)
	e.applied(alice, ended(e.one(alice, "a"), dispatch.Dead, time.Hour))
	want.State, want.Due, want.ExpiresAt = dispatch.TaskDead, time.Time{}, created.Add(time.Second+time.Minute+time.Hour)
	both()
}

func taskNotFound(e *env) {
	e.gone("a") // of a queue that does not exist either
	for _, state := range allStates {
		equal(e, string(state), len(e.list(state)), 0)
	}
	e.put("a")
	e.gone("b")
}

func listByState(e *env) {
	e.busyQueue()
	equal(e, "waiting", e.listed(dispatch.TaskWaiting), []string{"later", "waits"})
	equal(e, "running", e.listed(dispatch.TaskRunning), []string{"runs"})
	equal(e, "succeeded", e.listed(dispatch.TaskSucceeded), []string{"ok"})
	equal(e, "dead", e.listed(dispatch.TaskDead), []string{"dead"})
}

func listPages(e *env) {
	ids := e.fill(300)
	equal(e, "waiting", e.listed(dispatch.TaskWaiting), ids)
	e.advance(time.Second)
	var leased []dispatch.Leased
	for range 3 {
		leased = append(leased, e.claim(alice, 100).Leased...)
	}
	equal(e, "running", e.listed(dispatch.TaskRunning), ids)
	for i, outcome := range []dispatch.Outcome{dispatch.Succeeded, dispatch.Dead} {
		var items []dispatch.Settlement
		for _, l := range leased[i*150 : (i+1)*150] {
			items = append(items, ended(l, outcome, time.Hour))
		}
		e.applied(alice, items...)
	}
	equal(e, "succeeded", e.listed(dispatch.TaskSucceeded), ids[:150])
	equal(e, "dead", e.listed(dispatch.TaskDead), ids[150:])
}

func listLongTasks(e *env) {
	for _, id := range []string{"a", "b", "c", "d"} {
		e.enqueue(submit(id, sized(900<<10)))
	}
	equal(e, "waiting", e.listed(dispatch.TaskWaiting), []string{"a", "b", "c", "d"})
}

func listWhileChanging(e *env) {
	stay := e.fill(150)
	found := make(map[string]bool)
	i := 0
	for cursor := ""; ; {
		page, next, err := e.store.Tasks(e.ctx, queue, dispatch.TaskWaiting, cursor)
		e.ok(err)
		for _, t := range page {
			found[string(t.ID)] = true
		}
		for range 100 { // enough for an index to grow and to shrink
			id := "x" + string(rune('a'+i/26)) + string(rune('a'+i%26))
			i++
			e.put(id)
			if i%3 != 0 {
				e.remove(0, id)
			}
		}
		if cursor = next; cursor == "" || i > 2000 {
			break
		}
	}
	for _, id := range stay {
		if !found[id] {
			e.Errorf("task %s was in the state all the time and is not listed", id)
		}
	}
}
