package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
)

// ledger is what the worker processes of one test have done.
type ledger struct {
	mu       sync.Mutex
	starts   map[string][]started // by task ID
	ends     map[lease]time.Time  // of handlers, when the processes say them
	total    int                  // starts
	last     time.Time            // of the latest start
	outcomes map[string][]outcome // by task ID
	counts   map[string]int       // outcomes by word
	said     map[string][]string  // by task ID
}

// started is one start of a handler.
type started struct {
	by      *process
	queue   string
	attempt int
	token   int64
	at      time.Time // by the machine's clock
	server  time.Time // by Redis, when the process asks it
	due     time.Time
}

// lease names an attempt: tokens are those of a queue.
type lease struct {
	queue string
	token int64
}

type outcome struct {
	by      *process
	word    string
	kind    string
	attempt int
}

func newLedger() *ledger {
	return &ledger{
		starts: map[string][]started{}, ends: map[lease]time.Time{}, outcomes: map[string][]outcome{}, counts: map[string]int{},
		said: map[string][]string{},
	}
}

// hear takes in one line of a process; see say.
func (l *ledger) hear(p *process, word, rest string) {
	f := strings.Fields(rest)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case word == "start" && len(f) == 7:
		s := started{by: p, queue: f[0], at: microTime(f[4]), server: microTime(f[5])}
		s.attempt, _ = strconv.Atoi(f[2])
		s.token, _ = strconv.ParseInt(f[3], 10, 64)
		due, _ := strconv.ParseInt(f[6], 10, 64)
		s.due = time.UnixMilli(due)
		l.starts[f[1]] = append(l.starts[f[1]], s)
		l.total++
		l.last = s.at
	case word == "end" && len(f) == 4:
		token, _ := strconv.ParseInt(f[2], 10, 64)
		l.ends[lease{f[0], token}] = microTime(f[3])
	case word == "outcome" && len(f) == 5:
		o := outcome{by: p, word: f[2], kind: f[3]}
		o.attempt, _ = strconv.Atoi(f[4])
		l.outcomes[f[1]] = append(l.outcomes[f[1]], o)
		l.counts[o.word]++
	case word == "said" && len(f) > 2:
		l.said[f[1]] = append(l.said[f[1]], strings.Join(f[2:], " "))
	}
}

// startsOf is how often and where a task was started.
func (l *ledger) startsOf(id string) []started {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]started(nil), l.starts[id]...)
}

func (l *ledger) outcomesOf(id string) []outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]outcome(nil), l.outcomes[id]...)
}

func (l *ledger) saidOf(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.said[id], "; ")
}

// distinct is how many tasks were started at least once.
func (l *ledger) distinct() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.starts)
}

func (l *ledger) totalStarts() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// startsIn are all starts of a queue's tasks, in no order, by task ID.
func (l *ledger) startsIn(queue string) map[string][]started {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string][]started{}
	for id, starts := range l.starts {
		for _, s := range starts {
			if s.queue == queue {
				out[id] = append(out[id], s)
			}
		}
	}
	return out
}

// endOf is when the handler of an attempt has ended; zero when it has not, or nobody has said so.
func (l *ledger) endOf(s started) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends[lease{s.queue, s.token}]
}

// lostLeases are the outcomes of attempts that ended because their lease was given away, by task ID.
func (l *ledger) lostLeases() map[string][]outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := map[string][]outcome{}
	for id, outcomes := range l.outcomes {
		for _, o := range outcomes {
			if o.kind == string(dispatch.KindLeaseLost) {
				lost[id] = append(lost[id], o)
			}
		}
	}
	return lost
}

// duplicates are the IDs of tasks that were started more than once.
func (l *ledger) duplicates() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []string
	for id, s := range l.starts {
		if len(s) > 1 {
			ids = append(ids, id)
		}
	}
	return ids
}

// missing are those of ids that were never started.
func (l *ledger) missing(ids []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, id := range ids {
		if len(l.starts[id]) == 0 {
			out = append(out, id)
		}
	}
	return out
}

// awaitStarts is missing after what the processes have said has been read: Redis may be empty before that.
func (l *ledger) awaitStarts(ids []string) []string {
	within(5*time.Second, func() bool { return len(l.missing(ids)) == 0 })
	return l.missing(ids)
}

func (l *ledger) outcomeCount(word string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[word]
}

func (l *ledger) summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d tasks, %d starts, outcomes %v", len(l.starts), l.total, l.counts)
}
