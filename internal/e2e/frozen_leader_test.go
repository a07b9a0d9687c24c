package e2e

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// marks is what leaders write for others to read, as it was seen all the time.
type marks struct {
	mu                   sync.Mutex
	term, plan, revision int64 // the highest term of all, and term and revision of the plan
	since                time.Time
	fallen               []string
}

// watchMarks looks at what leaders write, and notes what falls.
func watchMarks(f *fleet, entry string) *marks {
	m := &marks{}
	watch(f, 2*time.Millisecond, func(ctx context.Context) {
		term, _ := f.raw.Get(ctx, "dispatch:{~}:term").Int64()
		plan, err := f.store.Plan(ctx)
		if err != nil || plan == nil {
			return
		}
		var since time.Time
		if entry != "" {
			e, err := f.client.Entry(ctx, entry)
			if err != nil {
				return
			}
			since = e.Since
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if term < m.term || plan.Term < m.plan || plan.Term == m.plan && plan.Revision < m.revision || since.Before(m.since) {
			m.fallen = append(m.fallen, fmt.Sprintf("term %d → %d, plan %d.%d → %d.%d, entry %v → %v",
				m.term, term, m.plan, m.revision, plan.Term, plan.Revision, m.since, since))
		}
		m.term, m.plan, m.revision, m.since = term, plan.Term, plan.Revision, since
	})
	return m
}

func (m *marks) now() (term, plan int64, since time.Time, fallen []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.term, m.plan, m.since, m.fallen
}

// A leader is frozen until another one has followed, and comes back. Nothing that it writes as a leader counts, whether
// its elector notices or not.
func TestFrozenLeader(t *testing.T) {
	for _, tc := range []struct {
		name    string
		elector string
		cron    bool
	}{
		{"who notices", elected, true},
		{"whose cron writes are refused", deaf, true},
		{"whose plans are refused", deaf, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := fleetSettings()
			s.Elector, s.Stale = tc.elector, max(s.Stale, 8*time.Second) // it is not taken for dead
			s.Heartbeat = max(s.Heartbeat, time.Second)
			f := newFleet(t, s, 3)
			old := f.leader(20 * time.Second)
			f.awaitPlan(20 * time.Second)
			entry := ""
			if tc.cron {
				entry = "every-second"
				if err := f.client.Schedule(t.Context(), dispatch.Entry{Name: entry, Spec: "@every 1s", Task: workTask("ticks")}); err != nil {
					t.Fatal(err)
				}
				eventually(t, 10*time.Second, "ticks fire", func() bool { return f.ledger.distinct() >= 2 })
			}
			m := watchMarks(f, entry)
			eventually(t, 5*time.Second, "the plan is seen", func() bool { _, plan, _, _ := m.now(); return plan > 0 })
			firstTerm, _, _, _ := m.now()

			f.drop(old)
			old.signal(syscall.SIGSTOP)
			frozen := time.Now()
			next := f.leader(s.TTL + s.Retry + slack)
			led := next.role().since.Sub(frozen)
			eventually(t, 5*time.Second, "the term is higher", func() bool { term, _, _, _ := m.now(); return term > firstTerm })
			eventually(t, 10*time.Second, "the plan is the next leader's", func() bool { _, plan, _, _ := m.now(); return plan > firstTerm })
			_, _, since, _ := m.now()
			lasts(max(s.TTL+time.Second-time.Since(frozen), 0))

			old.signal(syscall.SIGCONT)
			woken := time.Now()
			if !tc.cron {
				f.settings.Elector = "" // it is only one more for the plan
				f.grow(1)
			}
			eventually(t, 15*time.Second, "the old leader follows", func() bool { return !old.role().leads })
			follows := old.role().since.Sub(woken)
			lasts(3 * time.Second) // in which it would do harm

			term, plan, later, fallen := m.now()
			for _, what := range fallen {
				t.Errorf("what leaders write has fallen: %s", what)
			}
			if !next.role().leads || old.role().leads || term <= firstTerm || plan != term {
				t.Errorf("leads: old %v, next %v; terms: first %d, then %d, the plan's %d",
					old.role().leads, next.role().leads, firstTerm, term, plan)
			}
			if tc.cron {
				if !later.After(since) {
					t.Errorf("the entry was not moved on after %v", since)
				}
				requireTicks(f, entry, "ticks", frozen.Add(-time.Second), time.Now().Add(-2*time.Second))
			}
			t.Logf("next leader %.0f ms after the freeze (TTL %v, retry %v); the old one follows %.1f ms after its thaw; %s",
				inMillis(led), s.TTL, s.Retry, inMillis(follows), f.ledger.summary())
		})
	}
}

// requireTicks checks that the ticks of an entry "@every 1s" have each made one task, and that none is missing between two
// instants.
func requireTicks(f *fleet, entry, queue string, from, to time.Time) {
	f.Helper()
	starts := f.ledger.startsIn(queue)
	for id, s := range starts {
		for i := range s {
			if s[i].attempt != i+1 {
				f.Errorf("tick %s: %s", id, describe(s))
			}
		}
	}
	missing := 0
	for at := from.Unix() + 1; at <= to.Unix(); at++ {
		if len(starts[fmt.Sprintf("%s-%d", entry, at)]) == 0 {
			missing++
		}
	}
	if missing > 0 {
		f.Errorf("%d ticks are missing between %v and %v", missing, from, to)
	}
}
