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
	enqueueBatchTasks = 150
	enqueueBatchBytes = 1 << 20
	// enqueueLanes is how many batches of one EnqueueMany are in flight: one is encoded, one is on its way, one is stored.
	enqueueLanes = 3
	// enqueueSecond is how many calls of Enqueue make a second batch at the least, while one is in flight.
	enqueueSecond = 8
	// enqueuePatience bounds one call to the store, whose refusals (a cluster that moves, a store that loads) it
	// retries meanwhile. With a Durability its Timeout comes on top.
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
// same moment share one trip to the store, which is given up after 5 s. With a Durability, replicas have the task by then
// too, or the trip takes up to its Timeout longer, and twice that on a server that has just started.
//
// Errors: *FieldError for bad input; ErrUnschedulable for a task that fits no worker; ErrDuplicateTask when the name is
// taken; ErrQueueNotFound with StrictQueues; ErrQueueDraining; ErrStoreFull. With ErrUncertain, of which ErrNotReplicated
// is one, and when ctx ends meanwhile, the task may have been stored: the returned ID tells, and enqueuing it again under
// that ID stores it once, and says ErrDuplicateTask only when replicas have it. A task that has run to its end by then runs
// again, unless it is retained, or the caller chose its ID and the dedup window is not over.
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
	m := many{client: c, ctx: ctx, lanes: make(chan struct{}, enqueueLanes), failed: make(map[string]*atomic.Bool)}
	gathered := make(map[string]*bulk)
	for i, t := range tasks {
		submission, err := c.submit(t)
		results[i] = Result{ID: submission.ID, Err: err}
		if err != nil {
			continue
		}
		submission.Task = span.onto(submission.Task)
		b := gathered[submission.Queue]
		if b != nil && !b.takes(&submission) {
			m.send(b) // while the next one is made
			b = nil
		}
		if b == nil {
			b = &bulk{queue: submission.Queue}
			gathered[submission.Queue] = b
		}
		b.add(submission, &results[i])
	}
	for _, b := range gathered {
		m.send(b)
	}
	m.wait.Wait()
	return results, nil
}

// many is one call of EnqueueMany.
type many struct {
	client *Client
	ctx    context.Context // the caller's
	wait   sync.WaitGroup
	lanes  chan struct{}
	failed map[string]*atomic.Bool // by queue: a batch got no answer, and the store is not asked for the rest
}

// send stores a batch, on a goroutine that ends with it; it waits for a lane.
func (m *many) send(b *bulk) {
	failed := m.failed[b.queue]
	if failed == nil {
		failed = new(atomic.Bool)
		m.failed[b.queue] = failed
	}
	if m.ctx.Err() != nil || failed.Load() {
		b.fail(cmp.Or(m.ctx.Err(), errNotTried))
		return
	}
	m.lanes <- struct{}{}
	m.wait.Go(func() {
		if !m.client.storeBulk(m.ctx, b) {
			failed.Store(true)
		}
		<-m.lanes
	})
}

var errNotTried = errors.New("dispatch: not stored: the store did not acknowledge an earlier batch of the call")

// bulk is a batch of tasks of one queue on their way into the store, and where their results go.
type bulk struct {
	queue       string
	submissions []Submission
	results     []*Result
	bytes       int
}

// takes says whether a batch that has tasks has room for one more. The first always goes in. cutBatch has the same rule for
// what has gathered already.
func (b *bulk) takes(s *Submission) bool {
	return len(b.submissions) < enqueueBatchTasks && b.bytes+s.Task.size() <= enqueueBatchBytes
}

func (b *bulk) add(s Submission, r *Result) {
	b.submissions = append(b.submissions, s)
	b.results = append(b.results, r)
	b.bytes += s.Task.size()
}

func (b *bulk) fail(err error) {
	for _, r := range b.results {
		r.Err = err
	}
}

// storeBulk stores one batch and says whether the store answered.
func (c *Client) storeBulk(ctx context.Context, b *bulk) bool {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	reply, refused, err := c.storeTasks(ctx, c.acked, b.queue, b.submissions, EnqueueOptions{Strict: c.strict})
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
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
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
	reply, refused, err := c.storeTasks(ctx, c.acked, queue, submissions, EnqueueOptions{Strict: c.strict})
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
