package storetest

import (
	"time"

	"github.com/dispatchkit/dispatch"
)

var extendCases = []testcase{
	{"the end of a lease moves, later or sooner", extendMoves},
	{"each lease on its own", extendSeveral},
	{"a lease that is over is extended until it is swept", extendExpired},
}

func (e *env) extend(d time.Duration, leases ...dispatch.Leased) []bool {
	e.Helper()
	var all []dispatch.Extension
	for _, l := range leases {
		all = append(all, dispatch.Extension{ID: l.Task.ID, Lease: l.Lease, For: d})
	}
	moved, err := e.store.Extend(e.ctx, queue, all)
	e.ok(err)
	return moved
}

func extendMoves(e *env) {
	e.put("a")
	l := e.one(alice, "a")
	for _, d := range []time.Duration{time.Hour, 30 * time.Second, 2 * time.Hour} {
		e.advance(time.Second)
		equal(e, "extended", e.extend(d, l), []bool{true})
		info := e.info("a", dispatch.TaskRunning)
		e.at("lease end", info.LeaseEnd, e.now().Add(d))
		equal(e, "token", info.Token, l.Lease.Token) // it is the same lease
		equal(e, "lease end of a claim", e.claim(bob, 1).LeaseEnd, d)
	}
	e.applied(alice, ended(l, dispatch.Succeeded, 0))
	equal(e, "extended after its end", e.extend(time.Hour, l), []bool{false})
}

func extendSeveral(e *env) {
	e.put("a", "b", "c")
	l := e.claimed(alice, 3, "a", "b", "c")
	e.applied(alice, ended(l[1], dispatch.Retry, 0))
	equal(e, "extended", e.extend(time.Hour, l[0], l[1], l[2], l[0]), []bool{true, false, true, true})
	e.advance(lease)
	over, _, err := e.store.ExpiredLeases(e.ctx, queue, 10)
	e.ok(err)
	equal(e, "expired", len(over), 0)
}

func extendExpired(e *env) {
	e.put("a")
	l := e.one(alice, "a")
	e.advance(lease + time.Hour)
	equal(e, "extended", e.extend(time.Minute, l), []bool{true})
	over, next, err := e.store.ExpiredLeases(e.ctx, queue, 10)
	e.ok(err)
	equal(e, "expired", len(over), 0)
	equal(e, "next", next, time.Minute)
}
