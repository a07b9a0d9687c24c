package dispatch

import (
	"context"
	"time"
)

const (
	// waitInterval is how often it is looked whether a task has ended of which no message told: what a lost message costs.
	waitInterval = 10 * time.Second
	// waitPatience bounds one look at the store.
	waitPatience   = 5 * time.Second
	waitBatchTasks = 200
)

// Wait returns a task once it has ended, succeeded, dead or cancelled, however long that takes; and at once if it has
// already. The result of the task is in Progress.Result, unless TaskInfo.Err says that it cannot be read.
//
// ErrTaskNotFound says that the task is gone: it never was, was deleted, or has ended and is not retained. A task that
// is waited for should have a Retention, and by default one that succeeded has none. Of a task that a purge,
// DeleteQueue or TaskTTL has taken Wait may learn 10 s late. When ctx ends, its error is returned. While the store
// fails Wait goes on trying.
//
// The store tells of tasks that have ended while somebody waits; it is looked at once in ten seconds only, should a message
// be lost. All Waits of a Client share one subscription, which lasts until the last of them returns.
func (c *Client) Wait(ctx context.Context, queue string, id TaskID) (*TaskInfo, error) {
	if err := validateTaskName(queue, id); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := c.waits.enter(queue, id)
	defer c.waits.leave(w)
	failures := 0
	for {
		select {
		case <-w.ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		t, err := c.store.Task(ctx, queue, id)
		if err == nil || isNotFound(err) {
			c.waits.log.recovered("read a task that has ended")
		}
		switch {
		case err == nil && t.State != TaskWaiting && t.State != TaskRunning:
			return t, nil
		case err == nil:
			failures = 0 // a forged message, or the task waits again: whoever ends it from here on tells
		case isNotFound(err):
			return nil, named(err, string(id))
		case ctx.Err() == nil:
			failures++
			c.waits.log.failing("read a task that has ended", err, "queue", queue)
			c.waits.pause(ctx, backoffAfter(failures))
			w.tell()
		}
	}
}
