package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dispatchkit/dispatch"
)

// kindsOfCalls are in an order in which each finds what it needs: what takes the backlog away comes last.
var kindsOfCalls = []kindOfCall{
	{"Enqueue", func(ctx context.Context, c *calls) error {
		return concurrently(ctx, callers, 10*callTimes, func(ctx context.Context, _ int) error {
			_, err := c.client.Enqueue(ctx, c.task())
			return err
		})
	}},
	{"EnqueueMany", func(ctx context.Context, c *calls) error {
		return fill(ctx, c.client, bulkCall, func(int) dispatch.Task { return c.task() })
	}},
	{"EnqueueMany, named", func(ctx context.Context, c *calls) error {
		return fill(ctx, c.client, bulkCall, func(i int) dispatch.Task {
			t := c.task()
			t.ID = dispatch.TaskID(fmt.Sprintf("name-%d", i))
			return t
		})
	}},
	{"claim and settle", func(ctx context.Context, c *calls) error { return handleSome(ctx, c, 20*callTimes, nil) }},
	{"claim and settle, dead", func(ctx context.Context, c *calls) error {
		return handleSome(ctx, c, 5*callTimes, dispatch.SkipRetry(errors.New("dead on purpose")))
	}},
	{"Task", func(ctx context.Context, c *calls) error {
		return c.each(ctx, func(id dispatch.TaskID) error {
			_, err := c.client.Task(ctx, c.queue, id)
			return err
		})
	}},
	{"Tasks, waiting", func(ctx context.Context, c *calls) error {
		listed := 0
		for _, err := range c.client.Tasks(ctx, c.queue, dispatch.Filter{States: []dispatch.TaskState{dispatch.TaskWaiting}}) {
			if listed++; err != nil || listed == 10*callTimes {
				return err
			}
		}
		return nil
	}},
	{"Tasks, dead", func(ctx context.Context, c *calls) error {
		for t, err := range c.client.Tasks(ctx, c.queue, dispatch.Filter{States: []dispatch.TaskState{dispatch.TaskDead}}) {
			if err != nil {
				return err
			}
			c.dead = append(c.dead, t.ID)
		}
		return nil
	}},
	{"Counts", func(ctx context.Context, c *calls) error {
		return c.each(ctx, func(dispatch.TaskID) error {
			_, err := c.client.Counts(ctx, c.queue)
			return err
		})
	}},
	{"Queue, Queues", func(ctx context.Context, c *calls) error {
		for _, err := range c.client.Queues(ctx) {
			if err != nil {
				return err
			}
		}
		_, err := c.client.Queue(ctx, c.queue)
		return err
	}},
	{"UpdateQueue", func(ctx context.Context, c *calls) error {
		return c.each(ctx, func(dispatch.TaskID) error {
			return c.client.UpdateQueue(ctx, c.queue, func(q *dispatch.Queue) error { q.Weight = q.Weight%2 + 1; return nil })
		})
	}},
	{"PauseQueue, ResumeQueue", func(ctx context.Context, c *calls) error {
		return c.each(ctx, func(dispatch.TaskID) error {
			return errors.Join(c.client.PauseQueue(ctx, c.queue), c.client.ResumeQueue(ctx, c.queue))
		})
	}},
	{"EditTask", func(ctx context.Context, c *calls) error {
		return c.each(ctx, func(id dispatch.TaskID) error {
			return c.client.EditTask(ctx, c.queue, id, func(t *dispatch.Task) error { t.Timeout = time.Minute; return nil })
		})
	}},
	{"RescheduleTask", func(ctx context.Context, c *calls) error {
		return c.each(ctx, func(id dispatch.TaskID) error {
			return c.client.RescheduleTask(ctx, c.queue, id, time.Now().Add(farAway))
		})
	}},
	{"RunTask", func(ctx context.Context, c *calls) error {
		return c.each(ctx, func(id dispatch.TaskID) error { return c.client.RunTask(ctx, c.queue, id) })
	}},
	{"CancelTask", func(ctx context.Context, c *calls) error {
		return c.each(ctx, func(id dispatch.TaskID) error { return c.client.CancelTask(ctx, c.queue, id) })
	}},
	{"DeleteTask", func(ctx context.Context, c *calls) error {
		return c.each(ctx, func(id dispatch.TaskID) error { return c.client.DeleteTask(ctx, c.queue, id) })
	}},
	{"DeleteTasks of 100", func(ctx context.Context, c *calls) error {
		for ids := range slices.Chunk(c.take(10*callTimes), 100) {
			if _, err := c.store.DeleteTasks(ctx, c.queue, ids, dispatch.DeleteOptions{Tombstone: time.Hour}); err != nil {
				return err
			}
		}
		return nil
	}},
	{"ReplayTasks", func(ctx context.Context, c *calls) error {
		_, err := c.client.ReplayTasks(ctx, c.queue, c.dead[:callTimes], dispatch.ReplayOptions{})
		return err
	}},
	{"ReplayTasks, new IDs", func(ctx context.Context, c *calls) error {
		_, err := c.client.ReplayTasks(ctx, c.queue, c.dead[callTimes:2*callTimes], dispatch.ReplayOptions{NewIDs: true})
		return err
	}},
	{"DeleteDead", func(ctx context.Context, c *calls) error {
		_, err := c.client.DeleteDead(ctx, c.queue, dispatch.Filter{})
		return err
	}},
	{"Claim of 100", claimLeases(100)},
	{"Claim of 150", claimLeases(150)},
	{"Extend, Holds, Lease", extendLeases},
	{"ExpiredLeases, HeldLeases", listLeases},
	{"Settle of 150, retained", settleLeases},
	{"Cleanup", cleanUp},
	{"Hints, Look", func(ctx context.Context, c *calls) error {
		_, err := c.store.Hints(ctx, time.Hour)
		_, err2 := c.store.Look(ctx, []string{c.queue})
		return errors.Join(err, err2)
	}},
	{"PurgeQueue", func(ctx context.Context, c *calls) error { return c.client.PurgeQueue(ctx, c.queue) }},
	{"DeleteQueue", func(ctx context.Context, c *calls) error { return c.client.DeleteQueue(ctx, c.queue) }},
}

// handleSome runs a dispatcher until its handler has answered with err some times, and stops it.
func handleSome(ctx context.Context, c *calls, n int, err error) error {
	var handled atomic.Int64
	enough := make(chan struct{})
	d, failed := dispatch.New(c.store, dispatch.Options{Queues: []string{c.queue}})
	if failed != nil {
		return failed
	}
	d.Handle(noop.Kind, dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error {
		if handled.Add(1) == int64(n) {
			close(enough)
		}
		return err
	}))
	if err := d.Start(ctx); err != nil {
		return err
	}
	select {
	case <-enough:
	case <-ctx.Done():
	}
	return cmp.Or(ctx.Err(), d.Stop())
}
