package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
)

var dueEntryCases = []testcase{
	{"due entries come in order, up to a limit", dueInOrder},
	{"an entry is due when its next tick comes", dueAtNext},
	{"large entries come in parts", dueInParts},
}

// due reads due entries and demands that exactly these come, in this order.
func (e *env) due(limit int, want ...string) (due []*dispatch.EntryInfo, wait time.Duration) {
	e.Helper()
	due, now, wait, err := e.store.DueEntries(e.ctx, 0, limit)
	e.ok(err)
	e.at("time of the answer", now, e.now())
	var names []string
	for _, entry := range due {
		names = append(names, entry.Name)
	}
	if !slices.Equal(names, want) {
		e.Fatalf("due are %v, want %v", names, want)
	}
	return due, wait
}

func dueInOrder(e *env) {
	_, wait := e.due(10)
	e.never("wait", wait)
	for i, name := range []string{"c", "a", "d", "b"} {
		e.plan(e.putEntry(entry(name)), time.Duration(i+1)*10*time.Second)
	}
	e.putEntry(entry("new2"), entry("new1"))
	_, wait = e.due(10, "new1", "new2") // not planned yet: the longest due
	equal(e, "wait", wait, 10*time.Second)
	e.advance(30 * time.Second)
	_, wait = e.due(10, "new1", "new2", "c", "a", "d")
	equal(e, "wait", wait, 10*time.Second)
	_, wait = e.due(4, "new1", "new2", "c", "a")
	equal(e, "wait when more are due", wait, 0)
	_, wait = e.due(5, "new1", "new2", "c", "a", "d")
	equal(e, "wait", wait, 10*time.Second)
	e.advance(11 * time.Second)
	_, wait = e.due(5, "new1", "new2", "c", "a", "d")
	equal(e, "wait when one is overdue", wait, 0)
	_, wait = e.due(6, "new1", "new2", "c", "a", "d", "b")
	e.never("wait", wait)
}

func dueAtNext(e *env) {
	e.plan(e.putEntry(entry("a")), time.Minute)
	_, wait := e.due(10)
	equal(e, "wait", wait, time.Minute)
	e.advance(time.Minute - time.Millisecond)
	_, wait = e.due(10)
	equal(e, "wait", wait, time.Millisecond)
	e.advance(time.Millisecond)
	due, wait := e.due(10, "a")
	e.never("wait", wait)
	e.plan(due[0], time.Minute)
	_, wait = e.due(10)
	equal(e, "wait", wait, time.Minute)
}

func dueInParts(e *env) {
	const n = 5
	for i := range n {
		e.putEntry(entry(fmt.Sprint("long", i), func(i *dispatch.EntryInfo) { i.Task.Payload = make([]byte, 700<<10) }))
	}
	for left := n; left > 0; {
		due, _, wait, err := e.store.DueEntries(e.ctx, 0, 10)
		e.ok(err)
		if len(due) == 0 {
			e.Fatalf("nothing is due, and %d entries are", left)
		}
		if left > len(due) {
			equal(e, "wait", wait, 0)
		}
		for _, entry := range due {
			e.plan(entry, time.Hour)
		}
		left -= len(due)
	}
	_, wait := e.due(10)
	equal(e, "wait", wait, time.Hour)
}
