package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
)

// lone is a task that nobody helps: after it nothing else is enqueued to its queue.
type lone struct {
	queue string
	id    dispatch.TaskID
	due   time.Time // not before
}

// lone enqueues a task that is due after a delay.
func (r *Run) lone(ctx context.Context, c *Client, queue string, delay time.Duration) (lone, error) {
	task := Work{}.Task(queue)
	task.Delay = delay
	id, err := c.Enqueue(ctx, task)
	return lone{queue, id, time.Now().Add(delay)}, err
}

// idle makes queues known to all workers and waits until nobody has anything to do and nothing is noted, as in a fleet that
// idles at night.
func (r *Run) idle(ctx context.Context, queues []string) error {
	for _, queue := range queues {
		if _, err := r.client.Enqueue(ctx, Work{}.Task(queue)); err != nil {
			return err
		}
	}
	raw, err := r.Raw()
	if err != nil {
		return err
	}
	defer raw.Close()
	err = Until(ctx, 10*time.Second, "lost wake-up: tasks of an idle fleet run", func() (bool, error) {
		live, err := members(ctx, raw, "due", "leased")
		return live == 0, err
	})
	if err != nil {
		return err
	}
	forgotten := time.Now().Add(5 * time.Second) // with the short times of the runs a worker then remembers none of the queues
	return Until(ctx, time.Minute, "the notes of idle queues are put right", func() (bool, error) {
		if time.Now().Before(forgotten) {
			return false, nil
		}
		soon := fmt.Sprint(time.Now().Add(time.Minute).UnixMilli())
		noted, err := raw.ZCount(ctx, key("~", "active"), "-inf", soon).Result()
		return noted == 0, err
	})
}

// awaitStarts waits until lone tasks have started and says how long the slowest took from when it was due, or from a later instant
// at which the last fault was over. Much more than limit is an error.
func (r *Run) awaitStarts(ctx context.Context, tasks []lone, healed time.Time, limit time.Duration) (slowest time.Duration, err error) {
	for _, t := range tasks {
		from := t.due
		if healed.After(from) {
			from = healed
		}
		left := max(time.Until(from), 0) + 2*limit + 10*time.Second
		err := Until(ctx, left, fmt.Sprintf("task %s of queue %s starts", t.id, t.queue), func() (bool, error) {
			ledger, err := r.Ledger()
			if err != nil {
				return false, err
			}
			for key, starts := range ledger.starts() {
				if key.Queue == t.queue && key.ID == string(t.id) {
					slowest = max(slowest, time.UnixMicro(starts[0].At).Sub(from))
					return true, nil
				}
			}
			return false, nil
		})
		if err != nil {
			return slowest, err
		}
	}
	return slowest, nil
}
