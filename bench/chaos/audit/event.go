package audit

// Kind says what an event tells of.
type Kind string

// The kinds of events, and who writes them.
const (
	// KindAsk is written by a producer before it enqueues a task, KindAck after it has an answer. An ask without ack is
	// one whose answer nobody knows. A task without a name has its ID only in the ack.
	KindAsk Kind = "ask"
	KindAck Kind = "ack"
	// KindStart is written by a receiver or handler before anything else of an attempt, KindEnd before it answers.
	KindStart Kind = "start"
	KindEnd   Kind = "end"
	// KindOutcome is written by the worker's observer, after the store has the outcome; with Token 0 by who has ended a
	// task by administration, or without an ID all those of a queue, after the call returned.
	KindOutcome Kind = "outcome"
	// KindFault is written by who does something to a process or a server, before it does it, or with a task's Queue and ID
	// by who acts on that task as an administrator does: runs, reschedules or replays it.
	KindFault Kind = "fault"
	// KindNote is for the reader of a ledger and means nothing to the checker.
	KindNote Kind = "note"
)

// What an ack says.
const (
	AckStored    = "stored"
	AckDuplicate = "duplicate" // a task of that name is live, or its tombstone is
	AckUncertain = "uncertain" // an error that leaves open whether the task exists
	AckRefused   = "refused"   // an error that says it does not
)

// How a handler ended.
const (
	EndOK     = "ok"
	EndFail   = "fail"
	EndSnooze = "snooze"
	EndCut    = "cut" // its context ended for a reason that was not its own
)

// The outcomes that mean something to the checker. All but OutcomeDiscarded were accepted by the store.
const (
	OutcomeSucceeded = "succeeded"
	OutcomeDead      = "dead"
	OutcomeCancelled = "cancelled"
	OutcomeDropped   = "dropped" // purged, or too old
	OutcomeDeleted   = "deleted" // only by administration
	OutcomeRetry     = "retry"
	OutcomeLeaseLost = "lease_lost" // a retry that somebody else has settled
	OutcomeReleased  = "released"   // the attempt does not count
	// OutcomeDiscarded is an outcome that its worker does not know to be stored: mostly it was refused, but the answer may
	// have been lost too.
	OutcomeDiscarded = "discarded"
)

// Event is one line of a ledger. Which fields mean something depends on its kind.
type Event struct {
	Kind Kind `json:"kind"`
	// At is when it happened, in µs of the machine's real clock, whatever clock the process is made to believe in.
	At int64 `json:"at"`
	// Who is the process that wrote it.
	Who string `json:"who"`

	// Queue and ID name the task.
	Queue string `json:"queue,omitempty"`
	ID    string `json:"id,omitempty"`

	// NotBefore of an ask is the earliest instant, in µs, at which an attempt may start; 0 is at once. It is the ScheduleTime,
	// or the time before the call plus the delay.
	NotBefore int64 `json:"not_before,omitempty"`
	// Asked of an ack is when the call began that it answers, in µs; 0 is not known. The answer itself may be older than the
	// ack: the call may have had more to do.
	Asked int64 `json:"asked,omitempty"`
	// Named says of an ask that the caller chose the ID.
	Named bool `json:"named,omitempty"`
	// Result is what an ack says, or how a handler ended. An outcome by administration that is AckUncertain may not have
	// happened.
	Result string `json:"result,omitempty"`

	// Attempt and Token are those of a start, an end and an outcome: attempts count from 1, tokens are those of a queue.
	Attempt int   `json:"attempt,omitempty"`
	Token   int64 `json:"token,omitempty"`
	// Outcome is what the product has reported.
	Outcome string `json:"outcome,omitempty"`
	// Lease of a start is how long the lease is from its claim, in µs: timeout and grace. 0 is not known, and then nothing
	// is said about overlaps of this attempt.
	Lease int64 `json:"lease,omitempty"`
	// Worker of a start is the process that makes the attempt, if Who is not: the receiver of a request. [AnyWorker] is one
	// that the receiver does not know.
	Worker string `json:"worker,omitempty"`

	// Fault is what is done and Target the Who to which it is done: empty or [AnyWorker] means everybody.
	Fault  string `json:"fault,omitempty"`
	Target string `json:"target,omitempty"`

	// Text is for the reader.
	Text string `json:"text,omitempty"`
}

// AnyWorker stands for a worker that is not known, or for all of them.
const AnyWorker = "*"

// TaskKey names a task.
type TaskKey struct{ Queue, ID string }

// Task is which task the event is about.
func (e *Event) Task() TaskKey { return TaskKey{e.Queue, e.ID} }

// owner is the process that makes the attempt that e tells of.
func (e *Event) owner() string {
	if e.Worker != "" {
		return e.Worker
	}
	return e.Who
}
