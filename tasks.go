package dispatch

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"
)

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
// listed in both or in none. A queue that does not exist has no tasks. After an error the listing ends; a task that cannot be
// read does not end it, and says so itself.
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
					if f.matches(t) && !yield(t, nil) {
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

// DeleteTask removes a task in whatever state, or returns ErrTaskNotFound. What an attempt that runs reports is discarded,
// and it is not repeated; its context ends with ErrLeaseLost when its worker notices, within a heartbeat. CancelTask ends
// it at once. The name of a named task stays taken for the dedup window.
func (c *Client) DeleteTask(ctx context.Context, queue string, id TaskID) error {
	if err := validateTaskName(queue, id); err != nil {
		return err
	}
	deleted, err := c.acked.DeleteTasks(ctx, queue, []TaskID{id}, DeleteOptions{Tombstone: c.keep.dedup})
	if err == nil && !slices.Contains(deleted, true) {
		err = ErrTaskNotFound
	}
	return named(err, string(id))
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
	reply, err := c.acked.RescheduleTask(ctx, queue, t)
	if !happened(err) {
		return named(err, string(id))
	}
	if reply.Moved || err != nil {
		await(ctx, c.announce(Hint{Queue: queue, Wait: max(reply.Wait, 0)}))
	}
	return err
}

func validateTaskName(queue string, id TaskID) error {
	if err := validateQueueName("Task.Queue", queue); err != nil {
		return err
	}
	return validateTaskID("Task.ID", id)
}

func isNotFound(err error) bool {
	return errors.Is(err, ErrQueueNotFound) || errors.Is(err, ErrTaskNotFound) || errors.Is(err, ErrEntryNotFound)
}
