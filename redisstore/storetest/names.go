package storetest

import (
	"time"

	"github.com/dispatchkit/dispatch"
)

var nameCases = []testcase{
	{"a name is taken while its task waits, runs and waits again", nameOfLiveTask},
	{"the same content from another call is a duplicate", sameContent},
	{"a repeated call is no duplicate", repeatedNamedCall},
	{"two of one name in one call: the first is stored", twiceInOneCall},
	{"a name stays taken for its tombstone", tombstone},
	{"without a tombstone a name is free at once", noTombstone},
	{"a task that is retained keeps its name", retainedName},
	{"tasks without a name leave none", unnamedLeavesNothing},
	{"names of two queues do not meet", namesOfTwoQueues},
}

// taken enqueues a name again, with other content, by a call that was never made before, and demands that it is refused
// or not.
func (e *env) taken(id string, want bool) {
	e.Helper()
	r := e.enqueue(submit(id, named(uint64(e.nextSeq("nonce", queue, ""))<<32), sized(3)))
	if r.Duplicate[0] != want {
		e.Errorf("name %s: duplicate is %v, want %v", id, r.Duplicate[0], want)
	}
}

func nameOfLiveTask(e *env) {
	e.enqueue(submit("n", named(1)))
	e.taken("n", true)
	l := e.one(alice, "n")
	e.taken("n", true)
	e.applied(alice, ended(l, dispatch.Retry, time.Minute))
	e.taken("n", true)
	e.advance(time.Minute)
	l = e.one(alice, "n")
	equal(e, "payload", len(l.Task.Payload), 0) // the first one's content
	e.advance(lease)
	e.taken("n", true) // the lease has ended, the task has not
}

func sameContent(e *env) {
	equal(e, "first", e.enqueue(submit("n", named(1))).Duplicate, []bool{false})
	equal(e, "second", e.enqueue(submit("n", named(2))).Duplicate, []bool{true})
	equal(e, "ready", e.counts().Ready, 1)
}

func repeatedNamedCall(e *env) {
	call := submit("n", named(1), after(time.Second))
	equal(e, "first", e.enqueue(call).Duplicate, []bool{false})
	e.advance(500 * time.Millisecond)
	r := e.enqueue(call)
	equal(e, "again", r, dispatch.EnqueueReply{Duplicate: []bool{false}, Moved: true, Wait: 500 * time.Millisecond})
	e.advance(500 * time.Millisecond)
	l := e.one(alice, "n")
	equal(e, "while it runs", e.enqueue(call).Duplicate, []bool{false})
	e.claimed(alice, 10)
	e.applied(alice, ended(l, dispatch.Retry, time.Hour))
	equal(e, "while it waits for a retry", e.enqueue(call).Duplicate, []bool{false})
	e.claimed(alice, 10)
}

func twiceInOneCall(e *env) {
	r := e.enqueue(submit("n", named(1), sized(5)), submit("n", named(2)), submit("n", named(3)))
	equal(e, "duplicate", r.Duplicate, []bool{false, true, true})
	equal(e, "payload", len(e.one(alice, "n").Task.Payload), 5)
}

func tombstone(e *env) {
	for _, outcome := range []dispatch.Outcome{dispatch.Succeeded, dispatch.Dead} {
		id := string(outcome)
		e.enqueue(submit(id, named(1)))
		s := ended(e.one(alice, id), outcome, 0)
		s.Tombstone = time.Hour
		e.applied(alice, s)
		e.gone(id)
		e.taken(id, true)
		e.advance(time.Hour - time.Millisecond)
		e.taken(id, true)
		e.advance(2 * time.Millisecond)
		e.taken(id, false)
		e.one(alice, id)
	}
}

func noTombstone(e *env) {
	e.enqueue(submit("n", named(1)))
	e.applied(alice, ended(e.one(alice, "n"), dispatch.Succeeded, 0))
	e.taken("n", false)
}

func retainedName(e *env) {
	e.enqueue(submit("n", named(1)))
	s := ended(e.one(alice, "n"), dispatch.Dead, 2*time.Hour)
	s.Tombstone = time.Hour
	e.applied(alice, s)
	e.advance(time.Hour + time.Millisecond)
	e.taken("n", true) // a queue has one task of an ID
	e.info("n", dispatch.TaskDead)
	e.remove(0, "n")
	e.taken("n", false)
}

func unnamedLeavesNothing(e *env) {
	e.put("n")
	e.applied(alice, ended(e.one(alice, "n"), dispatch.Succeeded, 0))
	e.taken("n", false)
	names, err := e.store.Expiring(e.ctx, 10)
	e.ok(err)
	equal(e, "expiring", len(names), 0)
}

func namesOfTwoQueues(e *env) {
	e.enqueue(submit("n", named(1)))
	r, err := e.store.Enqueue(e.ctx, "other", []dispatch.Submission{submit("n", named(2))}, dispatch.EnqueueOptions{})
	e.ok(err)
	equal(e, "duplicate", r.Duplicate, []bool{false})
}
