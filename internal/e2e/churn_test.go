package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// The limits of both queues that the churn is about. In one of them the tasks take so long that a place less is felt, in
// the other so short that the rate alone is.
const (
	churnRate, churnBurst, churnPlaces = 10, 10, 3
	churnQueue, briefQueue             = "limited", "brief"
)

// Processes come and are killed. The queue's limits hold all the time, over all of them, and what the dead held of its
// places is free again when it is promised.
func TestLimitsUnderChurn(t *testing.T) {
	t.Parallel()
	peak, rounds := 5, []int{2, 1} // how many are killed at once
	if long {
		peak, rounds = 8, []int{2, 1, 1, 2}
	}
	s := fleetSettings()
	s.Work, s.Concurrency, s.Ends = 250*time.Millisecond, 10, true
	f := newFleet(t, s, 1)
	queues := []string{churnQueue, briefQueue}
	for _, q := range queues {
		if _, err := f.client.EnsureQueue(t.Context(), dispatch.Queue{
			Name: q, Rate: churnRate, Burst: churnBurst, MaxConcurrent: churnPlaces,
		}); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	feed := watch(t, 200*time.Millisecond, func(ctx context.Context) {
		for _, q := range queues {
			task := workTask(q)
			if q == briefQueue {
				task.Payload = []byte("20ms")
			}
			if n, err := f.client.Counts(ctx, q); err != nil || n.Ready >= 30 {
				continue
			}
			results, err := f.client.EnqueueMany(ctx, slices.Repeat([]dispatch.Task{task}, 20))
			for _, r := range results {
				if err == nil && r.Err == nil {
					ids = append(ids, string(r.ID))
				}
			}
		}
	})
	eventually(t, 10*time.Second, "tasks flow", func() bool { return f.ledger.totalStarts() >= 30 })
	f.grow(peak - 1)
	f.awaitPlan(20 * time.Second)
	f.leader(time.Second)
	grown := time.Now()
	lasts(2 * time.Second)
	t.Logf("1 → %d processes: %.1f starts a second in the two seconds afterwards", peak, f.pace(grown))

	killed := map[*process]time.Time{}
	for _, n := range rounds {
		var candidates, victims []*process
		if len(killed) == 0 {
			candidates = append(candidates, f.leader(time.Second))
		}
		candidates = append(candidates, f.holder())
		for _, p := range append(candidates, f.procs...) {
			if len(victims) < n && !slices.Contains(victims, p) {
				victims = append(victims, p)
			}
		}
		round, leader, held := time.Now(), false, 0
		for _, p := range victims {
			leader = leader || p.role().leads
			f.drop(p)
			p.kill()
			killed[p] = time.Now()
			held += len(f.leasesOf(p, churnQueue))
		}
		limit := f.reclaimed(leader)
		var after time.Duration
		eventually(t, limit+hold+slack+catchUp, "the throughput is at the limit again", func() bool {
			var ok bool
			after, ok = f.recoveredAfter(round)
			return ok
		})
		t.Logf("%d of the processes killed, the leader among them: %v; they held %d of %d places; at the limit again after %.0f ms (limit %v + %v)",
			n, leader, held, churnPlaces, inMillis(after), limit, hold)
		if after > limit+hold+slack {
			t.Errorf("the throughput was at the limit again %v after a kill, and should be within %v", after, limit+hold)
		}
	}
	feed()
	if len(f.ledger.lostLeases()) == 0 {
		t.Error("those that were killed held nothing, which proves nothing")
	}
	requireEmpty(t, f.reclaimed(true)+20*time.Second, f.raw, f.store, queues...)
	if missing := f.ledger.awaitStarts(ids); len(missing) > 0 {
		t.Errorf("%d of %d tasks were never started", len(missing), len(ids))
	}

	for _, q := range queues {
		starts := f.ledger.startsIn(q)
		claims := claimTimes(starts)
		if got := burstOf(claims, churnRate); got > churnBurst {
			t.Errorf("queue %s: some window has %.2f attempts more than its rate of %d allows; the burst is %d", q, got, churnRate, churnBurst)
		}
		places := f.mostAtOnce(starts, killed)
		if places > churnPlaces {
			t.Errorf("queue %s: %d tasks ran at once, and %d may", q, places, churnPlaces)
		}
		t.Logf("queue %s: %d starts; burst %.2f of %d by their claims, %.2f by their starts; at most %d in a second, %d of %d at once",
			q, len(claims), burstOf(claims, churnRate), churnBurst, burstOf(startTimes(starts), churnRate),
			mostIn(claims, time.Second), places, churnPlaces)
	}
	t.Logf("%d leases were given away; %s", len(f.ledger.lostLeases()), f.ledger.summary())
}

// hold is how long a process that found all places of a queue taken leaves it alone.
const hold = time.Second

// catchUp is the time in which a recovered throughput is measured.
const catchUp = time.Second

// recoveredAfter is how long after an instant the queue's throughput is at its limit, when catchUp has shown that.
func (f *fleet) recoveredAfter(since time.Time) (time.Duration, bool) {
	times := startTimes(f.ledger.startsIn(churnQueue))
	need := int(churnRate*catchUp.Seconds()) - 1 // it is not counted from a tick of the rate
	for i, at := range times {
		if at.Before(since) {
			continue
		}
		if i+need < len(times) && times[i+need].Sub(at) <= catchUp {
			return at.Sub(since), true
		}
	}
	return 0, false
}

// pace is how many tasks a second were started since an instant.
func (f *fleet) pace(since time.Time) float64 {
	n := 0
	for _, at := range startTimes(f.ledger.startsIn(churnQueue)) {
		if at.After(since) {
			n++
		}
	}
	return float64(n) / time.Since(since).Seconds()
}

// holder waits for a process that holds leases, and returns the one with the most.
func (f *fleet) holder() *process {
	f.Helper()
	var holder *process
	eventually(f, 10*time.Second, "a process holds leases", func() bool {
		most := 0
		for _, p := range f.procs {
			if n := len(f.leasesOf(p, churnQueue)); n > most {
				holder, most = p, n
			}
		}
		return most > 0
	})
	return holder
}

// mostAtOnce is how many handlers ran at once, at the most. Those of a killed process ended with it.
func (f *fleet) mostAtOnce(starts map[string][]started, killed map[*process]time.Time) int {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, all := range starts {
		for _, s := range all {
			end := f.ledger.endOf(s)
			if at, dead := killed[s.by]; dead && end.IsZero() {
				end = at
			}
			if end.IsZero() {
				f.Errorf("nobody has said that an attempt of process %d ended", s.by.pid())
				continue
			}
			changes = append(changes, change{s.at, 1}, change{end, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.by - b.by
	})
	now, most := 0, 0
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}
