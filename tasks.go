package dispatch

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"
)

// Filter selects tasks for Tasks. The zero value selects all.
type Filter struct {
	// States are the states wanted; empty means every state.
	States []TaskState
	// Kind, when set, wants tasks of this Go handler only.
	Kind string
}

var allStates = []TaskState{TaskWaiting, TaskRunning, TaskSucceeded, TaskDead, TaskCancelled}

// Task returns a task of a queue, or ErrTaskNotFound.
func (c *Client) Task(ctx context.Context, queue string, id TaskID) (*TaskInfo, error) {
	if err := validateTaskName(queue, id); err != nil {
		return nil, err
	}
	t, err := c.store.Task(ctx, queue, id)
	return t, named(err, string(id))
}

// Tasks lists tasks of a queue, in no order and page by page, so that the store is never held up. A task that stays in
// its state during the whole listing is listed, perhaps more than once; one that changes its state meanwhile may be
// listed in both or in none. A queue that does not exist has no tasks. After an error the listing ends.
func (c *Client) Tasks(ctx context.Context, queue string, f Filter) iter.Seq2[*TaskInfo, error] {
	return func(yield func(*TaskInfo, error) bool) {
		if err := f.validate(queue); err != nil {
			yield(nil, err)
			return
		}
		states := f.States
		if len(states) == 0 {
			states = allStates
		}
		for _, state := range states {
			for cursor := ""; ; {
				page, next, err := c.store.Tasks(ctx, queue, state, cursor)
				if err != nil {
					yield(nil, err)
					return
				}
				for _, t := range page {
					if f.Kind != "" && f.Kind != t.Kind {
						continue
					}
					if !yield(t, nil) {
						return
					}
				}
				if cursor = next; cursor == "" {
					break
				}
			}
		}
	}
}

func (f Filter) validate(queue string) error {
	for _, s := range f.States {
		if !slices.Contains(allStates, s) {
			return fieldErrorf("Filter.States", "%q is not one of %q", clip(string(s), 40), allStates)
		}
	}
	return validateQueueName("Task.Queue", queue)
}

// DeleteTask removes a task in whatever state, or returns ErrTaskNotFound. What an attempt that runs reports is discarded,
// and it is not repeated; its context ends with ErrLeaseLost when its worker notices, within a heartbeat. CancelTask ends
// it at once. The name of a named task stays taken for the dedup window.
func (c *Client) DeleteTask(ctx context.Context, queue string, id TaskID) error {
	if err := validateTaskName(queue, id); err != nil {
		return err
	}
	return named(c.store.DeleteTask(ctx, queue, id, c.keep.dedup), string(id))
}

// RescheduleTask moves the next attempt of a waiting task to an instant; past and zero are now. It returns
// ErrTaskNotFound, or ErrNotWaiting for a task that runs or has ended. The limits and the pause of the queue hold all the
// same.
func (c *Client) RescheduleTask(ctx context.Context, queue string, id TaskID, at time.Time) error {
	if err := validateTaskName(queue, id); err != nil {
		return err
	}
	if at.Sub(c.clock.Now()) > maxSchedule {
		return fieldErrorf("RescheduleTask.at", "is more than %v ahead", maxSchedule)
	}
	t := Task{ID: id}
	if at.Unix() > 0 {
		t.ScheduleTime = at
	}
	reply, err := c.store.RescheduleTask(ctx, queue, t)
	if err != nil {
		return named(err, string(id))
	}
	if reply.Moved {
		await(ctx, c.announce(Hint{Queue: queue, Wait: max(reply.Wait, 0)}))
	}
	return nil
}

// ReplayTasks makes dead tasks wait again, due now: under their old IDs, with a new budget of attempts, and without the
// history of those that they have had. It returns how many of them were dead tasks. With ErrUncertain more of them may
// wait again.
func (c *Client) ReplayTasks(ctx context.Context, queue string, ids ...TaskID) (replayed int, err error) {
	if err := validateQueueName("Task.Queue", queue); err != nil {
		return 0, err
	}
	for _, id := range ids {
		if err := validateTaskID("Task.ID", id); err != nil {
			return 0, err
		}
	}
	reply, err := c.store.ReplayTasks(ctx, queue, ids)
	for _, done := range reply.Replayed {
		if done {
			replayed++
		}
	}
	if reply.Moved {
		await(ctx, c.announce(Hint{Queue: queue, Wait: max(reply.Wait, 0)}))
	}
	return replayed, err
}

// ReplayDead is ReplayTasks for all dead tasks that match a filter, whose States are ignored. It lists them first, page by
// page, and holds their IDs; so one that dies again meanwhile is replayed once. It returns how many wait again, also with
// an error.
func (c *Client) ReplayDead(ctx context.Context, queue string, f Filter) (replayed int, err error) {
	f.States = []TaskState{TaskDead}
	var ids []TaskID
	for t, err := range c.Tasks(ctx, queue, f) {
		if err != nil {
			return 0, err
		}
		ids = append(ids, t.ID)
	}
	for part := range slices.Chunk(ids, replayBatch) {
		n, err := c.ReplayTasks(ctx, queue, part...)
		if replayed += n; err != nil {
			return replayed, err
		}
	}
	return replayed, nil
}

// replayBatch is how many tasks one call replays.
const replayBatch = 100

func validateTaskName(queue string, id TaskID) error {
	if err := validateQueueName("Task.Queue", queue); err != nil {
		return err
	}
	return validateTaskID("Task.ID", id)
}

func isNotFound(err error) bool {
	return errors.Is(err, ErrQueueNotFound) || errors.Is(err, ErrTaskNotFound) || errors.Is(err, ErrEntryNotFound)
}
