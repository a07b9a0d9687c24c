package storetest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
)

var settleCases = []testcase{
	{"a task that succeeded is gone", succeededIsGone},
	{"a task that succeeded is retained for a while", succeededIsRetained},
	{"a task is retried after a wait", retriedLater},
	{"a task that is dead is retained for a while", deadIsRetained},
	{"a task that is dead is gone without retention", deadIsGone},
	{"a released task is not counted and keeps its progress", releasedKeepsProgress},
	{"progress replaces progress unless it is nil", progressReplaces},
	{"progress is gone with its task", progressIsGone},
	{"all of a long progress comes back", progressComesBack},
	{"moved and wait tell of tasks that come back", movedBySettle},
	{"each outcome on its own", mixedOutcomes},
	{"the same task twice in one call counts once", sameTaskTwice},
	{"repeated with the same number it answers the same", sameSettleNumber},
	{"number zero is not remembered", settleNumberZero},
	{"a lease that is over is current until it is swept", settleOfExpired},
	{"whoever settles need not hold the lease", settleForAnother},
	{"counts add up", countsAddUp},
}

// progress is what n attempts have left.
func progress(at time.Time, n int) dispatch.Progress {
	p := dispatch.Progress{Attempts: n, FirstAttempt: at, LastAttempt: at.Add(time.Duration(n-1) * time.Second)}
	for i := range n {
		p.History = append(p.History, dispatch.AttemptRecord{
			Number: i + 1, StartedAt: at.Add(time.Duration(i) * time.Second), Duration: time.Duration(i*150) * time.Millisecond,
			Worker: alice, Token: int64(1<<52 + i), Status: 500 + i, ErrorKind: dispatch.KindNon2xx,
			Error: fmt.Sprintf("attempt %d: \x00\xff ü", i+1),
		})
	}
	return p
}

// sameProgress compares two, whatever the location of their times.
func (e *env) sameProgress(what string, got, want dispatch.Progress) {
	e.Helper()
	equal(e, what, inUTC(got), inUTC(want))
}

func inUTC(p dispatch.Progress) dispatch.Progress {
	p.FirstAttempt, p.LastAttempt = p.FirstAttempt.UTC(), p.LastAttempt.UTC()
	history := p.History
	p.History = nil
	for _, a := range history {
		a.StartedAt = a.StartedAt.UTC()
		p.History = append(p.History, a)
	}
	return p
}

func succeededIsGone(e *env) {
	e.put("a")
	r := e.applied(alice, ended(e.one(alice, "a"), dispatch.Succeeded, 0))
	equal(e, "moved", r.Moved, false)
	e.gone("a")
	equal(e, "counts", e.counts(), dispatch.Counts{TotalSucceeded: 1})
	e.put("a") // an ID that is gone is free
	e.one(alice, "a")
}

func succeededIsRetained(e *env) {
	e.put("a")
	want := progress(e.now(), 1)
	s := ended(e.one(alice, "a"), dispatch.Succeeded, time.Hour)
	s.Progress = &want
	e.applied(alice, s)
	info := e.info("a", dispatch.TaskSucceeded)
	e.at("expires", info.ExpiresAt, e.now().Add(time.Hour))
	e.sameProgress("progress", info.Progress, want)
	equal(e, "counts", e.counts(), dispatch.Counts{Succeeded: 1, TotalSucceeded: 1})
	e.claimed(alice, 10)
}

func retriedLater(e *env) {
	e.put("a")
	want := progress(e.now(), 1)
	s := ended(e.one(alice, "a"), dispatch.Retry, 1500*time.Microsecond)
	s.Progress = &want
	e.applied(alice, s)
	info := e.info("a", dispatch.TaskWaiting)
	e.sameProgress("progress", info.Progress, want)
	equal(e, "leased by", info.LeasedBy, "")
	equal(e, "token", info.Token, 0)
	equal(e, "lease end", info.LeaseEnd.IsZero(), true)
	equal(e, "counts", e.counts(), dispatch.Counts{Scheduled: 1, TotalRetried: 1})
	e.advance(time.Millisecond)
	e.claimed(alice, 10) // never early
	e.advance(time.Millisecond)
	e.sameProgress("progress", e.one(bob, "a").Progress, want)
}

func deadIsRetained(e *env) {
	e.put("a")
	want := progress(e.now(), 3)
	s := ended(e.one(alice, "a"), dispatch.Dead, time.Hour)
	s.Progress = &want
	e.applied(alice, s)
	info := e.info("a", dispatch.TaskDead)
	e.at("expires", info.ExpiresAt, e.now().Add(time.Hour))
	e.sameProgress("progress", info.Progress, want)
	equal(e, "counts", e.counts(), dispatch.Counts{Dead: 1, TotalDead: 1})
}

func deadIsGone(e *env) {
	e.put("a")
	e.applied(alice, ended(e.one(alice, "a"), dispatch.Dead, 0))
	e.gone("a")
	equal(e, "counts", e.counts(), dispatch.Counts{TotalDead: 1})
}

func releasedKeepsProgress(e *env) {
	e.put("a")
	want := progress(e.now(), 1)
	s := ended(e.one(alice, "a"), dispatch.Retry, 0)
	s.Progress = &want
	e.applied(alice, s)
	e.applied(alice, ended(e.one(alice, "a"), dispatch.Released, time.Second))
	equal(e, "counts", e.counts(), dispatch.Counts{Scheduled: 1, TotalRetried: 1})
	e.advance(time.Second)
	l := e.one(bob, "a")
	e.sameProgress("progress", l.Progress, want)
	// Unless it brings some, as when it tells of an attempt that was not made.
	want = progress(e.now(), 2)
	s = ended(l, dispatch.Released, 0)
	s.Progress = &want
	e.applied(bob, s)
	e.sameProgress("replaced", e.one(alice, "a").Progress, want)
}

func progressReplaces(e *env) {
	e.put("a")
	for i := range 3 {
		want := progress(e.now(), 3-i)
		s := ended(e.one(alice, "a"), dispatch.Retry, 0)
		s.Progress = &want
		e.applied(alice, s)
		e.sameProgress("replaced", e.info("a", dispatch.TaskWaiting).Progress, want)
		e.applied(alice, ended(e.one(alice, "a"), dispatch.Retry, 0))
		e.sameProgress("kept", e.info("a", dispatch.TaskWaiting).Progress, want)
	}
	kept := e.info("a", dispatch.TaskWaiting).Progress
	e.applied(alice, ended(e.one(alice, "a"), dispatch.Dead, time.Hour))
	e.sameProgress("kept by a dead task", e.info("a", dispatch.TaskDead).Progress, kept)
}

func progressIsGone(e *env) {
	for _, outcome := range []dispatch.Outcome{dispatch.Succeeded, dispatch.Dead} {
		e.put("a")
		for _, o := range []dispatch.Outcome{dispatch.Retry, outcome} {
			p := progress(e.now(), 1)
			s := ended(e.one(alice, "a"), o, 0)
			s.Progress = &p
			e.applied(alice, s)
		}
		e.put("a")
		l := e.one(alice, "a")
		equal(e, "progress", l.Progress, dispatch.Progress{})
		e.applied(alice, ended(l, dispatch.Succeeded, 0))
	}
}

func progressComesBack(e *env) {
	e.put("a")
	now := e.now()
	for _, want := range []dispatch.Progress{
		progress(now, 10),
		{Attempts: 1_000_000, FirstAttempt: now.Add(-10 * 366 * 24 * time.Hour), LastAttempt: now},
		{Attempts: 1, FirstAttempt: now, LastAttempt: now, History: []dispatch.AttemptRecord{{}}},
		{Attempts: 1, FirstAttempt: now, LastAttempt: now, Result: bytes.Repeat([]byte("\x00\xff r"), 16<<10)},
		{},
	} {
		s := ended(e.one(alice, "a"), dispatch.Retry, 0)
		s.Progress = &want
		e.applied(alice, s)
		e.sameProgress("progress", e.info("a", dispatch.TaskWaiting).Progress, want)
	}
}

func movedBySettle(e *env) {
	e.put("a", "b", "c")
	leased := e.claimed(alice, 3, "a", "b", "c")
	for _, step := range []struct {
		outcome dispatch.Outcome
		after   time.Duration
		moved   bool
		wait    time.Duration
	}{
		{dispatch.Retry, time.Minute, true, time.Minute},
		{dispatch.Released, time.Hour, false, time.Minute},
		{dispatch.Released, time.Second, true, time.Second},
	} {
		l := leased[0]
		leased = leased[1:]
		r := e.applied(alice, ended(l, step.outcome, step.after))
		equal(e, "moved", r.Moved, step.moved)
		equal(e, "wait", r.Wait, step.wait)
	}
	e.put("d")
	l := e.one(alice, "d")
	r := e.applied(alice, ended(l, dispatch.Succeeded, 0))
	equal(e, "moved", r.Moved, false)
}

func mixedOutcomes(e *env) {
	e.put("a", "b", "c", "d", "e")
	l := e.claimed(alice, 5, "a", "b", "c", "d", "e")
	stale := ended(l[4], dispatch.Succeeded, 0)
	stale.Lease.Fence += "x"
	r := e.settle(alice, ended(l[0], dispatch.Succeeded, 0), ended(l[1], dispatch.Retry, time.Minute), stale,
		ended(l[2], dispatch.Dead, time.Hour), ended(l[3], dispatch.Released, time.Hour))
	equal(e, "applied", r.Applied, []bool{true, true, false, true, true})
	equal(e, "wait", r.Wait, time.Minute)
	e.gone("a")
	e.info("b", dispatch.TaskWaiting)
	e.info("c", dispatch.TaskDead)
	e.info("d", dispatch.TaskWaiting)
	e.info("e", dispatch.TaskRunning)
}

func sameTaskTwice(e *env) {
	e.put("a")
	l := e.one(alice, "a")
	r := e.settle(alice, ended(l, dispatch.Retry, 0), ended(l, dispatch.Dead, time.Hour), ended(l, dispatch.Retry, 0))
	equal(e, "applied", r.Applied, []bool{true, false, false})
	equal(e, "counts", e.counts(), dispatch.Counts{Ready: 1, TotalRetried: 1})
}

func sameSettleNumber(e *env) {
	e.put("a", "b", "c")
	l := e.claimed(alice, 3, "a", "b", "c")
	lost := ended(l[1], dispatch.Succeeded, 0)
	lost.Lease.Fence += "x"
	r := dispatch.SettleRequest{Queue: queue, Worker: alice, Seq: 1, Items: []dispatch.Settlement{
		ended(l[0], dispatch.Succeeded, 0), lost, ended(l[2], dispatch.Retry, 0),
	}}
	want := []bool{true, false, true}
	equal(e, "applied", e.settleAs(r).Applied, want)
	e.one(bob, "c")
	for range 3 {
		equal(e, "applied again", e.settleAs(r).Applied, want)
	}
	e.info("c", dispatch.TaskRunning) // it is his now
	equal(e, "counts", e.counts(), dispatch.Counts{Running: 2, TotalSucceeded: 1, TotalRetried: 1})
	r.Seq = 2
	equal(e, "applied under another number", e.settleAs(r).Applied, []bool{false, false, false})
	r.Worker = bob
	equal(e, "applied by another", e.settleAs(r).Applied, []bool{false, false, false})
}

func settleNumberZero(e *env) {
	e.put("a")
	r := dispatch.SettleRequest{Queue: queue, Worker: alice, Items: []dispatch.Settlement{
		ended(e.one(alice, "a"), dispatch.Succeeded, 0),
	}}
	equal(e, "applied", e.settleAs(r).Applied, []bool{true})
	equal(e, "applied again", e.settleAs(r).Applied, []bool{false})
}

func settleOfExpired(e *env) {
	e.put("a")
	l := e.one(alice, "a")
	e.advance(24 * time.Hour)
	e.applied(alice, ended(l, dispatch.Succeeded, 0))
	e.gone("a")
}

func settleForAnother(e *env) {
	e.put("a")
	e.applied(bob, ended(e.one(alice, "a"), dispatch.Dead, time.Hour))
	e.info("a", dispatch.TaskDead)
}

func countsAddUp(e *env) {
	e.create(dispatch.Queue{})
	e.fill(12)
	e.enqueue(submit("later", after(time.Hour)))
	e.advance(11 * time.Millisecond)
	l := e.claim(alice, 9).Leased
	outcomes := []dispatch.Outcome{dispatch.Succeeded, dispatch.Succeeded, dispatch.Dead, dispatch.Retry, dispatch.Released}
	for i, o := range outcomes {
		e.applied(alice, ended(l[i], o, time.Minute))
	}
	e.applied(alice, ended(l[5], dispatch.Succeeded, 0), ended(l[6], dispatch.Retry, 0))
	equal(e, "counts", e.counts(), dispatch.Counts{Ready: 4, Scheduled: 3, Running: 2, Succeeded: 2, Dead: 1,
		TotalSucceeded: 3, TotalDead: 1, TotalRetried: 2})
}
