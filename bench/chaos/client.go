package main

import (
	"context"
	"errors"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// Client is a client of the product that writes to the ledger what it is asked for and what it is answered, each before its caller
// hears of it. Calls that are not listed here go through unwritten. It is safe for concurrent use.
type Client struct {
	*dispatch.Client
	log *audit.Log
}

// Enqueue is dispatch.Client.Enqueue.
func (c *Client) Enqueue(ctx context.Context, t dispatch.Task) (dispatch.TaskID, error) {
	ask := c.ask(t)
	id, err := c.Client.Enqueue(ctx, t)
	c.ack(ask, id, err)
	return id, err
}

// EnqueueMany is dispatch.Client.EnqueueMany.
func (c *Client) EnqueueMany(ctx context.Context, tasks []dispatch.Task) ([]dispatch.Result, error) {
	asks := make([]audit.Event, len(tasks))
	for i, t := range tasks {
		asks[i] = c.ask(t)
	}
	results, err := c.Client.EnqueueMany(ctx, tasks)
	for i, ask := range asks {
		if err != nil {
			c.ack(ask, tasks[i].ID, err)
			continue
		}
		c.ack(ask, results[i].ID, results[i].Err)
	}
	return results, err
}

// CancelTask is dispatch.Client.CancelTask.
func (c *Client) CancelTask(ctx context.Context, queue string, id dispatch.TaskID) error {
	err := c.Client.CancelTask(ctx, queue, id)
	c.ended(queue, id, audit.OutcomeCancelled, err)
	return err
}

// DeleteTask is dispatch.Client.DeleteTask.
func (c *Client) DeleteTask(ctx context.Context, queue string, id dispatch.TaskID) error {
	err := c.Client.DeleteTask(ctx, queue, id)
	c.ended(queue, id, audit.OutcomeDeleted, err)
	return err
}

// PurgeQueue is dispatch.Client.PurgeQueue.
func (c *Client) PurgeQueue(ctx context.Context, queue string) error {
	err := c.Client.PurgeQueue(ctx, queue)
	c.ended(queue, "", audit.OutcomeDropped, err)
	return err
}

// DeleteQueue is dispatch.Client.DeleteQueue.
func (c *Client) DeleteQueue(ctx context.Context, queue string) error {
	err := c.Client.DeleteQueue(ctx, queue)
	c.ended(queue, "", audit.OutcomeDeleted, err)
	return err
}

// RunTask is dispatch.Client.RunTask.
func (c *Client) RunTask(ctx context.Context, queue string, id dispatch.TaskID) error {
	c.act("run", queue, id)
	return c.Client.RunTask(ctx, queue, id)
}

// RescheduleTask is dispatch.Client.RescheduleTask.
func (c *Client) RescheduleTask(ctx context.Context, queue string, id dispatch.TaskID, at time.Time) error {
	c.act("reschedule", queue, id)
	return c.Client.RescheduleTask(ctx, queue, id, at)
}

// ReplayTasks is dispatch.Client.ReplayTasks.
func (c *Client) ReplayTasks(
	ctx context.Context, queue string, ids []dispatch.TaskID, o dispatch.ReplayOptions,
) ([]dispatch.TaskID, error) {
	for _, id := range ids {
		c.act(audit.FaultReplay, queue, id)
	}
	return c.Client.ReplayTasks(ctx, queue, ids, o)
}

// act writes what an operator is about to do to a task.
func (c *Client) act(what, queue string, id dispatch.TaskID) {
	c.log.Append(audit.Event{Kind: audit.KindFault, Fault: what, Queue: queue, ID: string(id)})
}

// ended writes that an operator has ended a task, or all of a queue, or may have. Not found is what a repeated call may be answered.
func (c *Client) ended(queue string, id dispatch.TaskID, how string, err error) {
	e := audit.Event{Kind: audit.KindOutcome, Queue: queue, ID: string(id), Outcome: how}
	switch {
	case isUncertain(err):
		e.Result = audit.AckUncertain
	case err != nil && !errors.Is(err, dispatch.ErrTaskNotFound):
		return
	}
	c.log.Append(e)
}

// ask writes what is about to be asked for. A task without an ID of its own gets one only meanwhile, so that only what named tasks
// ask for can be found again, and nothing is written for others.
func (c *Client) ask(t dispatch.Task) audit.Event {
	began := time.Now().UnixMicro()
	e := audit.Event{Kind: audit.KindAsk, Queue: t.Queue, ID: string(t.ID), Named: t.ID != "" || t.Unique != nil}
	if e.Queue == "" {
		e.Queue = dispatch.DefaultQueue
	}
	switch {
	case t.Delay > 0:
		e.NotBefore = time.Now().Add(t.Delay).UnixMicro()
	case !t.ScheduleTime.IsZero():
		e.NotBefore = t.ScheduleTime.UnixMicro()
	}
	if e.ID != "" {
		c.log.Append(e)
	}
	e.Asked = began
	return e
}

func (c *Client) ack(e audit.Event, id dispatch.TaskID, err error) {
	e.Kind, e.At, e.Who, e.ID, e.Result = audit.KindAck, 0, "", string(id), answer(err)
	if err != nil {
		e.Text = err.Error()
	}
	c.log.Append(e)
}

// answer is the ledger's word for what an enqueue was answered.
func answer(err error) string {
	switch {
	case err == nil:
		return audit.AckStored
	case errors.Is(err, dispatch.ErrDuplicateTask):
		return audit.AckDuplicate
	case isUncertain(err):
		return audit.AckUncertain
	}
	return audit.AckRefused
}

// isUncertain says of an error that the call may have taken effect.
func isUncertain(err error) bool {
	return errors.Is(err, dispatch.ErrUncertain) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
