package audit

import "fmt"

// Rules say what a scenario allows and what it has waited for. The zero value allows nothing and has waited for nothing.
type Rules struct {
	// MayLose says of an acknowledged enqueue, or of an outcome that the store has accepted, that the documented window of a
	// failover covers its loss. Such an enqueue may be gone, and such an outcome may have been forgotten, so that its task
	// runs again. Nil is no such window.
	MayLose func(e Event) bool
	// Duplicates is how many attempts may start that nothing explains; -1 is any number.
	Duplicates int
	// Overlaps is how many pairs of attempts may overlap without a fault at their workers; -1 is any number. Those that a fault
	// explains do not count.
	Overlaps int
	// Drained says that the run has waited for the store to be empty: every acknowledged task must have come to an end.
	Drained bool
	// Store is what Redis held at the end; nil when nobody looked. Without it, and without Finals, only a drained run can
	// have lost something.
	Store *Snap
	// Finals are the tasks that Redis held at the end, if they do not come from Store.
	Finals map[TaskKey]Final
	// Leftover are patterns, as of path.Match, of keys without the prefix that may remain in a drained store besides
	// those of [AtRest].
	Leftover []string
}

// AtRest are patterns of the keys that a drained store keeps for good or for a while: what belongs to the fleet, the settings
// of queues, and what remembers the last calls.
var AtRest = []string{"{~}:*", "{*}:meta", "{*}:stored:*", "{*}:claimed:*", "{*}:settled:*"}

// The verdicts that a finding can have.
const (
	VerdictLost       = "lost"
	VerdictForged     = "forged"
	VerdictEarly      = "early"
	VerdictOverlap    = "overlap"
	VerdictMiscounted = "miscounted"
	VerdictDuplicate  = "duplicate"
	VerdictLeftover   = "leftover"
	VerdictBroken     = "broken"
)

// Report is what Check has counted and found.
type Report struct {
	// Enqueued are tasks whose enqueue was acknowledged, Delivered those of all tasks that were started at least once.
	Enqueued, Delivered int
	// Forgotten are tasks that would be lost, had not MayLose excused it. No finding tells of them.
	Forgotten int
	// The others count findings. Duplicates and Overlaps count those that the rules allow as well.
	Lost, Forged, Early, Duplicates, Overlaps, Miscounted, Leftover, Broken int
	// Findings are what must not be, oldest first, and not more than some of each verdict.
	Findings []Finding
}

// OK says whether nothing was found that the rules do not allow.
func (r Report) OK() bool { return len(r.Findings) == 0 }

// Finding is one thing that must not be.
type Finding struct {
	Verdict   string
	Queue, ID string  // of the task; empty for findings about keys
	Text      string  // what is wrong
	Events    []Event // what shows it
}

func (f Finding) String() string {
	if f.ID == "" {
		return f.Verdict + ": " + f.Text
	}
	return fmt.Sprintf("%s: task %s of queue %s: %s", f.Verdict, f.ID, f.Queue, f.Text)
}
