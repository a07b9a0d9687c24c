package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
	"github.com/dispatchkit/dispatch/redisstore"
)

// fleet is several worker processes of which one leads.
type fleet struct {
	*testing.T
	settings settings
	server   *redistest.Server
	raw      redis.UniversalClient
	store    *redisstore.Store
	client   *dispatch.Client
	ledger   *ledger
	procs    []*process // those that were not told to end
}

// The times of a fleet that is killed and stopped: the product's own in the long form, and short ones that still leave a
// process a second on a machine that does something else.
func fleetSettings() settings {
	s := settings{
		Behaviour: "sleep", Elector: elected, TTL: 1500 * time.Millisecond, Retry: 200 * time.Millisecond,
		Heartbeat: 300 * time.Millisecond, Stale: 1500 * time.Millisecond, Sweep: 300 * time.Millisecond,
	}
	if long {
		s.TTL, s.Retry = 15*time.Second, 2*time.Second
		s.Heartbeat, s.Stale, s.Sweep = 10*time.Second, 30*time.Second, 5*time.Second
	}
	return s
}

// slack is what a measurement may be off by, on a machine with few cores and much to do.
const slack = 1500 * time.Millisecond

func newFleet(t *testing.T, s settings, n int) *fleet {
	t.Helper()
	server := redistest.Start(t)
	s.URL = server.URL()
	f := &fleet{T: t, settings: s, server: server, raw: openRedis(t, server.Addr()), ledger: newLedger()}
	f.store, f.client = openStore(t, server.URL())
	f.grow(n)
	return f
}

// grow starts n more processes.
func (f *fleet) grow(n int) {
	f.Helper()
	for range n {
		f.procs = append(f.procs, spawn(f, f.ledger, f.settings))
	}
}

// drop takes a process off the list, before it is told to end.
func (f *fleet) drop(p *process) {
	f.procs = slices.DeleteFunc(f.procs, func(other *process) bool { return other == p })
}

// leader waits for a leader among the processes and returns it.
func (f *fleet) leader(limit time.Duration) *process {
	f.Helper()
	var leader *process
	eventually(f, limit, "a process leads", func() bool {
		for _, p := range f.procs {
			if p.role().leads {
				leader = p
			}
		}
		return leader != nil
	})
	return leader
}

// awaitPlan waits until the plan names as many processes as there are.
func (f *fleet) awaitPlan(limit time.Duration) {
	f.Helper()
	eventually(f, limit, "the plan names all processes", func() bool {
		plan, err := f.store.Plan(f.Context())
		return err == nil && plan != nil && len(plan.Workers) == len(f.procs)
	})
}

// reclaimed is how long after the death of a process its leases may be held, at the most.
func (f *fleet) reclaimed(leader bool) time.Duration {
	s := f.settings
	if leader {
		return max(s.Stale, s.TTL+s.Retry) + s.Sweep
	}
	return s.Stale + s.Sweep
}

// leasesOf are the tasks of a queue that a worker holds.
func (f *fleet) leasesOf(p *process, queues ...string) map[string]bool {
	f.Helper()
	held := map[string]bool{}
	for _, q := range queues {
		leases, err := f.raw.HGetAll(f.Context(), key(q, "leases")).Result()
		if err != nil {
			f.Fatal(err)
		}
		for id, l := range leases {
			if w := strings.Fields(l); len(w) > 1 && w[1] == p.workerID() {
				held[id] = true
			}
		}
	}
	return held
}

// requireOneAttempt checks that each task was started once, as its first attempt, but for those that are excepted.
func (f *fleet) requireOneAttempt(ids []string, except map[string]bool) {
	f.Helper()
	wrong := 0
	for _, id := range ids {
		s := f.ledger.startsOf(id)
		if except[id] || len(s) == 1 && s[0].attempt == 1 {
			continue
		}
		if wrong++; wrong <= 3 {
			f.Errorf("task %s: %s", id, describe(s))
		}
	}
	if wrong > 3 {
		f.Errorf("and %d others", wrong-3)
	}
	if lost := f.ledger.lostLeases(); except == nil && len(lost) > 0 {
		f.Errorf("the leases of %d tasks were given away", len(lost))
	}
}

func describe(starts []started) string {
	var parts []string
	for _, s := range starts {
		parts = append(parts, fmt.Sprintf("attempt %d by process %d at %s", s.attempt, s.by.pid(), s.at.Format("05.000")))
	}
	return fmt.Sprintf("%d starts: %s", len(starts), strings.Join(parts, ", "))
}

// watch does something again and again until the function that it returns is called, or the test ends.
func watch(t testing.TB, every time.Duration, look func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for ctx.Err() == nil {
			look(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	end = func() {
		cancel()
		group.Wait()
	}
	t.Cleanup(end)
	return end
}

// claimTimes are when the attempts of a queue's tasks were claimed, by the clock of Redis in whole milliseconds, sorted:
// their tokens tell.
func claimTimes(starts map[string][]started) []time.Time {
	var times []time.Time
	for _, all := range starts {
		for _, s := range all {
			times = append(times, time.UnixMilli(s.token/1000))
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// startTimes are when the handlers of a queue's tasks began, sorted.
func startTimes(starts map[string][]started) []time.Time {
	var times []time.Time
	for _, all := range starts {
		for _, s := range all {
			times = append(times, s.at)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// burstOf is what the windows of sorted instants hold at most above rate × their length, whatever that is. The instants
// are right to a millisecond.
func burstOf(times []time.Time, rate float64) float64 {
	worst, least := 0.0, 0.0
	for j, at := range times {
		x := rate * at.Sub(times[0]).Seconds()
		least = min(least, float64(j)-x)
		worst = max(worst, float64(j+1)-x-least-rate/1000)
	}
	return worst
}

// mostIn is the most of sorted instants in any window of a length.
func mostIn(times []time.Time, window time.Duration) int {
	most, first := 0, 0
	for j, at := range times {
		for at.Sub(times[first]) >= window {
			first++
		}
		most = max(most, j-first+1)
	}
	return most
}
