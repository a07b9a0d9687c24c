package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/redisstore"
)

// call is one kind of call of the public interface, and what the server took for its slowest command on the average.
type call struct {
	name, command string
	micros        float64
}

// callTimes is how often a call that concerns one task is made.
const callTimes = 200

// kindOfCall makes one kind of call, several times where one says little.
type kindOfCall struct {
	name string
	do   func(ctx context.Context, c *calls) error
}

// calls is what calls are made on: a queue with a big backlog, and some of its tasks. Each kind takes tasks of its own.
type calls struct {
	queue  string
	store  *redisstore.Store
	client *dispatch.Client
	ids    []dispatch.TaskID
	dead   []dispatch.TaskID

	worker cluster.WorkerID // under which leases are taken by hand
	seq    int64
	leased []dispatch.Leased
}

func (c *calls) task() dispatch.Task {
	t := noop
	t.Queue = c.queue
	return t
}

func (c *calls) take(n int) []dispatch.TaskID {
	taken := c.ids[:n]
	c.ids = c.ids[n:]
	return taken
}

func (c *calls) each(ctx context.Context, do func(id dispatch.TaskID) error) error {
	for _, id := range c.take(callTimes) {
		if err := cmp.Or(ctx.Err(), do(id)); err != nil {
			return err
		}
	}
	return nil
}

// slowestCall makes all kinds of calls on the queue, and returns the one whose slowest command takes the most time on the
// average. All are made on a small queue first, for the first call of a script brings and compiles its text.
func slowestCall(ctx context.Context, e *env, store *redisstore.Store) (call, error) {
	if _, err := makeCalls(ctx, e, store, "warm-up"); err != nil {
		return call{}, err
	}
	made, err := makeCalls(ctx, e, store, queue)
	if err != nil {
		return call{}, err
	}
	slices.SortFunc(made, func(a, b call) int { return cmp.Compare(b.micros, a.micros) })
	var list []string
	for _, m := range made {
		list = append(list, fmt.Sprintf("%s %.0f (%s)", m.name, m.micros, m.command))
	}
	e.note("scale/slowest_script_us", "µs per call of each kind's slowest command in the last repeat: %s", strings.Join(list, ", "))
	return made[0], nil
}

// makeCalls makes one kind of call after the other, with the server's statistics reset in between.
func makeCalls(ctx context.Context, e *env, store *redisstore.Store, queue string) ([]call, error) {
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		return nil, err
	}
	c := &calls{queue: queue, store: store, client: client, worker: cluster.NewWorkerID()}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	var made []call
	for _, kind := range kindsOfCalls {
		if err := e.redis().ConfigResetStat(ctx).Err(); err != nil {
			return nil, err
		}
		if err := kind.do(ctx, c); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
		stats, err := readCommandStats(ctx, e.redis())
		if err != nil {
			return nil, err
		}
		made = append(made, slowestCommand(kind.name, stats))
	}
	return made, nil
}

// slowestCommand leaves out what the bench itself asks.
func slowestCommand(name string, stats commandStats) call {
	slowest := call{name: name}
	for command, stat := range stats.byName {
		if command != "info" && command != "config|resetstat" && stat.calls > 0 && stat.mean() > slowest.micros {
			slowest.command, slowest.micros = command, stat.mean()
		}
	}
	return slowest
}

// prepare stores the tasks that the calls are about.
func (c *calls) prepare(ctx context.Context) error {
	const chosen = 30 * callTimes
	for i := range chosen {
		c.ids = append(c.ids, dispatch.TaskID(fmt.Sprintf("chosen-%d", i)))
	}
	later := time.Now().Add(farAway)
	return fill(ctx, c.client, chosen, func(i int) dispatch.Task {
		t := c.task()
		t.ID, t.ScheduleTime = c.ids[i], later
		return t
	})
}
