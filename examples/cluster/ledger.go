package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// ledger keeps what the workers report. It is safe for concurrent use.
type ledger struct {
	mu      sync.Mutex
	handled map[dispatch.TaskID][]report         // every time that a task was done
	lost    map[dispatch.TaskID]cluster.WorkerID // tasks whose worker died, and which one
}

func newLedger() *ledger {
	return &ledger{handled: make(map[dispatch.TaskID][]report), lost: make(map[dispatch.TaskID]cluster.WorkerID)}
}

func (l *ledger) note(r report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r.Fact {
	case "handled":
		l.handled[r.Task] = append(l.handled[r.Task], r)
	case "lost":
		l.lost[r.Task] = r.Worker
	}
}

// count counts tasks of a kind that were handled at least so many times.
func (l *ledger) count(kind string, times int) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, runs := range l.handled {
		if runs[0].Kind == kind && len(runs) >= times {
			n++
		}
	}
	return n
}

func (l *ledger) delivered(kind string) int { return l.count(kind, 1) }
func (l *ledger) repeated(kind string) int  { return l.count(kind, 2) }

// lostBy lists the tasks that a worker held when it died.
func (l *ledger) lostBy(dead cluster.WorkerID) (ids []dispatch.TaskID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, worker := range l.lost {
		if worker == dead {
			ids = append(ids, id)
		}
	}
	return ids
}

// deliveredByOther says whether a task was handled by another worker than this one.
func (l *ledger) deliveredByOther(id dispatch.TaskID, than cluster.WorkerID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.handled[id], func(r report) bool { return r.Worker != than })
}

// ticking sums up the ticks of the cron entry.
type ticking struct {
	count       int
	first, last time.Time
	latest      time.Duration // the worst delay of one
}

// ticks sums the ticks up, unless one is missing or came twice. The ID of a tick's task is the entry's name and the
// second that it stands for.
func (l *ledger) ticks() (t ticking, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, runs := range l.handled {
		if runs[0].Kind != "tick" {
			continue
		}
		var second int64
		if _, err := fmt.Sscanf(string(id), tickEntry+"-%d", &second); err != nil {
			return t, fmt.Errorf("task %s is not a tick: %w", id, err)
		}
		at := time.Unix(second, 0)
		// A tick is one task. If its worker dies it is delivered again, as any task is.
		if _, lost := l.lost[id]; len(runs) > 1 && !lost {
			return t, fmt.Errorf("the tick of %s came %d times", at.Format(time.TimeOnly), len(runs))
		}
		if t.count == 0 || at.Before(t.first) {
			t.first = at
		}
		if at.After(t.last) {
			t.last = at
		}
		t.latest = max(t.latest, runs[0].Started.Sub(at))
		t.count++
	}
	if t.count == 0 {
		return t, errors.New("no tick came")
	}
	if want := int(t.last.Sub(t.first)/time.Second) + 1; t.count != want {
		return t, fmt.Errorf("%d ticks came from %s to %s, not %d", t.count, t.first.Format(time.TimeOnly), t.last.Format(time.TimeOnly), want)
	}
	return t, nil
}
