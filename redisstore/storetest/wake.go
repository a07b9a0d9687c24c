package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
)

var wakeCases = []testcase{
	{"announced queues are noted, soonest first", announceNotes},
	{"the sooner of two notes stays", announceKeepsSooner},
	{"notes grow due", notesGrowDue},
	{"many notes", manyNotes},
	{"rest replaces and removes notes", restReplaces},
	{"rest finds what came meanwhile", restFinds},
	{"rest sees leases and not what is paused", restSees},
	{"look says what queues have to do", lookSays},
	{"look repairs what is noted too late or not at all", lookRepairs},
	{"no task is lost between rest and enqueue", restAgainstEnqueue},
}

func (e *env) announce(hints ...dispatch.Hint) {
	e.Helper()
	e.ok(e.store.Announce(e.ctx, hints))
}

// noted reads the notes and demands that they are these.
func (e *env) noted(within time.Duration, want ...dispatch.Hint) {
	e.Helper()
	got, err := e.store.Hints(e.ctx, within)
	e.ok(err)
	slices.SortStableFunc(got, byWaitAndName)
	slices.SortStableFunc(want, byWaitAndName)
	if len(got)+len(want) > 0 {
		equal(e, "notes", got, want)
	}
}

func byWaitAndName(a, b dispatch.Hint) int {
	if a.Wait != b.Wait {
		return int(a.Wait - b.Wait)
	}
	return strings.Compare(a.Queue, b.Queue)
}

func hint(queue string, wait time.Duration) dispatch.Hint {
	return dispatch.Hint{Queue: queue, Wait: wait}
}

func announceNotes(e *env) {
	e.noted(time.Hour)
	e.announce(hint("c", time.Minute), hint("a", 0), hint("b", time.Second), hint("d", -time.Minute))
	got, err := e.store.Hints(e.ctx, time.Hour)
	e.ok(err)
	if !slices.IsSortedFunc(got, func(a, b dispatch.Hint) int { return int(a.Wait - b.Wait) }) {
		e.Errorf("not soonest first: %v", got)
	}
	e.noted(time.Hour, hint("a", 0), hint("d", 0), hint("b", time.Second), hint("c", time.Minute))
	e.noted(time.Minute, hint("a", 0), hint("d", 0), hint("b", time.Second), hint("c", time.Minute))
	e.noted(time.Minute-time.Millisecond, hint("a", 0), hint("d", 0), hint("b", time.Second))
	e.noted(0, hint("a", 0), hint("d", 0))
	e.announce()
	e.noted(0, hint("a", 0), hint("d", 0)) // reading takes nothing away
}

func announceKeepsSooner(e *env) {
	e.announce(hint("q", time.Minute))
	e.announce(hint("q", time.Hour))
	e.noted(2*time.Hour, hint("q", time.Minute))
	e.announce(hint("q", time.Second), hint("q", time.Minute))
	e.noted(2*time.Hour, hint("q", time.Second))
}

func notesGrowDue(e *env) {
	e.announce(hint("q", time.Minute))
	e.advance(40 * time.Second)
	e.noted(time.Hour, hint("q", 20*time.Second))
	e.advance(40 * time.Second)
	e.noted(0, hint("q", -20*time.Second))
}

func manyNotes(e *env) {
	var want []dispatch.Hint
	for i := range 1100 {
		want = append(want, hint(fmt.Sprintf("q%04d", i), time.Duration(i)*time.Millisecond))
	}
	e.announce(want...)
	e.noted(time.Hour, want...)
	for i := range want {
		want[i].Wait = -1
	}
	busy, err := e.store.Rest(e.ctx, want)
	e.ok(err)
	equal(e, "busy", len(busy), 0)
	e.noted(time.Hour)
}

// rest demands that these queues turn out to be busy.
func (e *env) rest(hints []dispatch.Hint, want ...dispatch.Hint) {
	e.Helper()
	busy, err := e.store.Rest(e.ctx, hints)
	e.ok(err)
	slices.SortFunc(busy, byWaitAndName)
	if len(busy)+len(want) > 0 {
		equal(e, "busy", busy, want)
	}
}

func restReplaces(e *env) {
	e.announce(hint("a", 0), hint("b", 0), hint("c", 0))
	e.rest([]dispatch.Hint{hint("a", -1), hint("b", time.Minute), hint("new", time.Second)})
	e.noted(time.Hour, hint("c", 0), hint("new", time.Second), hint("b", time.Minute))
	e.announce(hint("a", time.Second))
	e.noted(time.Second, hint("c", 0), hint("a", time.Second), hint("new", time.Second))
}

func restFinds(e *env) {
	e.put("a")
	e.rest([]dispatch.Hint{hint(queue, -1)}, hint(queue, 0))
	e.noted(time.Hour, hint(queue, 0))
	e.one(alice, "a")
	e.enqueue(submit("b", after(time.Minute)))
	e.rest([]dispatch.Hint{hint(queue, 2*time.Minute)}, hint(queue, time.Minute))
	e.noted(time.Hour, hint(queue, time.Minute))
	e.rest([]dispatch.Hint{hint(queue, time.Minute)}) // as quiet as was said
	e.rest([]dispatch.Hint{hint(queue, time.Second)})
	e.noted(time.Hour, hint(queue, time.Second))
}

func restSees(e *env) {
	e.put("a", "b")
	e.one(alice, "a")
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueuePaused))
	e.rest([]dispatch.Hint{hint(queue, -1)}, hint(queue, lease)) // the sweep goes on
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueueRunning))
	e.rest([]dispatch.Hint{hint(queue, lease)}, hint(queue, 0))
	e.rest([]dispatch.Hint{hint("other", -1)})
	e.noted(time.Hour, hint(queue, 0))
}

func lookSays(e *env) {
	look := func(want ...dispatch.Hint) {
		e.Helper()
		got, err := e.store.Look(e.ctx, []string{queue, "none", "empty"})
		e.ok(err)
		if len(got)+len(want) > 0 {
			equal(e, "looked", got, want)
		}
	}
	_, err := e.store.CreateQueue(e.ctx, dispatch.Queue{Name: "empty"})
	e.ok(err)
	look()
	e.enqueue(submit("a", after(time.Second)))
	look(hint(queue, time.Second))
	e.advance(time.Minute)
	look(hint(queue, 0))
	l := e.one(alice, "a")
	look(hint(queue, lease))
	e.advance(2 * lease)
	look(hint(queue, 0))
	e.applied(alice, ended(l, dispatch.Retry, 0))
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueuePaused))
	look()
	e.ok(e.store.SetState(e.ctx, queue, dispatch.QueueRunning))
	look(hint(queue, 0))
	e.applied(alice, ended(e.one(alice, "a"), dispatch.Dead, time.Hour))
	look()
}

func lookRepairs(e *env) {
	look := func() {
		e.Helper()
		_, err := e.store.Look(e.ctx, []string{queue, "none"})
		e.ok(err)
	}
	e.enqueue(submit("a", after(time.Second)))
	look()
	e.noted(time.Hour, hint(queue, time.Second))
	e.rest([]dispatch.Hint{hint(queue, 0)})
	look()
	e.noted(time.Hour, hint(queue, 0)) // a note that comes too soon stays
	e.put("b")
	e.rest([]dispatch.Hint{hint(queue, time.Minute)}, hint(queue, 0))
	e.one(alice, "b")
	look()
	e.noted(time.Hour, hint(queue, 0))
}

// restAgainstEnqueue: whoever enqueues while another takes the note away finds the note, or is found.
func restAgainstEnqueue(e *env) {
	for i := range 60 {
		name := fmt.Sprint("q", i%7)
		id := fmt.Sprint("t", i)
		var busy []dispatch.Hint
		var wait sync.WaitGroup
		wait.Go(func() {
			r, err := e.store.Enqueue(e.ctx, name, []dispatch.Submission{submit(id)}, dispatch.EnqueueOptions{})
			if err == nil && r.Moved {
				err = e.store.Announce(e.ctx, []dispatch.Hint{hint(name, r.Wait)})
			}
			if err != nil {
				e.Error(err)
			}
		})
		wait.Go(func() {
			var err error
			if busy, err = e.store.Rest(e.ctx, []dispatch.Hint{hint(name, -1)}); err != nil {
				e.Error(err)
			}
		})
		wait.Wait()
		noted, err := e.store.Hints(e.ctx, 0)
		e.ok(err)
		if all := append(busy, noted...); !slices.Contains(all, hint(name, 0)) {
			e.Fatalf("round %d: a due task of queue %s is known to nobody: %v", i, name, all)
		}
		r := e.send(dispatch.ClaimRequest{Queue: name, Worker: alice, Seq: int64(i + 1), Budget: 9, Grace: grace})
		equal(e, "leased", leasedIDs(r.Leased), []string{id})
		e.settleAs(dispatch.SettleRequest{Queue: name, Worker: alice, Items: []dispatch.Settlement{
			ended(r.Leased[0], dispatch.Succeeded, 0)}})
		e.rest([]dispatch.Hint{hint(name, -1)})
	}
}
