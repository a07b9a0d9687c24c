package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// leaderLoad is what three processes do while their leader goes.
type leaderLoad struct {
	*fleet
	queues []string
	ids    []string
}

func newLeaderLoad(t *testing.T, work time.Duration, concurrency int) *leaderLoad {
	t.Helper()
	tasks, s := 1500, fleetSettings()
	s.Work, s.Concurrency = work, concurrency
	if long {
		tasks, s.Work, s.Concurrency = 30_000, 2*time.Second, 1000
	}
	r := &leaderLoad{fleet: newFleet(t, s, 3)}
	leader := r.leader(20 * time.Second)
	r.awaitPlan(20 * time.Second)
	t.Logf("process %d leads", leader.pid())
	for i := range 6 {
		r.queues = append(r.queues, fmt.Sprintf("queue-%d", i))
	}
	for i := range 30 {
		r.ids = append(r.ids, enqueueMany(t, r.client, tasks/30, workTask(r.queues[i%len(r.queues)]))...)
	}
	eventually(t, 2*time.Minute, "a third of the tasks have started", func() bool { return r.ledger.distinct() >= tasks/3 })
	return r
}

// requireDone checks that all tasks were run, and nothing is left.
func (r *leaderLoad) requireDone() {
	r.Helper()
	eventually(r, 3*time.Minute, "all tasks have started", func() bool { return len(r.ledger.missing(r.ids)) == 0 })
	requireEmpty(r, time.Minute, r.raw, r.store, r.queues...)
}

// The leader is killed amid its work. Another one leads when the leadership has run out, and gives away what the dead
// one held: that is tried once more, and nothing else is.
func TestKilledLeader(t *testing.T) {
	t.Parallel()
	r := newLeaderLoad(t, 200*time.Millisecond, 25)
	victim := r.leader(time.Second)
	r.drop(victim)
	killed := time.Now()
	victim.kill()
	lasts(50 * time.Millisecond) // Redis takes in what the victim sent
	held := r.leasesOf(victim, r.queues...)
	started := r.ledger.distinct()

	s := r.settings
	next := r.leader(s.TTL + s.Retry + slack)
	led := next.role().since.Sub(killed)
	limit := r.reclaimed(true)
	eventually(t, limit+slack-time.Since(killed), "nobody holds the dead leader's leases", func() bool {
		return len(r.leasesOf(victim, r.queues...)) == 0
	})
	free := time.Since(killed)
	r.requireDone()
	eventually(t, 5*time.Second, "the new leader has told of the leases", func() bool { return len(r.ledger.lostLeases()) >= len(held) })

	if led > s.TTL+s.Retry+slack {
		t.Errorf("the next leader led after %v", led)
	}
	lost := r.ledger.lostLeases()
	for id, outcomes := range lost {
		if !held[id] || len(outcomes) != 1 || outcomes[0].by != next || outcomes[0].word != string(dispatch.Retry) {
			t.Errorf("task %s, held by the dead leader: %v, was given away: %+v", id, held[id], outcomes)
		}
	}
	again := 0
	for id := range held {
		starts := r.ledger.startsOf(id)
		again += len(starts) - 1
		if len(starts) < 1 || len(starts) > 2 || starts[len(starts)-1].attempt != 2 || starts[len(starts)-1].by == victim {
			t.Errorf("task %s, held by the dead leader: %s", id, describe(starts))
		}
	}
	r.requireOneAttempt(r.ids, held)
	if len(held) == 0 {
		t.Error("the leader held nothing, which proves nothing")
	}
	t.Logf("%d tasks; leader killed at %d; next leader %.0f ms later (TTL %v, retry %v); its %d leases free after %.0f ms (limit %v); %d ran twice; %s",
		len(r.ids), started, inMillis(led), s.TTL, s.Retry, len(held), inMillis(free), limit, again, r.ledger.summary())
}

// The leader is told to end amid its work. Another one leads at once, and no attempt is lost.
func TestStoppedLeader(t *testing.T) {
	t.Parallel()
	r := newLeaderLoad(t, 1500*time.Millisecond, 200) // the stop takes longer than another leader may
	old := r.leader(time.Second)
	r.drop(old)
	asked := time.Now()
	old.signal(syscall.SIGTERM)
	next := r.leader(r.settings.TTL + r.settings.Retry + slack)
	led := next.role().since.Sub(asked)
	if led >= time.Second {
		t.Errorf("the next leader led %v after the SIGTERM", led)
	}
	eventually(t, 30*time.Second, "the process has ended", old.gone)
	gone := time.Since(asked)
	if old.exit != nil || !strings.HasSuffix(old.stopped, "<nil>") {
		t.Errorf("the process ended with %v and said %q", old.exit, old.stopped)
	}
	r.requireDone()
	r.requireOneAttempt(r.ids, nil)
	if workers, err := r.store.ListWorkers(t.Context()); err != nil || slices.ContainsFunc(workers, old.is) {
		t.Errorf("after its stop the registry has %d workers, the old leader among them, or %v", len(workers), err)
	}
	t.Logf("next leader %.1f ms after the SIGTERM; the process was gone after %.0f ms; %s", inMillis(led), inMillis(gone), r.ledger.summary())
}
