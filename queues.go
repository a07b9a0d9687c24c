package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// EnsureQueue creates a queue unless it exists, and says whether it did. A queue that exists is left as it is, so that
// a deploy never overwrites what an operator has changed; UpdateQueue changes it. Paused, CreatedAt and Version are
// ignored.
func (c *Client) EnsureQueue(ctx context.Context, q Queue) (created bool, err error) {
	if err := q.validate(); err != nil {
		return false, err
	}
	if err := c.checkDeadLetters(ctx, q); err != nil {
		return false, err
	}
	return c.acked.CreateQueue(ctx, q)
}

// UpdateQueue reads a queue, lets change modify it and stores the result, all over again when somebody else changed it
// meanwhile; so change may be called several times. Changes to Name, Paused, Draining, CreatedAt and Version are ignored. An
// error of change is returned as it is. The new settings are in force from the next claim on, on every process.
func (c *Client) UpdateQueue(ctx context.Context, name string, change func(*Queue) error) error {
	if change == nil {
		return fieldErrorf("UpdateQueue.change", "is nil")
	}
	for range conflictTries {
		current, err := c.Queue(ctx, name)
		if err != nil {
			return err
		}
		updated := *current
		if err := change(&updated); err != nil {
			return err
		}
		updated.Name, updated.Version = current.Name, current.Version
		if err := updated.validate(); err != nil {
			return err
		}
		if err := c.checkDeadLetters(ctx, updated); err != nil {
			return err
		}
		replaced, err := c.acked.ReplaceQueue(ctx, updated)
		if !happened(err) {
			return err
		}
		if replaced || err != nil {
			await(ctx, c.announce(Hint{Queue: name, Changed: true}))
			return err
		}
	}
	return ErrConflict
}

// Queue returns a queue, or ErrQueueNotFound.
func (c *Client) Queue(ctx context.Context, name string) (*Queue, error) {
	if err := validateQueueName("Queue.Name", name); err != nil {
		return nil, err
	}
	q, err := c.store.Queue(ctx, name)
	return q, named(err, name)
}

// Queues lists all queues, in no order. A queue that exists during the whole listing is listed, perhaps more than once.
// After an error the listing ends.
func (c *Client) Queues(ctx context.Context) iter.Seq2[*Queue, error] {
	return func(yield func(*Queue, error) bool) {
		for cursor := uint64(0); ; {
			names, next, err := c.store.Queues(ctx, cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, name := range names {
				q, err := c.store.Queue(ctx, name)
				if isNotFound(err) {
					continue // deleted meanwhile
				}
				if !yield(q, err) || err != nil {
					return
				}
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

// PauseQueue stops a queue from handing out tasks, or returns ErrQueueNotFound. Attempts that run go on, and tasks can
// be enqueued. Pausing a paused queue does nothing.
func (c *Client) PauseQueue(ctx context.Context, name string) error {
	return c.setState(ctx, name, QueuePaused)
}

// ResumeQueue ends a pause or a drain, or returns ErrQueueNotFound. Resuming a running queue does nothing.
func (c *Client) ResumeQueue(ctx context.Context, name string) error {
	err := c.setState(ctx, name, QueueRunning)
	if happened(err) {
		await(ctx, c.announce(Hint{Queue: name, Changed: true}))
	}
	return err
}

// drainPoll is how often DrainQueue counts the tasks at most.
const drainPoll = 100 * time.Millisecond

// DrainQueue has a queue take no new tasks, which are refused with ErrQueueDraining, and returns when those that it has
// are done with: none waits, for whatever time, and none runs. It returns ErrQueueNotFound, and ErrQueuePaused for a queue
// that is paused, whose tasks would wait for ever; that one goes on taking tasks. Should it be paused later, or ctx end, the
// queue goes on draining: ResumeQueue ends both.
func (c *Client) DrainQueue(ctx context.Context, name string) error {
	q, err := c.Queue(ctx, name)
	if err != nil {
		return err
	}
	if q.Paused {
		return named(ErrQueuePaused, name)
	}
	if err := c.setState(ctx, name, QueueDraining); err != nil {
		return err
	}
	for wait := drainPoll / 16; ; wait = min(2*wait, drainPoll) {
		counts, err := c.Counts(ctx, name)
		if err != nil {
			return err
		}
		waiting := counts.Ready + counts.Scheduled
		if waiting+counts.Running == 0 {
			return nil
		}
		if q, err := c.Queue(ctx, name); err != nil || q.Paused && waiting > 0 {
			return cmp.Or(err, named(ErrQueuePaused, name))
		}
		timer := c.clock.NewTimer(wait)
		select {
		case <-timer.Chan():
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func (c *Client) setState(ctx context.Context, name string, state QueueState) error {
	if err := validateQueueName("Queue.Name", name); err != nil {
		return err
	}
	return named(c.acked.SetState(ctx, name, state), name)
}

// DeleteQueue removes a queue with its settings, all its tasks and all names it remembers, or returns ErrQueueNotFound.
// The contexts of attempts that run end with ErrLeaseLost, and what they report is discarded. Enqueuing to the queue
// creates it anew.
func (c *Client) DeleteQueue(ctx context.Context, name string) error {
	if err := validateQueueName("Queue.Name", name); err != nil {
		return err
	}
	err := c.acked.DeleteQueue(ctx, name)
	if happened(err) {
		await(ctx, c.announce(Hint{Queue: name, Revoked: AllLeases}))
	}
	return named(err, name)
}

// PurgeQueue removes the tasks that wait in a queue and were enqueued before the call, or returns ErrQueueNotFound. Once
// the call has begun none of them starts; the call returns when all are removed. Attempts that run finish, but are not
// retried. Finished tasks that are retained stay. Names stay taken as if the tasks had ended.
func (c *Client) PurgeQueue(ctx context.Context, name string) error {
	if err := validateQueueName("Queue.Name", name); err != nil {
		return err
	}
	return named(c.acked.PurgeQueue(ctx, name, c.keep.dedup), name)
}

// Counts counts the tasks of a queue, or returns ErrQueueNotFound. It costs the same whatever the queue holds.
func (c *Client) Counts(ctx context.Context, name string) (Counts, error) {
	if err := validateQueueName("Queue.Name", name); err != nil {
		return Counts{}, err
	}
	counts, err := c.store.Counts(ctx, name)
	return counts, named(err, name)
}

// named says which queue or task an error is about.
func named(err error, name string) error {
	for _, known := range []error{ErrQueueNotFound, ErrTaskNotFound, ErrEntryNotFound, ErrTaskEnded, ErrNotWaiting, ErrQueuePaused} {
		if errors.Is(err, known) {
			return fmt.Errorf("%w: %s", err, name)
		}
	}
	return err
}
