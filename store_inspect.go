package dispatch

import (
	"context"
	"time"
)

// ReplayReply is what became of dead tasks.
type ReplayReply struct {
	// Replayed says for each task whether it waits again.
	Replayed []bool
	// Moved and Wait are as in EnqueueReply.
	Moved bool
	Wait  time.Duration
}

// Inspector reads tasks and puts them right.
type Inspector interface {
	// Task returns one task, or ErrTaskNotFound. What cannot be read of a task, here and on a page, is its Err.
	Task(ctx context.Context, queue string, id TaskID) (*TaskInfo, error)
	// Tasks returns one page of the tasks in a state, in no order. A task that is in the state during the whole listing
	// is returned at least once. The cursor starts empty and is empty again after the last page.
	Tasks(ctx context.Context, queue string, state TaskState, cursor string) (tasks []*TaskInfo, next string, err error)
	// DeleteTasks removes tasks and says of each ID whether there was one. Of an ID that comes twice the first counts.
	// After an error those before it are removed. A call that is made again after it finds none any more, and says so.
	DeleteTasks(ctx context.Context, queue string, ids []TaskID, o DeleteOptions) ([]bool, error)
	// CancelTask ends a task that waits, or whose lease is c.Lease, as cancelled, and says whether it was one, which it also
	// says of one that was cancelled before. It returns ErrTaskNotFound, and ErrTaskEnded for one that has ended otherwise.
	CancelTask(ctx context.Context, queue string, c Cancellation) (cancelled bool, err error)
	// RunTask makes a waiting or running task due now, outside of the limits and the pause of its queue. It returns the
	// token of the lease that a running one has lost, or 0; ErrTaskNotFound, or ErrTaskEnded.
	RunTask(ctx context.Context, queue string, id TaskID) (lost int64, err error)
	// RescheduleTask makes a waiting task due after t.Delay or at t.ScheduleTime; of t only these and the ID count. It
	// returns ErrTaskNotFound, or ErrNotWaiting for a task that runs or has ended. Moved and Wait are as in EnqueueReply.
	RescheduleTask(ctx context.Context, queue string, t Task) (EnqueueReply, error)
	// EditTask reads a waiting task, lets change modify it, and stores the result if the task still waits and is as it was
	// read; of the result ID, Queue, Delay and ScheduleTime do not count. It returns ErrTaskNotFound, ErrNotWaiting,
	// ErrConflict when somebody else edited it meanwhile, and an error of change as it is. A record that this version
	// cannot read, or could not write again whole, is left alone.
	EditTask(ctx context.Context, queue string, id TaskID, change func(*Task) error) error
	// ReplayTasks makes dead tasks wait again as if they had just been stored: due now, without the attempts that they
	// have had, and with what a purge before means no more. It says of each whether it was dead and, with a NewID, that ID
	// was free. Of a task that comes twice the first counts. After an error those before it are replayed. A call with
	// NewIDs for all may be repeated: for those that wait under theirs already, it says the same again.
	ReplayTasks(ctx context.Context, queue string, tasks []Replay) (ReplayReply, error)
}

// DeleteOptions say which tasks are deleted, and how.
type DeleteOptions struct {
	// Tombstone is how long the names of named tasks stay taken, unless the task had ended and was only retained.
	Tombstone time.Duration
	// DeadOnly leaves tasks alone that are not dead.
	DeadOnly bool
}

// Replay is a dead task that is to wait again.
type Replay struct {
	// ID is the dead task's.
	ID TaskID
	// NewID is the ID under which it waits, if that is not empty: a generated one, which no other call uses. Then the task
	// is not a named one any more.
	NewID TaskID
}

// Cancellation ends a task.
type Cancellation struct {
	// ID is the task's, and Lease that of its attempt; zero when it waits.
	ID    TaskID
	Lease Lease
	// Retention is how long the task stays readable, and Tombstone how long the name of a named one stays taken.
	Retention, Tombstone time.Duration
	// Progress replaces the stored progress, unless it is nil.
	Progress *Progress
}
