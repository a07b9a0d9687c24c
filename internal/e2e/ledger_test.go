package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ledger is what the worker processes of one test have done.
type ledger struct {
	mu       sync.Mutex
	starts   map[string][]started // by task ID
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

type outcome struct {
	by      *process
	word    string
	kind    string
	attempt int
}

func newLedger() *ledger {
	return &ledger{
		starts: map[string][]started{}, outcomes: map[string][]outcome{}, counts: map[string]int{},
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
