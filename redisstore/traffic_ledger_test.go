package redisstore

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// trafficLedger holds what the store has acknowledged, and finds what does not add up. It knows nothing of how the store works.
type trafficLedger struct {
	mu        sync.Mutex
	begun     map[dispatch.TaskID]bool   // tasks that are sent to the store, or were
	stored    map[dispatch.TaskID]bool   // those of them that are, or were, there
	gone      map[dispatch.TaskID]string // those that are not any more, and by what
	purged    map[dispatch.TaskID]bool   // those sent before the last purge began: they may be gone without a word
	tokens    map[int64]string           // of which lease
	newest    map[dispatch.TaskID]int64  // token of a task
	totals    dispatch.Counts            // only the totals
	cancelled map[dispatch.TaskID]bool
	problems  []string
}

func newTrafficLedger() *trafficLedger {
	return &trafficLedger{begun: make(map[dispatch.TaskID]bool), stored: make(map[dispatch.TaskID]bool), gone: make(map[dispatch.TaskID]string),
		purged: make(map[dispatch.TaskID]bool), tokens: make(map[int64]string),
		newest: make(map[dispatch.TaskID]int64), cancelled: make(map[dispatch.TaskID]bool)}
}

func (l *trafficLedger) wrong(format string, args ...any) {
	if len(l.problems) < 20 {
		l.problems = append(l.problems, fmt.Sprintf(format, args...))
	}
}

func (l *trafficLedger) begin(id dispatch.TaskID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun[id] = true
}

func (l *trafficLedger) store(id dispatch.TaskID, duplicate bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if duplicate || l.stored[id] {
		l.wrong("task %s was stored twice, or is a duplicate of nothing", id)
	}
	l.stored[id] = true
}

// lease notes that a worker has got a task, in a claim of a number: no other claim gets that token.
func (l *trafficLedger) lease(w cluster.WorkerID, seq int64, leased dispatch.Leased) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := fmt.Sprint(w, " ", seq, " ", leased.Task.ID)
	if other, known := l.tokens[leased.Lease.Token]; known && other != own {
		l.wrong("token %d of %s is that of %s", leased.Lease.Token, own, other)
	}
	if leased.Err != nil {
		l.wrong("task %s cannot be read: %v", leased.Task.ID, leased.Err)
	}
	l.tokens[leased.Lease.Token] = own
	l.newest[leased.Task.ID] = max(l.newest[leased.Task.ID], leased.Lease.Token)
}

// end notes that a task is gone. That happens once.
func (l *trafficLedger) end(id dispatch.TaskID, by string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over(id, by)
}

func (l *trafficLedger) over(id dispatch.TaskID, by string) {
	if earlier, gone := l.gone[id]; gone {
		l.wrong("task %s is gone by %s, and was by %s", id, by, earlier)
	}
	l.gone[id] = by
}

// stale says for each item of a settle that is about to be sent whether somebody has a later lease of its task.
func (l *trafficLedger) stale(items []dispatch.Settlement) []bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	stale := make([]bool, len(items))
	for i, s := range items {
		stale[i] = l.newest[s.ID] > s.Lease.Token
	}
	return stale
}

// settled notes outcomes of a settle.
func (l *trafficLedger) settled(items []dispatch.Settlement, stale []bool, reply dispatch.SettleReply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range items {
		if stale[i] && reply.Applied[i] {
			l.wrong("%s of task %s was applied under a lease that was over", s.Outcome, s.ID)
		}
		switch {
		case !reply.Applied[i]:
			continue
		case reply.Dropped[i]:
			l.over(s.ID, "a purge")
			continue
		case s.Outcome == dispatch.Succeeded:
			l.totals.TotalSucceeded++
		case s.Outcome == dispatch.Dead:
			l.totals.TotalDead++
		case s.Outcome == dispatch.Retry:
			l.totals.TotalRetried++
		}
		if s.After == 0 && (s.Outcome == dispatch.Succeeded || s.Outcome == dispatch.Dead) {
			l.over(s.ID, string(s.Outcome))
		}
	}
}

func (l *trafficLedger) cancel(id dispatch.TaskID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancelled[id] = true
}

// purge notes that a purge has begun: it may take what was sent before.
func (l *trafficLedger) purge() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.begun {
		l.purged[id] = true
	}
}

// live are the tasks that were stored and, as far as is known, are not gone.
func (l *trafficLedger) live() []dispatch.TaskID {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []dispatch.TaskID
	for id := range l.stored {
		if l.gone[id] == "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// check compares what is there in the end, and what the store has counted.
func (l *trafficLedger) check(t *testing.T, there map[dispatch.TaskID]dispatch.TaskState, counts dispatch.Counts) {
	t.Helper()
	for id, state := range there {
		if by := l.gone[id]; by != "" {
			t.Errorf("task %s is gone by %s, and %s", id, by, state)
		}
		if !l.stored[id] {
			t.Errorf("task %s is %s and was never stored", id, state)
		}
	}
	lost := 0
	for id := range l.stored {
		if there[id] == "" && l.gone[id] == "" {
			lost++
			if !l.purged[id] {
				t.Errorf("task %s is lost", id)
			}
		}
	}
	l.totals.TotalCancelled = int64(len(l.cancelled)) // a second cancellation is told the same as the first
	got := dispatch.Counts{TotalSucceeded: counts.TotalSucceeded, TotalDead: counts.TotalDead, TotalRetried: counts.TotalRetried,
		TotalCancelled: counts.TotalCancelled}
	if got != l.totals {
		t.Errorf("the store has counted %+v, and acknowledged %+v", got, l.totals)
	}
	for _, problem := range l.problems {
		t.Error(problem)
	}
	t.Logf("%d tasks, %d gone with an answer and %d purged, %d there; %d leases; %+v", len(l.stored), len(l.gone), lost, len(there), len(l.tokens), got)
}
