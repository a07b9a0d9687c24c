package storetest

import (
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

var windowCases = []testcase{
	{"a window comes back with the lease", windowComesBack},
	{"a window of its own holds when the task is deleted", windowDeleted},
	{"a window of its own holds when the task is purged", windowPurged},
	{"a window of its own holds when the task is cancelled", windowCancelled},
	{"a window of its own survives an edit", windowEdited},
	{"a window beside requirements", windowAndRequires},
}

// window gives a task a dedup window of its own.
func window(d time.Duration) func(*dispatch.Submission) {
	return func(s *dispatch.Submission) { s.Window = d }
}

var windows = map[string]time.Duration{"short": 250 * time.Millisecond, "long": 90 * 24 * time.Hour, "none": -1}

// putWindows stores named tasks whose names are their windows.
func (e *env) putWindows() {
	for id, d := range windows {
		e.enqueue(submit(id, named(1), window(d)))
	}
	e.enqueue(submit("plain", named(1)))
}

// windowsHold demands that names stay taken for their windows from now, and the plain one for a minute.
func (e *env) windowsHold() {
	e.Helper()
	e.taken("none", false)
	e.takenFor(windows["short"], "short")
	e.takenFor(time.Minute-windows["short"]-time.Millisecond, "plain")
	e.takenFor(windows["long"]-time.Minute-time.Millisecond, "long")
}

func windowComesBack(e *env) {
	e.putWindows()
	for _, l := range e.claim(alice, 9).Leased {
		equal(e, "window of "+string(l.Task.ID), l.Window, windows[string(l.Task.ID)])
	}
	e.advance(lease)
	over, _ := e.expired(10)
	equal(e, "leases", len(over), 4)
	for _, l := range over {
		equal(e, "window of "+string(l.Task.ID), l.Window, windows[string(l.Task.ID)])
	}
}

func windowDeleted(e *env) {
	e.putWindows()
	for _, id := range []dispatch.TaskID{"short", "long", "none", "plain"} {
		e.remove(time.Minute, string(id))
	}
	e.windowsHold()
}

func windowPurged(e *env) {
	e.putWindows()
	e.ok(e.store.PurgeQueue(e.ctx, queue, time.Minute))
	e.windowsHold()
}

func windowEdited(e *env) {
	e.putWindows()
	for _, id := range []dispatch.TaskID{"short", "long", "none", "plain"} {
		e.ok(e.store.EditTask(e.ctx, queue, id, func(t *dispatch.Task) error { t.Kind += "er"; return nil }))
		e.remove(time.Minute, string(id))
	}
	e.windowsHold()
}

func windowCancelled(e *env) {
	e.putWindows()
	for _, id := range []dispatch.TaskID{"short", "long", "none", "plain"} {
		e.cancel(dispatch.Cancellation{ID: id, Tombstone: time.Minute})
	}
	e.windowsHold()
}

func windowAndRequires(e *env) {
	e.enqueue(submit("a", named(1), window(time.Second), func(s *dispatch.Submission) { s.Requires = cluster.Resources{"cpu": 5} }),
		submit("b", named(2), window(time.Second)))
	r := e.request(alice, 9)
	r.Free = cluster.Resources{"cpu": 4}
	equal(e, "fits", leasedIDs(e.send(r).Leased), []string{"b"})
	r = e.request(alice, 9)
	r.Free = cluster.Resources{"cpu": 5}
	l := e.send(r).Leased
	equal(e, "fits", leasedIDs(l), []string{"a"})
	equal(e, "requires", l[0].Task.Requires, cluster.Resources{"cpu": 5})
	equal(e, "window", l[0].Window, time.Second)
}
