package dispatch

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// EditTask reads a waiting task, lets change modify it and stores the result, all over again when somebody else edited it
// meanwhile; so change may be called several times. The result is checked like a new task. Changes to ID and Queue are
// ignored, and so are Delay and ScheduleTime, which are zero: RescheduleTask moves a task. Requires are those that the
// task has, with what it got of its queue's; they are not completed anew. The attempts that the task has had stay.
//
// It returns ErrTaskNotFound, ErrNotWaiting for a task that runs or has ended, ErrConflict when others do not cease to
// edit the task, and otherwise what Enqueue does for bad input. An error of change is returned as it is. A record that
// another version of the program wrote, and that this one cannot write again whole, is left alone with an error.
func (c *Client) EditTask(ctx context.Context, queue string, id TaskID, change func(*Task) error) error {
	if change == nil {
		return fieldErrorf("EditTask.change", "is nil")
	}
	if err := validateTaskName(queue, id); err != nil {
		return err
	}
	for range conflictTries {
		var refused error
		needs := false // something else than before
		err := c.acked.EditTask(ctx, queue, id, func(t *Task) error {
			before, ours := maps.Clone(t.Requires), oursOf(t.Metadata)
			if refused = change(t); refused != nil {
				return refused
			}
			maps.DeleteFunc(t.Metadata, func(name, _ string) bool { return isOurs(name) })
			t.ID, t.Queue, t.Delay, t.ScheduleTime = "", queue, 0, time.Time{} // an ID that was generated does not count
			if *t, refused = t.normalize(c.clock.Now()); refused != nil {
				return refused
			}
			t.ID = id
			if len(ours) > 0 {
				maps.Copy(ours, t.Metadata)
				t.Metadata = ours
			}
			if needs = !maps.Equal(before, t.Requires); needs {
				refused = c.schedulable(ctx, queue, t.Requires)
			}
			return refused
		})
		switch {
		case refused != nil:
			return refused
		case errors.Is(err, ErrConflict):
			continue
		case happened(err) && needs: // it may fit where it did not
			await(ctx, c.announce(Hint{Queue: queue, Changed: true}))
		}
		return named(err, string(id))
	}
	return ErrConflict
}

// oursOf is what Dispatch has put into a task's Metadata, which an edit leaves as it is.
func oursOf(metadata map[string]string) map[string]string {
	ours := make(map[string]string)
	for name, value := range metadata {
		if isOurs(name) {
			ours[name] = value
		}
	}
	return ours
}

// schedulable is the error of a need that fits no worker; see fitting.
func (c *Client) schedulable(ctx context.Context, queue string, need cluster.Resources) error {
	workers, err := c.live(ctx, refusalAge)
	if err != nil {
		return err
	}
	return unschedulable(queue, need, workers)
}
