package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dispatchkit/dispatch"
)

type operator struct {
	client  *dispatch.Client
	printer *printer
}

// pauseAndRun stops a queue, runs one of its tasks, and lets the others go.
func (o operator) pauseAndRun(ctx context.Context) error {
	if err := o.client.PauseQueue(ctx, queue); err != nil {
		return err
	}
	var ids []dispatch.TaskID
	for _, title := range []string{"bill", "letter", "poster"} {
		id, err := o.enqueue(ctx, title)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if err := o.expect(ctx, "the queue is paused", "3 waiting (bill, letter, poster)"); err != nil {
		return err
	}

	// The other two are just as due, and stay where they are.
	if err := o.client.RunTask(ctx, queue, ids[2]); err != nil {
		return err
	}
	if err := o.await(ctx, ids[2], dispatch.TaskSucceeded); err != nil {
		return err
	}
	if err := o.expect(ctx, "one is run all the same", "2 waiting (bill, letter), 1 succeeded (poster)"); err != nil {
		return err
	}

	if err := o.client.ResumeQueue(ctx, queue); err != nil {
		return err
	}
	for _, id := range ids[:2] {
		if err := o.await(ctx, id, dispatch.TaskSucceeded); err != nil {
			return err
		}
	}
	return o.expect(ctx, "the queue is resumed", "3 succeeded (bill, letter, poster)")
}

// cancel ends a task in the middle of its work.
func (o operator) cancel(ctx context.Context) error {
	id, err := o.enqueue(ctx, endless)
	if err != nil {
		return err
	}
	if _, err := receive(ctx, o.printer.started); err != nil {
		return err
	}
	if err := o.expect(ctx, "something endless runs", "1 running (pi), 3 succeeded (bill, letter, poster)"); err != nil {
		return err
	}
	if err := o.client.CancelTask(ctx, queue, id); err != nil {
		return err
	}
	cause, err := receive(ctx, o.printer.stopped)
	if err != nil {
		return err
	}
	if !errors.Is(cause, dispatch.ErrCancelled) {
		return fmt.Errorf("the context of the cancelled task ended with %v", cause)
	}
	if err := o.await(ctx, id, dispatch.TaskCancelled); err != nil {
		return err
	}
	return o.expect(ctx, "it is cancelled", "3 succeeded (bill, letter, poster), 1 cancelled (pi)")
}

// replay gives what has failed for good another chance, once the fault is mended.
func (o operator) replay(ctx context.Context) error {
	o.printer.jammed.Store(true)
	id, err := o.enqueue(ctx, "atlas")
	if err != nil {
		return err
	}
	if err := o.await(ctx, id, dispatch.TaskDead); err != nil {
		return err
	}
	err = o.expect(ctx, "one fails at every attempt",
		"3 succeeded (bill, letter, poster), 1 dead (atlas), 1 cancelled (pi)")
	if err != nil {
		return err
	}

	o.printer.jammed.Store(false)
	var dead []dispatch.TaskID
	for t, err := range o.client.Tasks(ctx, queue, dispatch.Filter{States: []dispatch.TaskState{dispatch.TaskDead}}) {
		if err != nil {
			return err
		}
		if t.Err != nil { // a task that another version wrote, for example
			return t.Err
		}
		last := t.Progress.History[len(t.Progress.History)-1]
		fmt.Printf("%30s%s was attempted %d times: %s\n", "", t.Payload, t.Progress.Attempts, last.Error)
		dead = append(dead, t.ID)
	}
	replayed, err := o.client.ReplayTasks(ctx, queue, dead, dispatch.ReplayOptions{})
	if err != nil {
		return err
	}
	if len(replayed) != 1 || replayed[0] != id {
		return fmt.Errorf("%v is replayed, want %s", replayed, id)
	}
	if err := o.await(ctx, id, dispatch.TaskSucceeded); err != nil {
		return err
	}
	return o.expect(ctx, "it is replayed", "4 succeeded (atlas, bill, letter, poster), 1 cancelled (pi)")
}

func (o operator) enqueue(ctx context.Context, title string) (dispatch.TaskID, error) {
	task, err := dispatch.NewTask("print", title)
	if err != nil {
		return "", err
	}
	task.Queue = queue
	return o.client.Enqueue(ctx, task)
}

// await returns when a task has ended, and fails unless it has ended in that state.
func (o operator) await(ctx context.Context, id dispatch.TaskID, want dispatch.TaskState) error {
	t, err := o.client.Wait(ctx, queue, id)
	if err == nil && t.State != want {
		err = fmt.Errorf("%s is %s, want %s", t.Payload, t.State, want)
	}
	return err
}

// expect prints where all tasks are, and fails unless they are where they should be.
func (o operator) expect(ctx context.Context, step, want string) error {
	c, err := o.client.Counts(ctx, queue)
	if err != nil {
		return err
	}
	titles := make(map[dispatch.TaskState][]string)
	for t, err := range o.client.Tasks(ctx, queue, dispatch.Filter{}) {
		if err != nil {
			return err
		}
		titles[t.State] = append(titles[t.State], strings.Trim(string(t.Payload), `"`))
	}
	var parts []string
	for _, part := range []struct {
		state dispatch.TaskState
		count int64
	}{
		{dispatch.TaskWaiting, c.Ready + c.Scheduled}, {dispatch.TaskRunning, c.Running},
		{dispatch.TaskSucceeded, c.Succeeded}, {dispatch.TaskDead, c.Dead}, {dispatch.TaskCancelled, c.Cancelled},
	} {
		if names := titles[part.state]; part.count > 0 || len(names) > 0 {
			slices.Sort(names) // a listing has no order
			parts = append(parts, fmt.Sprintf("%d %s (%s)", part.count, part.state, strings.Join(names, ", ")))
		}
	}
	got := strings.Join(parts, ", ")
	fmt.Printf("%-30s%s\n", step+":", got)
	if got != want {
		return fmt.Errorf("want %s", want)
	}
	return nil
}
