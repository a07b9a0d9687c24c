package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch/internal/redistest"
	"github.com/dispatchkit/dispatch/redisstore"
)

// rig is a worker process and a flow of tasks for it, with a proxy between them and Redis. Tasks have the default
// Timeout of 10 minutes, so whatever waits for the end of a lease is seen as stuck.
type rig struct {
	*testing.T
	server *redistest.Server
	proxy  *proxy
	raw    redis.UniversalClient
	store  *redisstore.Store // past the proxy
	ledger *ledger
	worker *process
	flow   *flow
}

var rigQueues = []string{"mail", "push", "sms"}

func newRig(t *testing.T, c redistest.Config) *rig {
	t.Helper()
	redistest.Require(t, redistest.Single)
	server, err := redistest.Launch(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	r := &rig{T: t, server: server, proxy: newProxy(t, server.Addr()), raw: openRedis(t, server.Addr()), ledger: newLedger()}
	r.store, _ = openStore(t, server.URL())
	r.worker = spawn(t, r.ledger, settings{
		URL: r.proxy.url(), Behaviour: "sleep", Work: 5 * time.Millisecond, Concurrency: 16,
	})
	_, client := openStore(t, r.proxy.url())
	r.flow = startFlow(t, client, rigQueues...)
	eventually(t, 10*time.Second, "tasks flow", func() bool { return r.ledger.totalStarts() >= 50 })
	return r
}

// repeatedly does something every 100 ms for a while.
func (r *rig) repeatedly(d time.Duration, do func()) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); <-tick.C {
		do()
	}
}

func (r *rig) command(args ...string) {
	r.Helper()
	if _, err := r.server.Command(args...); err != nil {
		r.Fatalf("%v: %v", args, err)
	}
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// The scripts, told apart by the keys and the channel that they name.
var scriptMarks = map[string][]string{
	"announce": {"dispatch:{~}:wake"},
	"claim":    {":claimed:"},
	"enqueue":  {":due", ":tasks", ":names", ":meta"},
	"settle":   {":settled:"},
}

// runs says whether a request runs a script.
func runs(request []byte, script string) bool {
	if script == "enqueue" && bytes.Contains(request, []byte(":leased")) {
		return false
	}
	for _, mark := range scriptMarks[script] {
		if !bytes.Contains(request, []byte(mark)) {
			return false
		}
	}
	return bytes.Contains(bytes.ToLower(request[:min(len(request), 40)]), []byte("eval"))
}

// loseReplies drops the reply to every third run of a script.
func (r *rig) loseReplies(script string, d time.Duration) {
	n := 0
	before := r.proxy.dropped.Load()
	r.proxy.lose(func(request []byte) bool {
		if !runs(request, script) {
			return false
		}
		n++
		return n%3 == 0
	}, d)
	if lost := r.proxy.dropped.Load() - before; lost < 5 {
		r.Errorf("%d replies to %s were lost, which proves nothing", lost, script)
	} else {
		r.Logf("%d replies to %s were lost", lost, script)
	}
}

// A live dispatcher outlives each outage: it goes on by itself, nothing acknowledged is lost, nothing is left waiting
// for the end of a lease, and nothing burns meanwhile.
func TestOutages(t *testing.T) {
	t.Parallel()
	const d = 3 * time.Second
	for _, tc := range []struct {
		name     string
		server   redistest.Config
		outage   func(*rig)
		loses    bool // the server forgets what it had
		repeats  bool // an enqueue whose answer was lost may be repeated after its task has run, and stores it again
		noErrors bool // callers must not notice
		dials    int  // the most per second; 0 is 20
	}{
		{name: "server hangs", outage: func(r *rig) {
			r.must(r.server.Pause())
			lasts(d)
			r.must(r.server.Resume())
		}, repeats: true, noErrors: true},
		{name: "server restarts empty", outage: func(r *rig) {
			r.server.Kill()
			lasts(d)
			r.must(r.server.Restart())
		}, loses: true},
		{name: "server crashes and loads for long", outage: func(r *rig) {
			for range 100 {
				r.command(append([]string{"MSET"}, slices.Repeat([]string{"filler", "x"}, 40)...)...)
			}
			for range 40 {
				r.command("EVAL", "for i = 1, 100 do redis.call('SET', 'filler:' .. i, i) end", "0")
			}
			r.server.Kill()
			begun := time.Now()
			r.must(r.server.Restart())
			r.Logf("the server loaded for %.1f s", time.Since(begun).Seconds())
		}, server: redistest.Config{AOF: true, Args: []string{"--key-load-delay", "250"}}, repeats: true},
		{name: "connections are cut", outage: func(r *rig) {
			r.repeatedly(d, r.proxy.cut)
		}, repeats: true, dials: 300},
		{name: "clients are killed", outage: func(r *rig) {
			r.repeatedly(d, func() {
				r.command("CLIENT", "KILL", "TYPE", "normal")
				r.command("CLIENT", "KILL", "TYPE", "pubsub")
			})
		}, repeats: true, dials: 300},
		{name: "replies to claims are lost", outage: func(r *rig) { r.loseReplies("claim", d) }, noErrors: true, dials: 200},
		{name: "replies to settles are lost", outage: func(r *rig) { r.loseReplies("settle", d) }, noErrors: true, dials: 200},
		{name: "replies to enqueues are lost", outage: func(r *rig) { r.loseReplies("enqueue", d) }, noErrors: true, repeats: true, dials: 200},
		{name: "replies to announcements are lost", outage: func(r *rig) {
			// The first task of a queue is announced for sure; those of the others are not while they are never empty.
			n := 0
			r.flow.lanes.Go(func() { r.repeatedly(d, func() { n++; r.flow.enqueue(fmt.Sprint("first-", n)) }) })
			r.loseReplies("announce", d)
		}, noErrors: true, dials: 200},
		{name: "black hole", outage: func(r *rig) { r.proxy.blackHole(5 * time.Second) }, repeats: true},
		{name: "connections are refused", outage: func(r *rig) { r.proxy.refuse(r, d) }, repeats: true},
		{name: "network is slow", outage: func(r *rig) { r.proxy.slow(100*time.Millisecond, d) }, noErrors: true},
		{name: "scripts are flushed", outage: func(r *rig) {
			r.repeatedly(d, func() { r.command("SCRIPT", "FLUSH") })
		}, noErrors: true},
		{name: "server is read-only", outage: func(r *rig) {
			r.command("REPLICAOF", "127.0.0.1", "1")
			lasts(d)
			r.command("REPLICAOF", "NO", "ONE")
		}, noErrors: true, dials: 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, tc.server)
			goroutines := r.worker.countGoroutines()
			normal := 0.0 // of the busiest of some moments: what else the machine does may have slowed the flow in others
			for range 4 {
				calm := r.proxy.requests.Load()
				lasts(250 * time.Millisecond)
				normal = max(normal, 4*float64(r.proxy.requests.Load()-calm))
			}
			begun, dials, requests, cpu := time.Now(), r.proxy.dials.Load(), r.proxy.requests.Load(), r.worker.cpu()
			tc.outage(r)
			over := time.Now()
			took := over.Sub(begun).Seconds()
			dialRate := float64(r.proxy.dials.Load()-dials) / took
			requestRate := float64(r.proxy.requests.Load()-requests) / took
			burnt := (r.worker.cpu() - cpu).Seconds() / took

			var recovered time.Duration
			eventually(t, 20*time.Second, "tasks flow again", func() bool {
				recovered = r.flow.recovered(r.ledger, over)
				return recovered > 0
			})
			lasts(500 * time.Millisecond)
			r.flow.end()
			since := time.Time{}
			if tc.loses {
				since = over
			}
			promised := r.flow.promised(since)
			if !within(15*time.Second, func() bool { return len(r.ledger.missing(promised)) == 0 }) {
				t.Errorf("%d of %d acknowledged tasks were never started", len(r.ledger.missing(promised)), len(promised))
			}
			requireEmpty(t, 15*time.Second, r.raw, r.store, rigQueues...)
			errs, classes := r.flow.errors()
			if tc.noErrors && errs > 0 {
				t.Errorf("%d calls failed: %s", errs, classes)
			}
			r.judgeDuplicates(tc.repeats)
			if n := r.ledger.outcomeCount("discarded"); n > 0 && !tc.loses {
				t.Errorf("%d outcomes were discarded", n)
			}
			limit := tc.dials
			if limit == 0 {
				limit = 20
			}
			// Every connection is made anew, once, whatever else.
			if (dialRate-float64(limit))*took > 100 || requestRate > 2*normal+500 || burnt > 0.9 {
				t.Errorf("a hot loop: %.0f dials/s (at most %d), %.0f requests/s (%.0f before), %.0f %% of a core",
					dialRate, limit, requestRate, normal, 100*burnt)
			}
			after := r.settledGoroutines(goroutines)
			t.Logf("%.1f s of outage: %.0f dials/s, %.0f requests/s (%.0f before), %.0f %% of a core; again at work after %d ms; %d acknowledged, %d calls failed %s; slowest call %d ms; %d ran twice; goroutines %d → %d; %s",
				took, dialRate, requestRate, normal, 100*burnt, recovered.Milliseconds(), len(promised), errs, classes,
				r.flow.slowest.Milliseconds(), len(r.ledger.duplicates()), goroutines, after, r.ledger.summary())
		})
	}
}

// judgeDuplicates: no lease has ended in these tests, so a task runs twice only if it was stored twice.
func (r *rig) judgeDuplicates(repeats bool) {
	r.Helper()
	for _, id := range r.ledger.duplicates() {
		attempts := ""
		for _, s := range r.ledger.startsOf(id) {
			attempts += " " + s.due.Format("05.000") + "#" + string(rune('0'+s.attempt))
		}
		if !repeats || strings.Trim(attempts, " 0123456789.#") != "" || strings.Contains(attempts, "#2") {
			r.Errorf("task %s ran twice, as (due, attempt)%s; outcomes %+v", id, attempts, r.ledger.outcomesOf(id))
		}
	}
}

// settledGoroutines waits until the worker has hardly more goroutines than before.
func (r *rig) settledGoroutines(before int) int {
	r.Helper()
	n := 0
	if !within(10*time.Second, func() bool {
		n = r.worker.countGoroutines()
		return n <= before+5
	}) {
		r.Errorf("the worker has %d goroutines, and had %d before the outage", n, before)
	}
	return n
}
