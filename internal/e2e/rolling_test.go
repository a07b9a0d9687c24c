package e2e

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// rows is what was seen of the registry.
type rows struct {
	mu     sync.Mutex
	states map[cluster.WorkerID][]cluster.WorkerState // each change once
	err    error                                      // the last one
}

// watchRows looks at the registry all the time.
func watchRows(f *fleet) (r *rows, end func()) {
	r = &rows{states: map[cluster.WorkerID][]cluster.WorkerState{}}
	return r, watch(f, 10*time.Millisecond, func(ctx context.Context) {
		workers, err := f.store.ListWorkers(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			if ctx.Err() == nil {
				r.err = err
			}
			return
		}
		listed := map[cluster.WorkerID]bool{}
		for _, w := range workers {
			listed[w.ID] = true
			r.note(w.ID, w.State)
		}
		for id := range r.states {
			if !listed[id] {
				r.note(id, "gone")
			}
		}
	})
}

func (r *rows) note(id cluster.WorkerID, s cluster.WorkerState) {
	if all := r.states[id]; len(all) == 0 || all[len(all)-1] != s {
		r.states[id] = append(all, s)
	}
}

// history is the states of a worker in the order in which they were seen.
func (r *rows) history(p *process) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var parts []string
	for _, s := range r.states[cluster.WorkerID(p.workerID())] {
		parts = append(parts, string(s))
	}
	return strings.Join(parts, " → ")
}

// A fleet is deployed anew, process by process and over again, under a flow of tasks. No attempt is lost.
func TestRollingDeploy(t *testing.T) {
	t.Parallel()
	every, length := time.Second, 8*time.Second
	s := fleetSettings()
	s.Work, s.Concurrency = 300*time.Millisecond, 105 // 240 places are in use, and a drain lasts for many looks at the registry
	if long {
		every, length = 5*time.Second, 2*time.Minute
	}
	f := newFleet(t, s, 3)
	f.leader(20 * time.Second)
	seen, end := watchRows(f)
	flow := startFlow(t, f.client, "mail", "push", "sms", "web")
	eventually(t, 10*time.Second, "tasks flow", func() bool { return f.ledger.totalStarts() >= 50 })

	var old []*process
	var leaders int
	for begun := time.Now(); time.Since(begun) < length; {
		lasts(every)
		p := f.procs[0]
		f.drop(p)
		if p.role().leads {
			leaders++
		}
		p.signal(syscall.SIGTERM)
		old = append(old, p)
		f.grow(1)
	}
	flow.end()
	for _, p := range old {
		eventually(t, 30*time.Second, "a process that was told to end is gone", p.gone)
	}
	ids := flow.promised(time.Time{})
	if missing := f.ledger.awaitStarts(ids); len(missing) > 0 {
		t.Errorf("%d of %d tasks were never started", len(missing), len(ids))
	}
	requireEmpty(t, 10*time.Second, f.raw, f.store, flow.queues...)
	lasts(100 * time.Millisecond)
	end()

	f.requireOneAttempt(ids, nil)
	if n, classes := flow.errors(); n > 0 {
		t.Errorf("%d calls failed: %s", n, classes)
	}
	if seen.err != nil {
		t.Errorf("the registry could not be read: %v", seen.err)
	}
	var drains []time.Duration
	for _, p := range old {
		if p.exit != nil || !strings.HasSuffix(p.stopped, "<nil>") {
			t.Errorf("process %d ended with %v and said %q", p.pid(), p.exit, p.stopped)
		}
		if got, want := seen.history(p), "active → draining → gone"; got != want {
			t.Errorf("process %d was seen in the registry as %q, want %q", p.pid(), got, want)
		}
		millis, _, _ := strings.Cut(p.stopped, " ")
		d, _ := time.ParseDuration(millis + "ms")
		drains = append(drains, d)
	}
	for _, p := range f.procs {
		if got := seen.history(p); got != "active" {
			t.Errorf("process %d, which works on, was seen in the registry as %q", p.pid(), got)
		}
	}
	all := flow.delays(f.ledger, time.Time{}, time.Now())
	t.Logf("%d processes replaced, %d of them led; a drain took %v (median); enqueue to start: %v; %s",
		len(old), leaders, median(drains), summary(all), f.ledger.summary())
}
