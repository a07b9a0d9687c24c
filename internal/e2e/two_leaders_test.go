package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// Two processes both take themselves for the leader, again and again. Each tick fires once, no limit is doubled, and no
// task is lost.
func TestTwoLeaders(t *testing.T) {
	t.Parallel()
	length := 5 * time.Second
	if long {
		length = 30 * time.Second
	}
	const rate, burst, entry = 20, 10, "every-second"
	s := fleetSettings()
	s.Elector, s.Work, s.Concurrency = always, 5*time.Millisecond, 50
	f := newFleet(t, s, 2)
	if _, err := f.client.EnsureQueue(t.Context(), dispatch.Queue{Name: "limited", Rate: rate, Burst: burst}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "both have led", func() bool {
		return !f.procs[0].role().since.IsZero() && !f.procs[1].role().since.IsZero()
	})
	if err := f.client.Schedule(t.Context(), dispatch.Entry{Name: entry, Spec: "@every 1s", Task: workTask("ticks")}); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	limited := enqueueMany(t, f.client, int(length.Seconds()*rate)+burst, workTask("limited"))
	flow := startFlow(t, f.client, "mail", "push")
	lasts(length)
	flow.end()
	if err := f.client.PauseEntry(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	ids := flow.promised(time.Time{})
	ids = append(ids, limited...)
	eventually(t, 15*time.Second, "all tasks have started", func() bool { return len(f.ledger.missing(ids)) == 0 })
	took := time.Since(begun)
	requireEmpty(t, 10*time.Second, f.raw, f.store, "mail", "push", "limited", "ticks")
	f.requireOneAttempt(ids, nil)
	requireTicks(f, entry, "ticks", begun.Add(time.Second), ended.Add(-2*time.Second))
	ticks := f.ledger.startsIn("ticks")
	for id, starts := range ticks {
		if len(starts) != 1 {
			t.Errorf("tick %s: %s", id, describe(starts))
		}
	}
	starts := f.ledger.startsIn("limited")
	if got := burstOf(claimTimes(starts), rate); got > burst {
		t.Errorf("some window has %.2f attempts more than its rate of %d allows; the burst is %d", got, rate, burst)
	}
	terms := 0
	for _, p := range f.procs {
		terms += strings.Count(p.errors.all(), "dispatch: leads")
	}
	both := bothLed(f.procs[0], f.procs[1])
	if terms < 3 || both == 0 {
		t.Errorf("%d terms in %v, and two leaders for %v, which is no dispute", terms, length, both)
	}
	t.Logf("%d terms in %.1f s, two leaders for %.2f s of them; %d ticks, each once; %d limited tasks in %.1f s, at most %d in a second, burst %.2f of %d by their claims, %.2f by their starts; %s",
		terms, took.Seconds(), both.Seconds(), len(ticks), len(limited), took.Seconds(), mostIn(claimTimes(starts), time.Second),
		burstOf(claimTimes(starts), rate), burst, burstOf(startTimes(starts), rate), f.ledger.summary())
}

// bothLed is for how long two processes have both taken themselves for the leader.
func bothLed(a, b *process) time.Duration {
	var both time.Duration
	for _, x := range a.terms() {
		for _, y := range b.terms() {
			both += max(earlier(x[1], y[1]).Sub(later(x[0], y[0])), 0)
		}
	}
	return both
}

// terms are the times in which the process took itself for the leader.
func (p *process) terms() (terms [][2]time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, r := range p.roles {
		end := time.Now()
		if i+1 < len(p.roles) {
			end = p.roles[i+1].since
		}
		if r.leads {
			terms = append(terms, [2]time.Time{r.since, end})
		}
	}
	return terms
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
