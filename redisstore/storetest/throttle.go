package storetest

import (
	"math"
	"time"

	"github.com/dispatchkit/dispatch"
)

var throttleCases = []testcase{
	{"a congested receiver halves the rate, once a second at most", throttleHalves},
	{"the rate is not halved below its floor", throttleFloor},
	{"the rate grows by half after each ten seconds", throttleRecovers},
	{"each further answer puts off the recovery", throttleStays},
	{"a queue without a rate begins at half of what it did, and is free after a minute", throttleUnlimited},
	{"what it did before the window counts too", throttleBefore},
	{"one in twenty that asks for less is congestion, fewer are not", throttleRare},
	{"many failures are congestion, few are not", throttleFailures},
	{"failures of two windows are not added", throttleWindows},
	{"claims go by the rate in force", throttledClaims},
	{"new settings make a new beginning", throttleForgotten},
	{"outcomes without a lease say nothing", throttleFenced},
	{"a repeated settle counts once", throttleRepeated},
	{"a clock that goes back blocks nothing", throttleClock},
}

// heard settles one attempt of a queue with what receivers said.
func (e *env) heard(t dispatch.Traffic) {
	e.Helper()
	id := "traffic"
	e.put(id)
	r := e.claim(alice, 1)
	if len(r.Leased) == 0 {
		e.Fatalf("nothing was claimed: %+v", r)
	}
	e.settleAs(dispatch.SettleRequest{Queue: queue, Worker: alice, Seq: e.nextSeq("settle", queue, alice),
		Items: []dispatch.Settlement{ended(r.Leased[0], dispatch.Succeeded, 0)}, Traffic: t})
}

var busy = dispatch.Traffic{Sent: 1, Failed: 1, Congested: 1}

// goes demands a rate in force; it is kept as a whole number of microseconds.
func (e *env) goes(want float64) {
	e.Helper()
	if got := e.counts().EffectiveRate; math.Abs(got-want) > want/500 {
		e.Errorf("the rate in force is %v, want %v", got, want)
	}
}

func throttleHalves(e *env) {
	e.create(dispatch.Queue{Rate: 800, Burst: 500})
	e.goes(800)
	e.heard(busy)
	e.goes(400)
	e.heard(busy)
	e.advance(999 * time.Millisecond)
	e.heard(busy)
	e.goes(400)
	e.advance(time.Millisecond)
	e.heard(busy)
	e.goes(200)
	q, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	equal(e, "settings", q.Rate, 800)
}

func throttleFloor(e *env) {
	for rate, floor := range map[float64]float64{1000: 100, 0.5: 0.1, 0.05: 0.05} {
		e.create(dispatch.Queue{Rate: rate, Burst: 500})
		for range 6 {
			e.advance(time.Second)
			e.heard(busy)
		}
		e.goes(floor)
		e.ok(e.store.DeleteQueue(e.ctx, queue))
	}
}

func throttleRecovers(e *env) {
	e.create(dispatch.Queue{Rate: 800, Burst: 500})
	for range 3 {
		e.heard(busy)
		e.advance(time.Second)
	}
	e.goes(100)
	e.advance(9*time.Second - time.Millisecond)
	e.goes(100)
	e.advance(time.Millisecond)
	for _, want := range []float64{150, 225, 337.5, 506.25, 759.4, 800, 800} {
		e.goes(want)
		e.advance(10 * time.Second)
	}
	e.advance(24 * time.Hour)
	e.heard(dispatch.Traffic{Sent: 1})
	e.goes(800)
}

func throttleStays(e *env) {
	e.create(dispatch.Queue{Rate: 100, Burst: 500})
	e.heard(busy)
	e.goes(50)
	e.advance(500 * time.Millisecond)
	e.heard(busy)
	e.advance(9900 * time.Millisecond)
	e.goes(50)
	e.advance(100 * time.Millisecond)
	e.goes(75)
	e.heard(busy) // what has grown is halved
	e.goes(37.5)
}

func throttleUnlimited(e *env) {
	e.put("a")
	e.goes(0)
	e.heardNothing("a")
	e.heard(dispatch.Traffic{Sent: 500})
	e.advance(2 * time.Second)
	e.heard(dispatch.Traffic{Sent: 500, Failed: 300, Congested: 300})
	e.goes(250) // 1,000 in 2 s
	for range 5 {
		e.advance(time.Second)
		e.heard(busy)
	}
	e.goes(50) // a tenth
	e.advance(10 * time.Second)
	e.goes(75)
	e.advance(50*time.Second - time.Millisecond)
	e.goes(50 * math.Pow(1.5, 5))
	e.advance(time.Millisecond)
	e.goes(0)
	e.heard(busy) // nothing was sent for so long
	e.goes(5)     // one in a tenth of a second
}

func throttleBefore(e *env) {
	e.put("a")
	e.heardNothing("a")
	e.heard(dispatch.Traffic{Sent: 1000})
	e.advance(10 * time.Second)
	e.heard(busy)
	e.goes(0) // the first of a window says nothing alone
	e.heard(dispatch.Traffic{Sent: 60, Failed: 60, Congested: 60})
	e.goes(305) // 61 in a tenth of a second
	e.ok(e.store.DeleteQueue(e.ctx, queue))
	e.heard(dispatch.Traffic{Sent: 1000})
	e.advance(20 * time.Second)
	e.heard(busy)
	e.goes(5)
}

func throttleRare(e *env) {
	e.heard(dispatch.Traffic{Sent: 20})
	e.heard(busy)
	e.goes(0)
	e.heard(busy)
	e.goes(110) // two of 22
	e.ok(e.store.DeleteQueue(e.ctx, queue))
	for range 5 { // one in a hundred slows nobody down, and what is seen later counts more than a poor beginning
		e.heard(dispatch.Traffic{Sent: 100, Failed: 1, Congested: 1})
		e.advance(time.Second)
	}
	e.goes(0)
	for range 30 {
		e.heard(dispatch.Traffic{Sent: 100, Failed: 1, Congested: 1})
		e.heard(dispatch.Traffic{Sent: 100})
		e.advance(time.Second)
	}
	e.goes(0)
	e.ok(e.store.DeleteQueue(e.ctx, queue))
	e.heard(busy)
	e.goes(5)
	e.advance(time.Second)
	e.heard(dispatch.Traffic{Sent: 999, Failed: 999, Congested: 999})
	e.goes(100) // a tenth of what it does now is more than half of what it did
}

// heardNothing ends a task of which receivers know nothing.
func (e *env) heardNothing(id string) {
	e.Helper()
	e.applied(alice, ended(e.one(alice, id), dispatch.Succeeded, 0))
}

func throttleFailures(e *env) {
	e.create(dispatch.Queue{Rate: 800, Burst: 500})
	e.heard(dispatch.Traffic{Sent: 19, Failed: 19})
	e.goes(800) // too few to tell
	e.heard(dispatch.Traffic{Sent: 19})
	e.goes(800) // half of them
	e.heard(dispatch.Traffic{Sent: 2, Failed: 2})
	e.goes(400)
}

func throttleWindows(e *env) {
	e.create(dispatch.Queue{Rate: 800, Burst: 500})
	e.heard(dispatch.Traffic{Sent: 19, Failed: 19})
	e.advance(10 * time.Second)
	e.heard(dispatch.Traffic{Sent: 19, Failed: 19})
	e.goes(800)
	e.heard(dispatch.Traffic{Sent: 1, Failed: 1})
	e.goes(400)
}

func throttledClaims(e *env) {
	e.heard(dispatch.Traffic{Sent: 3})
	e.advance(time.Second)
	e.heard(busy)
	e.goes(2)
	e.fill(40)
	e.advance(time.Second)
	r := e.claim(alice, 30)
	equal(e, "leased", len(r.Leased), 10) // the least burst
	equal(e, "block", r.Block, dispatch.BlockedByRate)
	equal(e, "wait", r.Wait, 500*time.Millisecond)
	e.advance(time.Second)
	equal(e, "a second later", len(e.claim(alice, 30).Leased), 2)
	e.advance(time.Minute)
	r = e.claim(alice, 30)
	equal(e, "free again", len(r.Leased), 28)
	equal(e, "block", r.Block, "")
}

func throttleForgotten(e *env) {
	e.create(dispatch.Queue{Rate: 800, Burst: 500})
	e.heard(busy)
	e.change(func(q *dispatch.Queue) { q.Rate = 600 })
	e.goes(600)
	e.heard(busy)
	e.change(func(q *dispatch.Queue) { q.Rate = 0 })
	e.goes(0)
}

func throttleFenced(e *env) {
	e.create(dispatch.Queue{Rate: 800, Burst: 500})
	e.put("a")
	l := e.one(alice, "a")
	e.applied(alice, ended(l, dispatch.Succeeded, 0))
	e.settleAs(dispatch.SettleRequest{Queue: queue, Worker: bob, Seq: 1,
		Items: []dispatch.Settlement{ended(l, dispatch.Succeeded, 0)}, Traffic: busy})
	e.goes(800)
}

func throttleRepeated(e *env) {
	e.create(dispatch.Queue{Rate: 800, Burst: 500})
	e.put("a")
	r := dispatch.SettleRequest{Queue: queue, Worker: alice, Seq: 1, Traffic: dispatch.Traffic{Sent: 12, Failed: 12},
		Items: []dispatch.Settlement{ended(e.one(alice, "a"), dispatch.Succeeded, 0)}}
	e.settleAs(r)
	e.settleAs(r)
	e.goes(800) // 24 would be enough
}

func throttleClock(e *env) {
	e.create(dispatch.Queue{Rate: 800, Burst: 500})
	e.advance(time.Hour)
	e.heard(busy)
	e.goes(400)
	e.advance(-30 * time.Minute)
	e.goes(800)
	e.claim(alice, 1)
	e.advance(time.Second)
	e.heard(busy)
	e.goes(400)
}
