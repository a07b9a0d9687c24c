package dispatch

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// One script call takes about 3 µs of the store per task, so a batch of this size holds it for half a millisecond.
	enqueueBatchTasks = 200
	enqueueBatchBytes = 1 << 20
	// enqueueLanes is how many batches of one EnqueueMany are in flight: one is encoded while another is stored.
	enqueueLanes = 2
	// enqueuePatience bounds one call to the store, whose refusals (a cluster that moves, a store that loads) it
	// retries meanwhile.
	enqueuePatience = 5 * time.Second
)

// Result is what became of one task of EnqueueMany.
type Result struct {
	// ID is the task's, also with an error; it is empty only when the task is invalid and named no ID.
	ID TaskID
	// Err is nil when the task is stored. See Enqueue.
	Err error
}

// Existing says that the task was there already, under the ID that this one has: Err is ErrDuplicateTask.
func (r Result) Existing() bool { return errors.Is(r.Err, ErrDuplicateTask) }

// enqueuing is one Enqueue call that waits for its batch.
type enqueuing struct {
	ctx        context.Context // the caller's
	submission Submission
	done       chan enqueued // 1 buffered
}

func (e *enqueuing) size() int { return e.submission.Task.size() }

type enqueued struct {
	err error
	// announced is closed when workers have been told; nil when there is nothing to tell.
	announced <-chan struct{}
}

// Enqueue stores a task and returns its ID once the store has it and waiting workers have been told. Calls made at the
// same moment share one trip to the store, which is given up after 5 s.
//
// Errors: *FieldError for bad input; ErrUnschedulable for a task that fits no worker; ErrDuplicateTask when the name is
// taken; ErrQueueNotFound with StrictQueues; ErrQueueDraining; ErrStoreFull. With ErrUncertain, and when ctx ends
// meanwhile, the task may have been stored: the returned ID tells, and enqueuing it again under that ID stores it once.
// A task that has run to its end by then runs again, unless it is retained or its ID was chosen by the caller.
func (c *Client) Enqueue(ctx context.Context, t Task) (TaskID, error) {
	if err := ctx.Err(); err != nil {
		return t.ID, err
	}
	submission, err := c.submit(t)
	if err != nil {
		return t.ID, err
	}
	submission.Task = c.traceOf(ctx).onto(submission.Task)
	id := submission.ID
	e := &enqueuing{ctx: ctx, submission: submission, done: make(chan enqueued, 1)}
	c.enqueues.add(submission.Queue, e)
	select {
	case r := <-e.done:
		if r.announced != nil {
			await(ctx, r.announced)
		}
		return id, r.err
	case <-ctx.Done():
		return id, fmt.Errorf("%w: task %s may exist: %w", ErrUncertain, id, context.Cause(ctx))
	}
}

// EnqueueMany stores tasks, of any queues, in batches, and says for each what became of it: one that is refused does
// not hold up the others. The error is nil unless no task was tried because ctx had ended.
func (c *Client) EnqueueMany(ctx context.Context, tasks []Task) ([]Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	span := c.traceOf(ctx)
	results := make([]Result, len(tasks))
	batches := make(map[string]*bulk)
	for i, t := range tasks {
		submission, err := c.submit(t)
		results[i] = Result{ID: submission.ID, Err: err}
		if err != nil {
			continue
		}
		b := batches[submission.Queue]
		if b == nil {
			b = &bulk{queue: submission.Queue}
			batches[submission.Queue] = b
		}
		submission.Task = span.onto(submission.Task)
		b.submissions = append(b.submissions, submission)
		b.results = append(b.results, &results[i])
	}
	var wait sync.WaitGroup
	lanes := make(chan struct{}, enqueueLanes)
	for _, b := range batches {
		for len(b.submissions) > 0 {
			part := b.cut()
			if ctx.Err() != nil || b.failed.Load() {
				part.fail(cmp.Or(ctx.Err(), errNotTried))
				continue
			}
			lanes <- struct{}{}
			wait.Go(func() {
				if !c.storeBulk(ctx, part) {
					b.failed.Store(true)
				}
				<-lanes
			})
		}
	}
	wait.Wait()
	return results, nil
}

// bulk is tasks of one queue on their way into the store, and where their results go.
type bulk struct {
	queue       string
	submissions []Submission
	results     []*Result
	failed      atomic.Bool // a batch got no answer: the store is not asked for the rest
}

var errNotTried = errors.New("dispatch: not stored: the store did not answer to an earlier batch of the call")

func (b *bulk) fail(err error) {
	for _, r := range b.results {
		r.Err = err
	}
}

// cut takes one batch off b.
func (b *bulk) cut() *bulk {
	n := cutBatch(b.submissions, enqueueBatchTasks, enqueueBatchBytes, func(s Submission) int { return s.Task.size() })
	part := &bulk{queue: b.queue, submissions: b.submissions[:n], results: b.results[:n]}
	b.submissions, b.results = b.submissions[n:], b.results[n:]
	return part
}

// storeBulk stores one batch and says whether the store answered.
func (c *Client) storeBulk(ctx context.Context, b *bulk) bool {
	ctx, cancel := context.WithTimeout(ctx, enqueuePatience)
	defer cancel()
	reply, refused, err := c.storeTasks(ctx, b.queue, b.submissions, EnqueueOptions{Strict: c.strict})
	for i, r := range b.results {
		r.Err = cmp.Or(err, refused[i])
	}
	if announced := c.announceEnqueue(b.queue, reply, err); announced != nil {
		await(ctx, announced)
	}
	return err == nil
}

// sendEnqueues stores the calls that gathered for one queue. The store is not asked on behalf of any one caller, so no
// caller's context ends it.
func (c *Client) sendEnqueues(queue string, batch []*enqueuing) {
	ctx, cancel := context.WithTimeout(context.Background(), enqueuePatience)
	defer cancel()
	// Callers that gave up while their task was not on its way want it no more, and it was surely not stored.
	batch = slices.DeleteFunc(batch, func(e *enqueuing) bool { return e.ctx.Err() != nil })
	if len(batch) == 0 {
		return
	}
	submissions := make([]Submission, len(batch))
	for i, e := range batch {
		submissions[i] = e.submission
	}
	reply, refused, err := c.storeTasks(ctx, queue, submissions, EnqueueOptions{Strict: c.strict})
	announced := c.announceEnqueue(queue, reply, err)
	for i, e := range batch {
		if refused[i] != nil {
			e.done <- enqueued{err: refused[i]}
			continue
		}
		e.done <- enqueued{err: err, announced: announced}
	}
}

// submit checks a task and gives it an ID.
func (c *Client) submit(t Task) (Submission, error) {
	now := c.clock.Now()
	t, err := t.normalize(now)
	if err != nil {
		return Submission{Task: Task{ID: t.ID}}, err
	}
	if t.ID == "" && t.Unique == nil {
		t.ID = c.ids.next(now)
		return Submission{Task: t}, nil
	}
	var nonce [8]byte
	rand.Read(nonce[:])
	submission := Submission{Task: t, Named: true, Nonce: binary.BigEndian.Uint64(nonce[:])}
	if t.Unique != nil {
		submission.ID, submission.Window = uniqueID(&t), t.Unique.Window
	}
	return submission, nil
}

// announceEnqueue tells workers of tasks that were stored, if they have to know. After an uncertain call it tells them
// too, for the tasks may be there.
func (c *Client) announceEnqueue(queue string, reply EnqueueReply, err error) <-chan struct{} {
	switch {
	case errors.Is(err, ErrUncertain):
		reply = EnqueueReply{Moved: true}
	case err != nil:
		return nil
	}
	if reply.Moved || c.overdue(reply.Wait) {
		return c.announce(Hint{Queue: queue, Wait: max(reply.Wait, 0)})
	}
	return nil
}
