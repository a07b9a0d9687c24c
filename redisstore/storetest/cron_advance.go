package storetest

import (
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
)

var advanceCases = []testcase{
	{"an entry is advanced once to one instant", advanceOnce},
	{"an entry without a next tick is not looked at until it is changed", advanceToNever},
	{"an entry that has no plan yet is planned at the instant of its change", planAtOnce},
	{"another revision is not advanced", advanceOther},
	{"of many leaders one advances", advanceAtOnce},
	{"a leader that was followed does not advance", advanceAfterTerm},
}

func advanceOnce(e *env) {
	a := e.putEntry(entry("a"))
	e.advance(time.Minute)
	step := dispatch.EntryAdvance{Name: "a", Revision: a.Revision, Since: e.now(), Next: e.now().Add(time.Minute)}
	e.moved(step, true)
	planned := e.entry("a")
	e.at("since", planned.Since, step.Since)
	e.at("next", planned.Next, step.Next)
	equal(e, "revision", planned.Revision, a.Revision)
	equal(e, "spec", planned.Spec, a.Spec)
	e.moved(step, false)
	later := step
	later.Next = step.Next.Add(time.Hour)
	e.moved(later, false) // Since is what counts
	back := step
	back.Since = step.Since.Add(-time.Millisecond)
	e.moved(back, false)
	equal(e, "entry", e.entry("a"), planned)
	e.advance(time.Minute)
	e.due(10, "a")
	step.Since, step.Next = step.Since.Add(time.Millisecond), e.now().Add(time.Minute)
	e.moved(step, true)
	e.due(10)
}

func advanceToNever(e *env) {
	a := e.putEntry(entry("a"))
	never := dispatch.EntryAdvance{Name: "a", Revision: a.Revision, Since: e.now()}
	e.moved(never, true)
	e.moved(never, false)
	e.at("next", e.entry("a").Next, time.Time{})
	e.advance(1000 * time.Hour)
	_, wait := e.due(10)
	e.never("wait", wait)
	e.putEntry(entry("a")) // no change
	e.due(10)
	e.putEntry(entry("a", spec("1 * * * *")))
	e.due(10, "a")
	e.moved(dispatch.EntryAdvance{Name: "a", Revision: e.entry("a").Revision, Since: e.now()}, true)
	e.pauseEntry("a", true)
	e.pauseEntry("a", false)
	e.due(10, "a")
}

func planAtOnce(e *env) {
	a := e.putEntry(entry("a"))
	step := dispatch.EntryAdvance{Name: "a", Revision: a.Revision, Since: a.Since, Next: a.Since.Add(time.Minute)}
	back := step
	back.Since = a.Since.Add(-time.Millisecond)
	e.moved(back, false)
	e.moved(step, true)
	e.moved(step, false)
	_, wait := e.due(10)
	equal(e, "wait", wait, time.Minute)
}

func advanceOther(e *env) {
	old := e.putEntry(entry("a"))
	now := e.putEntry(entry("a", spec("1 * * * *")))
	for _, revision := range []int64{old.Revision, now.Revision + 1, 0} {
		e.moved(dispatch.EntryAdvance{Name: "a", Revision: revision, Since: e.now(), Next: e.now().Add(time.Hour)}, false)
	}
	equal(e, "entry", e.entry("a"), now)
	e.ok(e.store.DeleteEntry(e.ctx, "a", 0))
	e.moved(dispatch.EntryAdvance{Name: "a", Revision: now.Revision, Since: e.now(), Next: e.now().Add(time.Hour)}, false)
	_, wait := e.due(10)
	e.never("wait", wait)
	e.putEntry(entry("a"))
	e.moved(dispatch.EntryAdvance{Name: "a", Revision: now.Revision, Since: e.now(), Next: e.now().Add(time.Hour)}, false)
	e.due(10, "a")
}

func advanceAtOnce(e *env) {
	a := e.putEntry(entry("a"))
	for range 5 {
		e.advance(time.Minute)
		since := e.now()
		var wait sync.WaitGroup
		won := make([]bool, 10)
		for i := range won {
			wait.Go(func() {
				var err error
				won[i], err = e.store.AdvanceEntry(e.ctx, dispatch.EntryAdvance{
					Name: "a", Revision: a.Revision, Since: since, Next: since.Add(time.Duration(i+1) * time.Minute)})
				if err != nil {
					e.Error(err)
				}
			})
		}
		wait.Wait()
		next := e.entry("a").Next
		for i, w := range won {
			equal(e, "won", w, next.Equal(since.Add(time.Duration(i+1)*time.Minute)))
		}
	}
}

func advanceAfterTerm(e *env) {
	a := e.putEntry(entry("a"))
	first, err := e.store.BeginTerm(e.ctx, alice)
	e.ok(err)
	step := func(term int64) dispatch.EntryAdvance {
		e.advance(time.Second)
		return dispatch.EntryAdvance{Name: "a", Revision: a.Revision, Since: e.now(), Next: e.now().Add(time.Hour), Term: term}
	}
	e.moved(step(first), true)
	second, err := e.store.BeginTerm(e.ctx, bob)
	e.ok(err)
	before := e.entry("a")
	late := step(first)
	got, err := e.store.AdvanceEntry(e.ctx, late)
	e.fails("advance", err, dispatch.ErrLeadershipLost)
	equal(e, "advanced", got, false)
	equal(e, "entry", e.entry("a"), before)
	late.Term = second
	e.moved(late, true)
	e.moved(step(0), true)
}
