package storetest

import (
	"errors"
	"net/http"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

var editCases = []testcase{
	{"every field of a waiting task can be changed, and all else stays", editEverything},
	{"a task between two attempts is edited", editBetweenAttempts},
	{"what change does not touch is kept, whatever the task has", editNothing},
	{"an error of change stores nothing", editFails},
	{"only a waiting task is edited", editRefuses},
	{"a purged task is gone", editPurged},
	{"an edit between reading and storing is a conflict", editConflict},
	{"a task that was claimed between reading and storing does not wait", editTooLate},
	{"the name of a named task stays taken", editKeepsName},
	{"the name of a derived task stays taken for an hour", editKeepsDerived},
	{"longer records are claimed within the bytes of a claim", editLonger},
}

// edited edits a task, which must work.
func (e *env) edited(id string, change func(t *dispatch.Task)) {
	e.Helper()
	e.ok(e.store.EditTask(e.ctx, queue, dispatch.TaskID(id), func(t *dispatch.Task) error {
		change(t)
		return nil
	}))
}

// full is a task that has everything that a task keeps.
func full(id string) dispatch.Task {
	return dispatch.Task{
		ID: dispatch.TaskID(id), Queue: queue, URL: "https://a.example/", Method: "PUT", Secret: "shop",
		Header: http.Header{"X-A": {"1", "2"}, "x-b": {""}, "X-None": nil}, Payload: []byte("\x00\xff"),
		Timeout: 90 * time.Second, Requires: cluster.Resources{"cpu": 2, "mem": 5}, Metadata: map[string]string{"a": "1"},
		Retry: &dispatch.RetryConfig{MaxAttempts: 3, MaxRetryDuration: 4, MinBackoff: -1, MaxBackoff: 5, MaxDoublings: 6, Jitter: 0.3},
	}
}

func editEverything(e *env) {
	e.enqueue(submit("a", after(time.Minute)))
	before := e.info("a", dispatch.TaskWaiting)
	e.advance(time.Second)
	e.edited("a", func(t *dispatch.Task) {
		equal(e, "read", *t, before.Task)
		*t = full("another")
		t.Queue, t.Delay, t.ScheduleTime = "another", time.Hour, e.now().Add(time.Hour)
	})
	want := *before
	want.Task = full("a")
	equal(e, "edited", *e.info("a", dispatch.TaskWaiting), want)
	e.gone("another")
	e.advance(time.Minute)
	equal(e, "claimed", e.one(alice, "a").Task, full("a"))
}

func editBetweenAttempts(e *env) {
	e.put("a")
	l := e.one(alice, "a")
	s := ended(l, dispatch.Retry, time.Minute)
	s.Progress = &dispatch.Progress{Attempts: 1, History: []dispatch.AttemptRecord{{Number: 1, Error: "oops"}}}
	e.applied(alice, s)
	before := e.info("a", dispatch.TaskWaiting)
	e.edited("a", func(t *dispatch.Task) { t.Payload = []byte("better") })
	before.Payload = []byte("better")
	equal(e, "edited", e.info("a", dispatch.TaskWaiting), before)
	e.advance(time.Minute)
	equal(e, "attempts", e.one(alice, "a").Progress, *s.Progress)
}

func editNothing(e *env) {
	task := full("a")
	e.enqueue(dispatch.Submission{Task: task, Named: true, Nonce: 1<<63 + 5}, submit("plain"))
	before, plain := e.info("a", dispatch.TaskWaiting), e.info("plain", dispatch.TaskWaiting)
	for range 2 {
		e.edited("a", func(t *dispatch.Task) { equal(e, "read", *t, task) })
		e.edited("plain", func(*dispatch.Task) {})
	}
	equal(e, "edited", e.info("a", dispatch.TaskWaiting), before)
	equal(e, "edited", e.info("plain", dispatch.TaskWaiting), plain)
	// It still is the task of the call that has stored it, should that be repeated.
	r := e.enqueue(dispatch.Submission{Task: task, Named: true, Nonce: 1<<63 + 5})
	equal(e, "duplicate", r.Duplicate, []bool{false})
	e.taken("a", true)
}

func editFails(e *env) {
	e.put("a")
	bad := errors.New("no")
	e.fails("edit", e.store.EditTask(e.ctx, queue, "a", func(t *dispatch.Task) error { t.Kind = "other"; return bad }), bad)
	equal(e, "kind", e.info("a", dispatch.TaskWaiting).Kind, "test")
}

func editRefuses(e *env) {
	e.put("a", "b", "c")
	refused := func(what, id string, want error) {
		e.Helper()
		err := e.store.EditTask(e.ctx, queue, dispatch.TaskID(id), func(*dispatch.Task) error {
			e.Errorf("%s: change is called", what)
			return nil
		})
		e.fails(what, err, want)
	}
	refused("unknown", "none", dispatch.ErrTaskNotFound)
	for i, outcome := range []dispatch.Outcome{dispatch.Dead, dispatch.Succeeded} {
		id := []string{"a", "b"}[i]
		l := e.one(alice, id)
		refused("running", id, dispatch.ErrNotWaiting)
		e.applied(alice, ended(l, outcome, time.Hour))
		refused(string(outcome), id, dispatch.ErrNotWaiting)
	}
	e.applied(alice, ended(e.one(alice, "c"), dispatch.Succeeded, 0))
	refused("gone", "c", dispatch.ErrTaskNotFound)
}

func editPurged(e *env) {
	e.put("a", "b")
	e.ok(e.store.PurgeQueue(e.ctx, queue, 0))
	edit := func(change func(*dispatch.Task) error) error { return e.store.EditTask(e.ctx, queue, "a", change) }
	e.fails("purged", edit(func(*dispatch.Task) error { return nil }), dispatch.ErrTaskNotFound)
	e.put("a")
	e.fails("purged meanwhile", edit(func(t *dispatch.Task) error {
		t.Kind = "other"
		return e.store.PurgeQueue(e.ctx, queue, 0)
	}), dispatch.ErrTaskNotFound)
	e.gone("a")
}

func editConflict(e *env) {
	e.put("a")
	err := e.store.EditTask(e.ctx, queue, "a", func(t *dispatch.Task) error {
		e.edited("a", func(t *dispatch.Task) { t.Payload = []byte("theirs") })
		t.Payload = []byte("mine")
		return nil
	})
	e.fails("edit", err, dispatch.ErrConflict)
	equal(e, "payload", string(e.info("a", dispatch.TaskWaiting).Payload), "theirs")
	// Moved is not edited.
	e.edited("a", func(t *dispatch.Task) {
		e.reschedule("a", time.Hour)
		t.Payload = []byte("mine")
	})
	info := e.info("a", dispatch.TaskWaiting)
	equal(e, "payload", string(info.Payload), "mine")
	e.at("due", info.Due, e.now().Add(time.Hour))
}

func editTooLate(e *env) {
	e.put("a")
	err := e.store.EditTask(e.ctx, queue, "a", func(t *dispatch.Task) error {
		t.Kind = "other"
		e.one(alice, "a")
		return nil
	})
	e.fails("edit", err, dispatch.ErrNotWaiting)
	equal(e, "kind", e.info("a", dispatch.TaskRunning).Kind, "test")
}

func editKeepsName(e *env) {
	e.enqueue(submit("a", named(1)))
	e.edited("a", func(t *dispatch.Task) { t.Kind = "other" })
	l := e.one(alice, "a")
	equal(e, "named", l.Named, true)
	s := ended(l, dispatch.Succeeded, 0)
	s.Tombstone = time.Minute
	e.applied(alice, s)
	e.taken("a", true)
	e.advance(time.Minute + time.Millisecond)
	e.taken("a", false)
}

func editKeepsDerived(e *env) {
	e.enqueue(submit("a", named(1), func(s *dispatch.Submission) { s.Derived = true }))
	e.edited("a", func(t *dispatch.Task) { t.Kind = "other" })
	e.remove(0, "a")
	e.advance(time.Hour - time.Millisecond)
	e.taken("a", true)
}

func editLonger(e *env) {
	for _, id := range e.fill(30) {
		e.edited(id, func(t *dispatch.Task) { t.Payload = make([]byte, 100<<10) })
	}
	e.advance(time.Second)
	for left := 30; left > 0; {
		n := len(e.claim(alice, 30).Leased)
		if n == 0 || n > 6 {
			e.Fatalf("a claim leased %d tasks of 100 KiB, with %d left", n, left)
		}
		left -= n
	}
}
