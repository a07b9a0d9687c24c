package dispatch

import (
	"context"
	"errors"
	"slices"
)

// How many dead tasks one call of the store replays or deletes. It holds the store for about half a millisecond if they
// are of 1 KiB or less; a replay writes them, too.
const (
	replayBatch = 50
	deleteBatch = 100
)

// ReplayOptions say how dead tasks are replayed. The zero value is ready for use.
type ReplayOptions struct {
	// NewIDs gives each task a generated ID, so that the store, receivers and logs take it for another one. A named task
	// then is a named one no more, and its old name is free once its dedup window is over. Off, tasks keep their IDs.
	NewIDs bool
}

// ReplayTasks makes dead tasks wait again, due now, as if they had just been enqueued: with a new budget of attempts, a
// new CreatedAt, and without the history of the attempts that they have had. It returns for each ID the one under which
// the task waits now, or "" when there was no such dead task.
//
// After an error the tasks before it wait again, as the returned IDs say; with ErrUncertain up to fifty more of them
// may. With NewIDs a lost answer is asked for again.
func (c *Client) ReplayTasks(ctx context.Context, queue string, ids []TaskID, o ReplayOptions) ([]TaskID, error) {
	if err := validateQueueName("Task.Queue", queue); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := validateTaskID("Task.ID", id); err != nil {
			return nil, err
		}
	}
	waiting := make([]TaskID, 0, len(ids))
	var err error
	for part := range slices.Chunk(ids, replayBatch) {
		var replayed []TaskID
		replayed, err = c.replayBatch(ctx, queue, part, o)
		if waiting = append(waiting, replayed...); err != nil {
			break
		}
	}
	return append(waiting, make([]TaskID, len(ids)-len(waiting))...), err
}

// replayBatch replays some tasks and returns the IDs under which they wait, of fewer when there is an error.
func (c *Client) replayBatch(ctx context.Context, queue string, ids []TaskID, o ReplayOptions) ([]TaskID, error) {
	tasks := make([]Replay, len(ids))
	for i, id := range ids {
		tasks[i].ID = id
		if o.NewIDs {
			tasks[i].NewID = c.ids.next(c.clock.Now())
		}
	}
	reply, err := c.acked.ReplayTasks(ctx, queue, tasks)
	waiting := make([]TaskID, len(reply.Replayed))
	for i, replayed := range reply.Replayed {
		switch {
		case replayed && o.NewIDs:
			waiting[i] = tasks[i].NewID
		case replayed:
			waiting[i] = tasks[i].ID
		}
	}
	if reply.Moved || errors.Is(err, ErrUncertain) {
		await(ctx, c.announce(Hint{Queue: queue, Wait: max(reply.Wait, 0)}))
	}
	return waiting, err
}

// ReplayDead is ReplayTasks for all dead tasks that match a filter, whose States are ignored. It lists them first, page by
// page, and holds their IDs, some 50 bytes for each task; so one that dies again meanwhile is replayed once. It returns
// how many wait again, also with an error.
func (c *Client) ReplayDead(ctx context.Context, queue string, f Filter, o ReplayOptions) (replayed int, err error) {
	ids, err := c.deadIDs(ctx, queue, f)
	if err != nil {
		return 0, err
	}
	for part := range slices.Chunk(ids, replayBatch) {
		waiting, err := c.replayBatch(ctx, queue, part, o)
		for _, id := range waiting {
			if id != "" {
				replayed++
			}
		}
		if err != nil {
			return replayed, err
		}
	}
	return replayed, nil
}

// DeleteDead removes all dead tasks that match a filter, whose States are ignored. It lists them first, as ReplayDead does,
// and leaves alone what is not dead any more when its turn comes. It returns how many it has removed, also with an error;
// with ErrUncertain up to a hundred more may be gone.
func (c *Client) DeleteDead(ctx context.Context, queue string, f Filter) (deleted int, err error) {
	ids, err := c.deadIDs(ctx, queue, f)
	if err != nil {
		return 0, err
	}
	for part := range slices.Chunk(ids, deleteBatch) {
		removed, err := c.acked.DeleteTasks(ctx, queue, part, DeleteOptions{DeadOnly: true})
		for _, done := range removed {
			if done {
				deleted++
			}
		}
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// deadIDs lists the dead tasks that match a filter, each once.
func (c *Client) deadIDs(ctx context.Context, queue string, f Filter) ([]TaskID, error) {
	f.States = []TaskState{TaskDead}
	var ids []TaskID
	for t, err := range c.Tasks(ctx, queue, f) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, t.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
