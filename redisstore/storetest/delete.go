package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch"
)

var deleteCases = []testcase{
	{"a task is deleted in whatever state", deleteInEveryState},
	{"what is not there is not deleted", deleteUnknown},
	{"one call for tasks of every state", deleteOfMixture},
	{"only dead ones", deleteDeadOnly},
	{"a deleted task leaves its name for a while", deleteLeavesName},
	{"names of several in one call", deleteLeavesNames},
	{"deletion frees a place and loses the lease", deleteFreesPlace},
	{"an ID that comes twice is deleted once", deleteTwiceInOneCall},
	{"many at once", deleteOfMany},
	{"long tasks", deleteOfLong},
}

func taskIDs(ids []string) []dispatch.TaskID {
	list := make([]dispatch.TaskID, len(ids))
	for i, id := range ids {
		list[i] = dispatch.TaskID(id)
	}
	return list
}

// deleted deletes tasks and writes down which of them were there, as digits.
func (e *env) deleted(o dispatch.DeleteOptions, ids ...string) string {
	e.Helper()
	deleted, err := e.store.DeleteTasks(e.ctx, queue, taskIDs(ids), o)
	e.ok(err)
	digits := ""
	for _, done := range deleted {
		if done {
			digits += "1"
		} else {
			digits += "0"
		}
	}
	return digits
}

// remove deletes tasks that must be there.
func (e *env) remove(tombstone time.Duration, ids ...string) {
	e.Helper()
	equal(e, "deleted", e.deleted(dispatch.DeleteOptions{Tombstone: tombstone}, ids...), strings.Repeat("1", len(ids)))
}

// removeFrom deletes a task of another queue.
func (e *env) removeFrom(queue, id string) {
	e.Helper()
	deleted, err := e.store.DeleteTasks(e.ctx, queue, taskIDs([]string{id}), dispatch.DeleteOptions{})
	e.ok(err)
	equal(e, "deleted", deleted, []bool{true})
}

func deleteInEveryState(e *env) {
	e.busyQueue()
	for _, id := range []string{"later", "waits", "runs", "ok", "dead"} {
		e.remove(time.Hour, id)
		e.gone(id)
		equal(e, "deleted again", e.deleted(dispatch.DeleteOptions{Tombstone: time.Hour}, id), "0")
		equal(e, "duplicate", e.enqueue(submit(id, after(24*time.Hour))).Duplicate, []bool{false})
	}
	e.claimed(alice, 10)
	c := e.counts()
	c.TotalSucceeded, c.TotalDead = 0, 0
	equal(e, "counts", c, dispatch.Counts{Scheduled: 5})
}

func deleteUnknown(e *env) {
	keep := dispatch.DeleteOptions{Tombstone: time.Hour}
	equal(e, "nothing", e.deleted(keep), "")
	equal(e, "of no queue", e.deleted(keep, "a", "b"), "00")
	e.put("a")
	equal(e, "unknown", e.deleted(keep, "b", "gone"), "00")
	deleted, err := e.store.DeleteTasks(e.ctx, "other", []dispatch.TaskID{"a"}, keep)
	e.ok(err)
	equal(e, "another queue's", deleted, []bool{false})
	e.info("a", dispatch.TaskWaiting)
	equal(e, "duplicate", e.enqueue(submit("b", named(1))).Duplicate, []bool{false}) // no name came of it
}

func deleteOfMixture(e *env) {
	l := e.busyQueue()
	e.put("stays")
	equal(e, "deleted", e.deleted(dispatch.DeleteOptions{Tombstone: time.Hour}, "ok", "none", "runs", "later", "dead", "gone", "waits"), "1011101")
	e.powerless(l)
	e.claimed(alice, 10, "stays")
	for _, state := range []dispatch.TaskState{dispatch.TaskWaiting, dispatch.TaskSucceeded, dispatch.TaskDead} {
		equal(e, string(state), len(e.listed(state)), 0)
	}
	e.taken("gone", true) // the name that an ended task has left
	e.advance(2 * time.Hour)
	e.cleanUp()
	equal(e, "expiring", len(e.expiring(10)), 0)
}

func deleteDeadOnly(e *env) {
	e.busyQueue()
	o := dispatch.DeleteOptions{Tombstone: time.Hour, DeadOnly: true}
	equal(e, "deleted", e.deleted(o, "later", "waits", "none", "runs", "dead", "ok", "dead"), "0000100")
	e.gone("dead")
	e.info("later", dispatch.TaskWaiting)
	e.info("waits", dispatch.TaskWaiting)
	e.info("runs", dispatch.TaskRunning)
	e.info("ok", dispatch.TaskSucceeded)
	e.taken("dead", false)
}

func deleteLeavesName(e *env) {
	e.enqueue(submit("waits", named(1), after(time.Hour)), submit("runs", named(2)), submit("free", named(3)))
	e.claimed(alice, 1, "free")
	e.claimed(alice, 1, "runs")
	for _, id := range []string{"waits", "runs"} {
		e.remove(time.Minute, id)
	}
	e.remove(0, "free")
	e.taken("free", false)
	e.taken("waits", true)
	e.advance(time.Minute - time.Millisecond)
	e.taken("runs", true)
	e.advance(2 * time.Millisecond)
	e.taken("waits", false)
	e.taken("runs", false)
}

func deleteLeavesNames(e *env) {
	e.enqueue(submit("derived", derived(1)), submit("named", named(2), after(time.Hour)), submit("plain", after(time.Hour)),
		submit("ended", named(3)))
	l := e.claimed(alice, 2, "derived", "ended")
	e.applied(alice, ended(l[1], dispatch.Dead, 24*time.Hour))
	e.remove(time.Minute, "derived", "named", "plain", "ended")
	e.powerless(l[0])
	e.taken("plain", false)
	e.taken("ended", false) // its name was free as soon as it was not retained
	e.taken("named", true)
	e.taken("derived", true)
	e.advance(time.Minute + time.Millisecond)
	equal(e, "expiring", e.expiring(10), []string{queue}) // the shortest of the names was noted
	e.cleanUp()
	e.taken("named", false)
	e.takenFor(time.Hour-time.Minute-time.Millisecond, "derived")
}

func deleteFreesPlace(e *env) {
	e.create(dispatch.Queue{MaxConcurrent: 1})
	e.put("a", "b")
	l := e.one(alice, "a")
	e.blocked(dispatch.BlockedByConcurrency, 0)
	e.remove(0, "a")
	e.powerless(l)
	e.one(bob, "b")
}

func deleteTwiceInOneCall(e *env) {
	e.enqueue(submit("a", named(1)))
	e.put("b")
	equal(e, "deleted", e.deleted(dispatch.DeleteOptions{Tombstone: time.Minute}, "a", "b", "a", "b"), "1100")
	e.takenFor(time.Minute, "a")
}

func deleteOfMany(e *env) {
	ids := e.fill(300) // more than one call's worth
	e.remove(0, ids[:299]...)
	equal(e, "waiting", e.listed(dispatch.TaskWaiting), ids[299:])
}

func deleteOfLong(e *env) {
	var ids []string
	for i := range 4 {
		ids = append(ids, fmt.Sprint("long", i), fmt.Sprint("short", i))
		e.enqueue(submit(ids[2*i], sized(700<<10), named(uint64(i)+1)), submit(ids[2*i+1], named(uint64(i)+1)))
	}
	e.remove(time.Minute, ids...)
	equal(e, "counts", e.counts(), dispatch.Counts{})
	e.takenFor(time.Minute, ids...)
}
