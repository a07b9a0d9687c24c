package dispatch

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// The states that callers ask for with errors.Is.
var (
	// ErrTaskNotFound is returned when a queue has no task of the ID: it never existed, has ended or was deleted.
	ErrTaskNotFound = errors.New("dispatch: task not found")
	// ErrNotWaiting is returned when a task is to be rescheduled or edited that runs or has ended.
	ErrNotWaiting = errors.New("dispatch: task is not waiting")
	// ErrTaskEnded is returned when a task is to be cancelled or run that has ended and is retained.
	ErrTaskEnded = errors.New("dispatch: task has ended")
	// ErrQueueDraining is returned for a task of a queue that takes no new ones; see DrainQueue. Nothing was stored.
	ErrQueueDraining = errors.New("dispatch: queue is draining")
	// ErrQueuePaused is returned when a queue is to be drained that is paused, so that its tasks would wait for ever.
	ErrQueuePaused = errors.New("dispatch: queue is paused")
	// ErrQueueNotFound is returned for a queue that does not exist.
	ErrQueueNotFound = errors.New("dispatch: queue not found")
	// ErrEntryNotFound is returned for a cron entry that does not exist.
	ErrEntryNotFound = errors.New("dispatch: cron entry not found")
	// ErrWorkerNotFound is cluster.ErrWorkerNotFound.
	ErrWorkerNotFound = cluster.ErrWorkerNotFound
	// ErrLeadershipLost is cluster.ErrLeadershipLost: the leader's work ends with it when somebody else leads by now.
	ErrLeadershipLost = cluster.ErrLeadershipLost
	// ErrUnschedulable is returned for a task that needs more than any live worker has. Nothing was stored. The error is
	// an *UnschedulableError.
	ErrUnschedulable = errors.New("dispatch: unschedulable")
	// ErrDuplicateTask is returned when a named task is live, is retained, or ended less than its dedup window ago.
	// Enqueue returns the ID with it.
	ErrDuplicateTask = errors.New("dispatch: duplicate task")
	// ErrLeaseLost is returned when a worker acts on a task under a lease that is no longer its own. Nothing was
	// changed. It is also the cause of a handler's context that ends for this reason.
	ErrLeaseLost = errors.New("dispatch: lease lost")
	// ErrStoreFull is returned when the store has no memory for a new task. Nothing was stored; running tasks go on.
	ErrStoreFull = errors.New("dispatch: store is full")
	// ErrUncertain is returned when a call was sent and its answer was lost: what it asked for may have happened. An
	// enqueue may be repeated with the ID that was returned with the error; if the task has run to its end by then, it runs again
	// unless it is retained, or the caller had chosen its ID and the dedup window is not over. What cancels, runs, edits or
	// deletes a task is repeated as it is.
	ErrUncertain = errors.New("dispatch: outcome unknown")
	// ErrNotReplicated is returned when too few replicas have said in time that they have what the primary has; see
	// Durability. The primary has done what was asked for, or has found that it cannot be done, which a repetition tells; calls
	// that take many entries or tasks (DeleteDead, ReplayTasks, SyncSchedules) end with it at the first that it meets, and
	// DrainQueue does not wait. It is an ErrUncertain, and its calls are repeated as there: until a repetition gets another
	// answer, a failover may undo what was done.
	ErrNotReplicated = fmt.Errorf("dispatch: not replicated in time: %w", ErrUncertain)
	// ErrCancelled is the cause of a handler's context that ends because its task was cancelled.
	ErrCancelled = errors.New("dispatch: task cancelled")
	// ErrConflict is returned when a queue or a task was changed by others, again and again, while UpdateQueue, EditTask or
	// CancelTask tried to.
	ErrConflict = errors.New("dispatch: changed by others meanwhile")
	// ErrDraining is the cause of a handler's context that ends because the dispatcher stops.
	ErrDraining = errors.New("dispatch: draining")
	// ErrDrainTimeout is returned by Run and Stop when a handler did not return although its context had ended.
	ErrDrainTimeout = errors.New("dispatch: handlers still running after the drain timeout")
	// ErrStarted is returned by Start and Run of a dispatcher that was started or stopped before: there is no restart.
	ErrStarted = errors.New("dispatch: already started")
)

// FieldError is bad input: it names the field and what the field may hold. Nothing was stored.
type FieldError struct {
	// Field is the path of the field, such as "Task.URL" or "Options.LeaseGrace".
	Field string
	// Problem says what is wrong and what the limit is.
	Problem string
}

// Error returns the field and the problem.
func (e *FieldError) Error() string { return "dispatch: " + e.Field + ": " + e.Problem }

// within says where the field of an error is, which calls itself by the name of what it belongs to.
func within(path, name string, err error) error {
	var bad *FieldError
	if !errors.As(err, &bad) {
		return err
	}
	return &FieldError{Field: path + strings.TrimPrefix(bad.Field, name), Problem: bad.Problem}
}

func fieldErrorf(field, format string, args ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// SkipRetry makes a handler's error final: the task is dead after this attempt, whatever its RetryConfig says. The
// result wraps err; SkipRetry(nil) is nil.
func SkipRetry(err error) error {
	if err == nil {
		return nil
	}
	return &retryDirective{err: err, skip: true}
}

// RetryAfter makes a handler's error be retried d from now instead of after the backoff. The attempt counts, and an
// exhausted task is dead all the same. The result wraps err; RetryAfter(d, nil) is nil. A negative d is 0.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryDirective{err: err, after: max(d, 0), fixed: true}
}

// Snooze makes the task come back d from now without counting the attempt. A negative d is 0.
func Snooze(d time.Duration) error {
	return &retryDirective{err: errSnoozed, after: max(d, 0), snooze: true}
}

var errSnoozed = errors.New("dispatch: snoozed")

// retryDirective is a handler's word on what becomes of its task.
type retryDirective struct {
	err    error
	after  time.Duration
	fixed  bool // retry after `after` instead of the backoff
	skip   bool // do not retry
	snooze bool // come back after `after`, not counted
}

func (e *retryDirective) Error() string { return e.err.Error() }
func (e *retryDirective) Unwrap() error { return e.err }
