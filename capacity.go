package dispatch

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

const (
	maxResources      = 16
	maxResourceAmount = 1 << 53
	// rosterAge is how old a client's view of the workers may be when it judges what fits, and refusalAge how old it may
	// be when it refuses a task.
	rosterAge  = 5 * time.Second
	refusalAge = 500 * time.Millisecond
)

var resourcePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`)

func validateResources(field string, r cluster.Resources) error {
	if len(r) > maxResources {
		return fieldErrorf(field, "has %d names; at most %d", len(r), maxResources)
	}
	for name, amount := range r {
		if !resourcePattern.MatchString(name) {
			return fieldErrorf(field, "name %q does not match %s", clip(name, 80), resourcePattern)
		}
		if amount < 0 || amount > maxResourceAmount {
			return fieldErrorf(field, "%s is %d, not between 0 and 2^53", name, amount)
		}
	}
	return nil
}

// UnschedulableError says which requirement of a task no live worker of its queue can meet.
type UnschedulableError struct {
	// Queue is the task's.
	Queue string
	// Resource is a name of which the task needs Need, and Worker, the one that comes closest to what it needs, has Best.
	Resource   string
	Need, Best int64
	Worker     cluster.WorkerID
}

// Error says all of it.
func (e *UnschedulableError) Error() string {
	if e.Best == 0 {
		return fmt.Sprintf("dispatch: unschedulable: the task needs %s=%d; no worker that comes close in queue %s has any",
			e.Resource, e.Need, e.Queue)
	}
	return fmt.Sprintf("dispatch: unschedulable: the task needs %s=%d; the best worker of queue %s, %s, has %d",
		e.Resource, e.Need, e.Queue, e.Worker, e.Best)
}

// Unwrap is ErrUnschedulable.
func (e *UnschedulableError) Unwrap() error { return ErrUnschedulable }

// fleetView is what a client knows of queues and workers, to judge what fits.
type fleetView struct {
	mu       sync.Mutex // guards what follows
	requires map[string]cluster.Resources
	workers  []*cluster.Worker
	readAt   time.Time
}

func (v *fleetView) requiresOf(queue string) cluster.Resources {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.requires[queue]
}

func (v *fleetView) setRequires(queue string, r cluster.Resources) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.requires == nil {
		v.requires = make(map[string]cluster.Resources)
	}
	if len(r) == 0 {
		delete(v.requires, queue)
		return
	}
	v.requires[queue] = r
}

// live returns the active workers, as they were no longer ago than age.
func (c *Client) live(ctx context.Context, age time.Duration) ([]*cluster.Worker, error) {
	v := &c.fleet
	now := c.clock.Now()
	v.mu.Lock()
	workers, readAt := v.workers, v.readAt
	v.mu.Unlock()
	if !readAt.IsZero() && now.Sub(readAt) < age {
		return workers, nil
	}
	all, err := c.registry.ListWorkers(ctx)
	if err != nil {
		return nil, err
	}
	workers = slices.DeleteFunc(all, func(w *cluster.Worker) bool { return w.State != cluster.StateActive })
	v.mu.Lock()
	v.workers, v.readAt = workers, now
	v.mu.Unlock()
	return workers, nil
}

// storeTasks stores tasks of one queue by way of an Enqueuer, each with what it requires, and says for each why it was refused;
// the error is about all of them. Those that a queue takes although it drains, the letters of dead tasks, are taken although
// no worker has what they require, too: it may be what they have died of.
func (c *Client) storeTasks(ctx context.Context, to Enqueuer, queue string, tasks []Submission, o EnqueueOptions) (
	reply EnqueueReply, refused []error, err error,
) {
	refused = make([]error, len(tasks))
	for range conflictTries {
		o.Requires = c.fleet.requiresOf(queue)
		fitting, err := c.fitting(ctx, queue, tasks, o, refused)
		if err != nil {
			return EnqueueReply{}, refused, err
		}
		if len(fitting) < len(tasks) && len(o.Requires) > 0 {
			// Nothing is refused for what the queue required once.
			current, err := c.requiresNow(ctx, queue)
			if err != nil {
				return EnqueueReply{}, refused, err
			}
			if !maps.Equal(current, o.Requires) {
				clear(refused)
				continue
			}
		}
		if len(fitting) == 0 {
			return EnqueueReply{}, refused, nil
		}
		reply, err := to.Enqueue(ctx, queue, fitting, o)
		if err != nil {
			return reply, refused, err
		}
		if reply.Refused {
			c.fleet.setRequires(queue, reply.Requires)
			clear(refused)
			continue
		}
		n := 0
		for i := range tasks {
			if refused[i] == nil {
				if reply.Duplicate[n] {
					refused[i] = ErrDuplicateTask
				}
				n++
			}
		}
		return reply, refused, nil
	}
	return EnqueueReply{}, refused, ErrConflict
}

// requiresNow asks the store what a queue requires.
func (c *Client) requiresNow(ctx context.Context, queue string) (cluster.Resources, error) {
	q, err := c.store.Queue(ctx, queue)
	switch {
	case isNotFound(err):
		q = new(Queue)
	case err != nil:
		return nil, err
	}
	c.fleet.setRequires(queue, q.Requires)
	return q.Requires, nil
}

// fitting returns the tasks that fit some worker, with their requirements completed from the queue's, and notes the
// error of each other one.
func (c *Client) fitting(ctx context.Context, queue string, tasks []Submission, o EnqueueOptions, refused []error) (
	[]Submission, error,
) {
	if len(o.Requires) == 0 && !slices.ContainsFunc(tasks, func(s Submission) bool { return len(s.Requires) > 0 }) {
		return tasks, nil
	}
	var fit []Submission
	for _, age := range []time.Duration{rosterAge, refusalAge} {
		var workers []*cluster.Worker
		if !o.Draining {
			var err error
			if workers, err = c.live(ctx, age); err != nil {
				return nil, err
			}
		}
		fit = make([]Submission, 0, len(tasks))
		for i, s := range tasks {
			s.Requires = cluster.Merge(o.Requires, s.Requires)
			if refused[i] = unschedulable(queue, s.Requires, workers); refused[i] == nil {
				fit = append(fit, s)
			}
		}
		if len(fit) == len(tasks) {
			break // nothing to refuse
		}
	}
	return fit, nil
}

// unschedulable says whether a need fits no single worker that serves a queue. It cannot be said when one of them states
// no capacity, or nobody serves the queue at the moment.
func unschedulable(queue string, need cluster.Resources, workers []*cluster.Worker) error {
	var closest *UnschedulableError
	fewest := 0
	for _, w := range workers {
		if !w.Serves(queue) {
			continue
		}
		if w.Capacity == nil {
			return nil
		}
		missing := 0
		var first *UnschedulableError
		for _, name := range slices.Sorted(maps.Keys(need)) {
			if need[name] <= w.Capacity[name] {
				continue
			}
			missing++
			if first == nil {
				first = &UnschedulableError{Queue: queue, Resource: name, Need: need[name], Best: w.Capacity[name], Worker: w.ID}
			}
		}
		if missing == 0 {
			return nil
		}
		if closest == nil || missing < fewest || missing == fewest && first.Resource == closest.Resource && first.Best > closest.Best {
			closest, fewest = first, missing
		}
	}
	if closest == nil {
		return nil
	}
	return closest
}
