package dispatch

import (
	"context"
	"errors"
	"iter"
	"slices"
)

// Filter selects tasks for Tasks. The zero value selects all.
type Filter struct {
	// States are the states wanted; empty means every state.
	States []TaskState
	// Kind, when set, wants tasks of this Go handler only.
	Kind string
}

var allStates = []TaskState{TaskWaiting, TaskRunning, TaskSucceeded, TaskDead}

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

// DeleteTask removes a task in whatever state, or returns ErrTaskNotFound. An attempt that runs is not stopped, but what
// it reports is discarded and it is not repeated. The name of a named task stays taken for the dedup window.
func (c *Client) DeleteTask(ctx context.Context, queue string, id TaskID) error {
	if err := validateTaskName(queue, id); err != nil {
		return err
	}
	return named(c.store.DeleteTask(ctx, queue, id, c.dedup), string(id))
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
