package dispatch

import (
	"context"
	"errors"
)

// RunTask has a task attempted at once, as Cloud Tasks' RunTask: outside of the rate, the concurrency and the pause of its
// queue, and though its receiver may not answer lately, as soon as a process that serves it has a free place. It moves the
// task's next attempt, and does not add one. The attempt counts; when it fails, the backoff is counted from this call, and
// the queue's limits hold again, as they do after a Snooze.
//
// An attempt that runs loses its lease: its context ends with ErrLeaseLost, what it reports is discarded, and it does not
// count. It returns ErrTaskNotFound, and ErrTaskEnded for a task that has ended and is retained.
func (c *Client) RunTask(ctx context.Context, queue string, id TaskID) error {
	if err := validateTaskName(queue, id); err != nil {
		return err
	}
	lost, err := c.acked.RunTask(ctx, queue, id)
	if !happened(err) {
		return named(err, string(id))
	}
	if lost == 0 && err != nil && !errors.Is(err, ErrNotReplicated) {
		lost = AllLeases // which one it is, if any, the answer would have said
	}
	if lost != 0 { // announcements go one after the other, so the second one is the one to wait for
		c.announce(Hint{Queue: queue, Revoked: lost})
	}
	await(ctx, c.announce(Hint{Queue: queue, Changed: true, HandOver: true}))
	return err
}
