package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

var leadershipCases = []testcase{
	{"one leads and others do not", oneLeads},
	{"of many at once one wins", oneOfManyWins},
	{"one worker that acquires many times at once keeps what it has", acquireManyTimes},
	{"a leader acquires again", leaderAcquiresAgain},
	{"a leadership ends", leadershipEnds},
	{"renewing brings nothing back", renewNeverRevives},
	{"the leader is read with its row", leaderIsRead},
	{"terms rise", termsRise},
	{"nobody begins the term of another", termOfAnother},
	{"what cannot lead is refused", leadershipIsChecked},
}

// badInput demands an error about bad input.
func (e *env) badInput(what string, err error) {
	e.Helper()
	var field *dispatch.FieldError
	if !errors.As(err, &field) {
		e.Errorf("%s: got error %v, want a *dispatch.FieldError", what, err)
	}
}

func (e *env) acquires(id cluster.WorkerID, ttl time.Duration, want bool) {
	e.Helper()
	got, err := e.store.AcquireLeadership(e.ctx, id, ttl)
	e.ok(err)
	equal(e, "acquired by "+string(id), got, want)
}

func (e *env) renews(id cluster.WorkerID, ttl time.Duration, want bool) {
	e.Helper()
	got, err := e.store.RenewLeadership(e.ctx, id, ttl)
	e.ok(err)
	equal(e, "renewed by "+string(id), got, want)
}

// leads demands that this worker leads, or nobody.
func (e *env) leads(id cluster.WorkerID) {
	e.Helper()
	w, err := e.store.GetLeader(e.ctx)
	e.ok(err)
	switch {
	case w == nil && id != "":
		e.Errorf("nobody leads, want %s", id)
	case w != nil && w.ID != id:
		e.Errorf("%s leads, want %q", w.ID, id)
	case w != nil && (!w.IsLeader || w.LeaderUntil == nil):
		e.Errorf("the leader is %+v", *w)
	}
}

// expires waits until nobody leads. A leadership ends by the clock of the server, which in some stores is the real one.
func (e *env) expires(ttl time.Duration) {
	e.Helper()
	for range 1000 {
		w, err := e.store.GetLeader(e.ctx)
		e.ok(err)
		if w == nil {
			return
		}
		e.advance(ttl)
		pause, cancel := context.WithTimeout(e.ctx, ttl/5)
		<-pause.Done()
		cancel()
	}
	e.Fatal("the leadership does not end")
}

func oneLeads(e *env) {
	e.leads("")
	e.renews(alice, time.Hour, false)
	e.acquires(alice, time.Hour, true)
	e.leads(alice)
	e.acquires(bob, time.Hour, false)
	e.renews(bob, time.Hour, false)
	e.leads(alice)
	e.renews(alice, time.Hour, true)
	e.acquires(bob, time.Hour, false)
	e.leads(alice)
}

func oneOfManyWins(e *env) {
	var wait sync.WaitGroup
	var mu sync.Mutex
	var winners []cluster.WorkerID
	for i := range 50 {
		wait.Go(func() {
			id := cluster.WorkerID(fmt.Sprint("w-", i))
			won, err := e.store.AcquireLeadership(e.ctx, id, time.Hour)
			if err != nil {
				e.Error(err)
			}
			if won {
				mu.Lock()
				winners = append(winners, id)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if len(winners) != 1 {
		e.Fatalf("%v have won", winners)
	}
	e.leads(winners[0])
}

// acquireManyTimes: a call that comes too late must not undo the one that has won, which has the same name.
func acquireManyTimes(e *env) {
	var wait sync.WaitGroup
	var lost atomic.Int64
	for range 20 {
		wait.Go(func() {
			if won, err := e.store.AcquireLeadership(e.ctx, alice, time.Hour); err != nil || !won {
				lost.Add(1)
			}
		})
	}
	wait.Wait()
	equal(e, "tries that failed", lost.Load(), 0)
	e.leads(alice)
	e.acquires(bob, time.Hour, false)
}

func leaderAcquiresAgain(e *env) {
	e.acquires(alice, time.Minute, true)
	e.acquires(alice, time.Hour, true)
	w, err := e.store.GetLeader(e.ctx)
	e.ok(err)
	if left := w.LeaderUntil.Sub(e.now()); left < 50*time.Minute || left > time.Hour {
		e.Errorf("%v are left of an hour", left)
	}
}

const brief = 200 * time.Millisecond

func leadershipEnds(e *env) {
	e.acquires(alice, brief, true)
	e.expires(brief)
	e.acquires(bob, time.Hour, true)
	e.leads(bob)
	e.acquires(alice, time.Hour, false)
}

func renewNeverRevives(e *env) {
	e.acquires(alice, brief, true)
	e.expires(brief)
	for range 2 {
		e.renews(alice, time.Hour, false)
		e.leads("")
	}
	e.acquires(bob, time.Hour, true)
	e.renews(alice, time.Hour, false)
	e.leads(bob)
}

func leaderIsRead(e *env) {
	e.acquires(alice, time.Hour, true)
	w, err := e.store.GetLeader(e.ctx)
	e.ok(err)
	if w == nil || w.LeaderUntil == nil {
		e.Fatalf("leader without a row: %+v", w)
	}
	equal(e, "leader without a row", *w, cluster.Worker{ID: alice, IsLeader: true, LeaderUntil: w.LeaderUntil})
	e.register(fullWorker(alice))
	e.join(bob)
	want := e.worker(alice)
	equal(e, "leads", want.IsLeader, true)
	w, err = e.store.GetLeader(e.ctx)
	e.ok(err)
	want.LeaderUntil, w.LeaderUntil = nil, nil // it moves with the real clock where the store's stands still
	equal(e, "leader", *w, *want)
	equal(e, "other", e.worker(bob).IsLeader, false)
}

func (e *env) begin(id cluster.WorkerID) int64 {
	e.Helper()
	term, err := e.store.BeginTerm(e.ctx, id)
	e.ok(err)
	return term
}

func termsRise(e *env) {
	last := e.begin(alice) // a store that knows of no leader believes it
	if now := e.now().UnixMilli(); last < now {
		e.Errorf("term %d is below the clock, %d", last, now)
	}
	for i := range 20 {
		id := cluster.WorkerID(fmt.Sprint("w-", i))
		e.acquires(id, time.Hour, true)
		term := e.begin(id)
		if term <= last {
			e.Fatalf("term %d after %d", term, last)
		}
		last = term
		e.ok(e.store.DeregisterWorker(e.ctx, id))
		e.advance(time.Duration(i-10) * time.Second) // the clock may go back
	}
}

func termOfAnother(e *env) {
	e.acquires(alice, time.Hour, true)
	first := e.begin(alice)
	_, err := e.store.BeginTerm(e.ctx, bob)
	e.fails("begin", err, dispatch.ErrLeadershipLost)
	if next := e.begin(alice); next <= first {
		e.Errorf("term %d after %d", next, first)
	}
}

func leadershipIsChecked(e *env) {
	for _, ttl := range []time.Duration{-time.Second, 0, 9 * time.Millisecond} {
		_, err := e.store.AcquireLeadership(e.ctx, alice, ttl)
		e.badInput("acquire", err)
		_, err = e.store.RenewLeadership(e.ctx, alice, ttl)
		e.badInput("renew", err)
	}
	for _, id := range []cluster.WorkerID{"", "a b"} {
		_, err := e.store.AcquireLeadership(e.ctx, id, time.Hour)
		e.badInput("acquire", err)
		_, err = e.store.RenewLeadership(e.ctx, id, time.Hour)
		e.badInput("renew", err)
		_, err = e.store.BeginTerm(e.ctx, id)
		e.badInput("begin", err)
	}
	e.leads("")
}
