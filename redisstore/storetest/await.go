package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
)

var awaitCases = []testcase{
	{"what neither waits nor runs has ended", awaitSaysWhatEnded},
	{"a queue that does not exist is not created", awaitCreatesNothing},
	{"what ends for good is told, and nothing else", endsAreTold},
	{"nothing is told when nobody waits", endsAreNotTold},
	{"only the queues are told of that somebody waits for", endsOfOtherQueues},
	{"whoever waits is forgotten after a while", awaitExpires},
	{"whoever waits again is not forgotten", awaitIsRenewed},
	{"a repeated settle tells nothing twice", endsAreToldOnce},
	{"an outcome that does not count is not told", discardedIsNotTold},
	{"a task that a purge drops is told", purgedIsTold},
	{"a deleted task is told", deletedIsTold},
	{"many that end at once", manyEndsAreTold},
	{"every listener hears of every end, until it leaves", endListeners},
}

// sentinel is a queue whose only task ends when a case wants to know that nothing else was told before.
const sentinel = "sentinel"

// ends is one call of ListenEnded: what it hears, as queue/ID.
type ends struct {
	heard chan []string
	end   context.CancelFunc
	ended chan error
}

// listenEnded returns when the listener has joined. It ends with the case.
func (e *env) listenEnded() *ends {
	e.Helper()
	ctx, cancel := context.WithCancel(e.ctx)
	l := &ends{heard: make(chan []string, 64), end: cancel, ended: make(chan error, 1)}
	joined := make(chan struct{}, 16)
	go func() {
		l.ended <- e.store.ListenEnded(ctx, func() { joined <- struct{}{} }, func(queue string, ids []dispatch.TaskID) {
			var all []string
			for _, id := range ids {
				all = append(all, queue+"/"+string(id))
			}
			l.heard <- all
		})
	}()
	receive(e, "joined", joined)
	return l
}

// stop ends the listener and waits for it.
func (l *ends) stop(e *env) {
	e.Helper()
	l.end()
	e.fails("ListenEnded", receive(e, "end", l.ended), context.Canceled)
}

// hears lets the sentinel end and demands that exactly these were told of before it, in any order.
func (l *ends) hears(e *env, want ...string) {
	e.Helper()
	e.endSentinel()
	var got []string
	// Messages of two queues may change places on their way through a cluster.
	for last := false; !last || len(got) < len(want); {
		for _, id := range receive(e, "message", l.heard) {
			if id == sentinel+"/s" {
				last = true
			} else {
				got = append(got, id)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(got)+len(want) > 0 {
		equal(e, "told", got, want)
	}
}

// endSentinel lets a task end for which somebody waits.
func (e *env) endSentinel() {
	e.Helper()
	_, err := e.store.Enqueue(e.ctx, sentinel, []dispatch.Submission{{Task: task("s")}}, dispatch.EnqueueOptions{})
	e.ok(err)
	_, err = e.store.Await(e.ctx, sentinel, []dispatch.TaskID{"s"})
	e.ok(err)
	e.removeFrom(sentinel, "s")
}

// awaiting demands that of some tasks exactly these have ended.
func (e *env) awaiting(ids []string, ended ...string) {
	e.Helper()
	var tasks []dispatch.TaskID
	for _, id := range ids {
		tasks = append(tasks, dispatch.TaskID(id))
	}
	over, err := e.store.Await(e.ctx, queue, tasks)
	e.ok(err)
	var got []string
	for _, id := range over {
		got = append(got, string(id))
	}
	if len(got)+len(ended) > 0 {
		equal(e, "ended", got, ended)
	}
}

func awaitSaysWhatEnded(e *env) {
	e.put("back", "dead", "done", "gone", "runs")
	l := e.claimed(alice, 5, "back", "dead", "done", "gone", "runs")
	e.put("waits")
	e.applied(alice, ended(l[0], dispatch.Retry, time.Hour), ended(l[1], dispatch.Dead, time.Hour),
		ended(l[2], dispatch.Succeeded, time.Hour), ended(l[3], dispatch.Succeeded, 0))
	e.awaiting([]string{"waits", "never", "runs", "dead", "gone", "back", "done"}, "never", "dead", "gone", "done")
	e.awaiting([]string{"waits"})
	e.awaiting([]string{"never"}, "never")
}

func awaitCreatesNothing(e *env) {
	e.awaiting([]string{"a", "b"}, "a", "b")
	_, err := e.store.Queue(e.ctx, queue)
	e.fails("the queue", err, dispatch.ErrQueueNotFound)
	e.ok(e.h.Check(e.ctx, e.store, queue))
	equal(e, "queues", e.queues(), nil)
	created, err := e.store.CreateQueue(e.ctx, dispatch.Queue{Name: queue})
	e.ok(err)
	equal(e, "created", created, true)
}

func endsAreTold(e *env) {
	heard := e.listenEnded()
	defer heard.stop(e)
	e.put("a", "b", "c", "d", "e", "f")
	l := e.claimed(alice, 6, "a", "b", "c", "d", "e", "f")
	e.awaiting([]string{"a"})
	e.applied(alice, ended(l[0], dispatch.Succeeded, 0), ended(l[1], dispatch.Retry, time.Hour),
		ended(l[2], dispatch.Succeeded, time.Hour), ended(l[3], dispatch.Released, 0),
		ended(l[4], dispatch.Dead, 0), ended(l[5], dispatch.Dead, time.Hour))
	heard.hears(e, "mail/a", "mail/c", "mail/e", "mail/f")
}

func endsAreNotTold(e *env) {
	heard := e.listenEnded()
	defer heard.stop(e)
	e.put("a", "b")
	l := e.claimed(alice, 2, "a", "b")
	e.applied(alice, ended(l[0], dispatch.Succeeded, 0), ended(l[1], dispatch.Dead, time.Hour))
	e.remove(0, "b")
	heard.hears(e)
}

func endsOfOtherQueues(e *env) {
	heard := e.listenEnded()
	defer heard.stop(e)
	e.put("a")
	_, err := e.store.Enqueue(e.ctx, "other", []dispatch.Submission{{Task: task("b")}}, dispatch.EnqueueOptions{})
	e.ok(err)
	_, err = e.store.Await(e.ctx, "other", []dispatch.TaskID{"b"})
	e.ok(err)
	e.applied(alice, ended(e.one(alice, "a"), dispatch.Succeeded, 0))
	e.removeFrom("other", "b")
	heard.hears(e, "other/b")
}

func awaitExpires(e *env) {
	heard := e.listenEnded()
	defer heard.stop(e)
	e.put("a", "b", "c")
	l := e.claimed(alice, 3, "a", "b", "c")
	e.awaiting([]string{"a"})
	e.advance(-time.Hour) // the clock of a server may be set back
	e.awaiting([]string{"a"})
	e.advance(30*time.Second - time.Millisecond)
	e.applied(alice, ended(l[0], dispatch.Succeeded, 0))
	heard.hears(e, "mail/a")
	e.advance(30*time.Second + time.Millisecond)
	e.applied(alice, ended(l[1], dispatch.Succeeded, 0))
	heard.hears(e)
	e.remove(0, "c")
	heard.hears(e)
}

func awaitIsRenewed(e *env) {
	heard := e.listenEnded()
	defer heard.stop(e)
	ids := e.fill(20)
	for _, id := range ids {
		e.awaiting(ids[19:])
		e.advance(20 * time.Second)
		if id == ids[10] {
			e.advance(-time.Hour)
			e.awaiting(ids[19:])
			e.advance(time.Hour)
			e.awaiting(ids[19:])
		}
		e.applied(alice, ended(e.one(alice, id), dispatch.Succeeded, 0))
		heard.hears(e, "mail/"+id)
	}
}

func endsAreToldOnce(e *env) {
	heard := e.listenEnded()
	defer heard.stop(e)
	e.put("a")
	l := e.one(alice, "a")
	e.awaiting([]string{"a"})
	r := dispatch.SettleRequest{Queue: queue, Worker: alice, Seq: e.nextSeq("settle", queue, alice),
		Items: []dispatch.Settlement{ended(l, dispatch.Succeeded, time.Hour)}}
	first := e.settleAs(r)
	heard.hears(e, "mail/a")
	equal(e, "the answer to the repeated settle", e.settleAs(r).Applied, first.Applied)
	r.Seq = 0
	equal(e, "applied", e.settleAs(r).Applied, []bool{false})
	heard.hears(e)
}

func discardedIsNotTold(e *env) {
	heard := e.listenEnded()
	defer heard.stop(e)
	e.put("a")
	l := e.one(alice, "a")
	e.awaiting([]string{"a"})
	stale := l
	stale.Lease.Fence += "0"
	e.refused(alice, ended(stale, dispatch.Succeeded, 0))
	e.applied(alice, ended(l, dispatch.Retry, 0))
	e.refused(alice, ended(l, dispatch.Succeeded, 0))
	heard.hears(e)
	e.info("a", dispatch.TaskWaiting)
}

func purgedIsTold(e *env) {
	heard := e.listenEnded()
	defer heard.stop(e)
	e.put("a", "b")
	l := e.claimed(alice, 2, "a", "b")
	e.ok(e.store.PurgeQueue(e.ctx, queue, 0))
	e.awaiting([]string{"a", "b"})
	e.applied(alice, ended(l[0], dispatch.Retry, 0), ended(l[1], dispatch.Released, 0))
	heard.hears(e, "mail/a", "mail/b")
}

func deletedIsTold(e *env) {
	heard := e.listenEnded()
	defer heard.stop(e)
	e.put("runs")
	e.one(alice, "runs")
	e.put("waits")
	e.awaiting([]string{"runs", "waits"})
	for _, id := range []string{"runs", "waits"} {
		e.remove(0, id)
		heard.hears(e, "mail/"+id)
	}
	equal(e, "another time", e.deleted(dispatch.DeleteOptions{}, "runs"), "0")
	heard.hears(e)
}

func manyEndsAreTold(e *env) {
	heard := e.listenEnded()
	defer heard.stop(e)
	ids := e.fill(250)
	e.advance(250 * time.Millisecond)
	e.awaiting(ids)
	var items []dispatch.Settlement
	var want []string
	for _, l := range e.claimed(alice, 250, ids...) {
		items = append(items, ended(l, dispatch.Succeeded, 0))
		want = append(want, fmt.Sprintf("mail/%s", l.Task.ID))
	}
	e.applied(alice, items...)
	heard.hears(e, want...)
	e.awaiting(ids, ids...)
}

func endListeners(e *env) {
	a, b := e.listenEnded(), e.listenEnded()
	a.hears(e)
	receive(e, "message", b.heard)
	b.stop(e)
	a.hears(e)
	select {
	case ids := <-b.heard:
		e.Errorf("heard of %v after the end", ids)
	default:
	}
	a.stop(e)
	over, cancel := context.WithCancel(e.ctx)
	cancel()
	err := e.store.ListenEnded(over, func() {}, func(string, []dispatch.TaskID) {})
	e.fails("with a context that has ended", err, context.Canceled)
}
