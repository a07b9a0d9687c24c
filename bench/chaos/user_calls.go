package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/dispatchkit/dispatch"
)

// userTimeout is that of the tasks of users: longer than any outage, so that no lease ends by one, and no longer, as that is how
// long a task stays leased whose end a failover has forgotten.
const userTimeout = 10 * time.Second

// anyCall is what a service does: half of its calls store tasks. The first one does, so that the queue is there for the others.
func anyCall(ctx context.Context, v *visit) error {
	if v.last == "" {
		return v.one(ctx)
	}
	switch n := v.random.IntN(10); {
	case n < 4:
		return v.one(ctx)
	case n < 5:
		return v.several(ctx)
	case n < 7:
		return v.read(ctx)
	}
	return v.reconsider(ctx)
}

// enqueueNow stores a task that is due at once.
func enqueueNow(ctx context.Context, v *visit) error { return v.one(ctx) }

// enqueueForSoon stores tasks that are due within two seconds, so that some wait at any time.
func enqueueForSoon(ctx context.Context, v *visit) error {
	t := v.task()
	t.Delay = time.Duration(v.random.IntN(2000)) * time.Millisecond
	return v.store(ctx, t)
}

// task is one that takes a few milliseconds, and now and then fails or puts itself off once.
func (v *visit) task() dispatch.Task {
	w := Work{For: time.Duration(v.random.IntN(5)) * time.Millisecond, Flaky: v.random.IntN(10) == 0, Snooze: v.random.IntN(20) == 0}
	t := w.Task(v.queue)
	t.Timeout = userTimeout
	return t
}

func (v *visit) store(ctx context.Context, t dispatch.Task) error {
	id, err := v.client.Enqueue(ctx, t)
	if err == nil {
		v.last = id
	}
	return err
}

func (v *visit) one(ctx context.Context) error { return v.store(ctx, v.task()) }

// several stores some tasks with one call.
func (v *visit) several(ctx context.Context) error {
	tasks := make([]dispatch.Task, 10)
	for i := range tasks {
		tasks[i] = v.task()
	}
	results, err := v.client.EnqueueMany(ctx, tasks)
	for _, r := range results {
		err = cmp.Or(err, r.Err)
	}
	return err
}

// read asks for what is known of a queue and of a task.
func (v *visit) read(ctx context.Context) error {
	if _, err := v.client.Counts(ctx, v.queue); err != nil {
		return err
	}
	if _, err := v.client.Queue(ctx, v.queue); err != nil {
		return err
	}
	_, err := v.client.Task(ctx, v.queue, v.last)
	return unlessAnswer(err)
}

// reconsider stores a task for later and then does something else with it.
func (v *visit) reconsider(ctx context.Context) error {
	t := v.task()
	t.Delay = 2 * time.Second
	if err := v.store(ctx, t); err != nil {
		return err
	}
	switch v.random.IntN(3) {
	case 0:
		return unlessAnswer(v.client.CancelTask(ctx, v.queue, v.last))
	case 1:
		return unlessAnswer(v.client.DeleteTask(ctx, v.queue, v.last))
	}
	return unlessAnswer(v.client.RescheduleTask(ctx, v.queue, v.last, time.Now()))
}

// postponing puts a task off again and again: the only one that its queue has.
func postponing(ctx context.Context, v *visit) error {
	const much = time.Hour
	if v.last != "" {
		return v.client.RescheduleTask(ctx, v.queue, v.last, time.Now().Add(much))
	}
	t := v.task()
	t.Delay = much
	return v.store(ctx, t)
}

// unlessAnswer leaves out what tells a user something. When a call was repeated because its reply was lost, the task that it
// has ended is not found.
func unlessAnswer(err error) error {
	for _, answer := range []error{dispatch.ErrTaskNotFound, dispatch.ErrTaskEnded, dispatch.ErrNotWaiting} {
		if errors.Is(err, answer) {
			return nil
		}
	}
	return err
}
