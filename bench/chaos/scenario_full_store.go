package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/servers"
)

func fullStore() Scenario {
	return Scenario{
		Name: "full-store",
		Doc: "the server reaches its maxmemory and evicts nothing: enqueue is refused with ErrStoreFull, tasks come to their ends and " +
			"come back all the same, so that the backlog drains, and then tasks are taken again",
		Args:  []string{"--maxmemory-policy", "noeviction"},
		Bound: Bound{Recovery: 3 * time.Second},
		Run:   runFullStore,
	}
}

// bulkQueue holds what fills the server.
const bulkQueue = "bulk"

func runFullStore(ctx context.Context, r *Run) error {
	workers, err := r.Workers(ctx, 2, patient)
	if err != nil {
		return err
	}
	if _, err := r.client.EnsureQueue(ctx, dispatch.Queue{Name: bulkQueue}); err != nil {
		return err
	}
	node := r.Set.Primary()
	for range Pick(r, 1, 6) {
		if err := r.client.PauseQueue(ctx, bulkQueue); err != nil {
			return err
		}
		used, err := usedMemory(node)
		if err != nil {
			return err
		}
		limit := used + Pick(r, 24<<20, 64<<20)
		if err := limitMemory(node, limit); err != nil {
			return err
		}
		r.Fault("full", node.Addr())
		if err := r.fill(ctx); err != nil {
			return err
		}
		if err := r.drainFull(ctx, node, limit, workers); err != nil {
			return err
		}
		if workers[0], err = r.Worker(ctx, patient); err != nil {
			return err
		}
	}
	return r.Drain(ctx, 30*time.Second)
}

// fill enqueues until the server is full.
func (r *Run) fill(ctx context.Context) error {
	load := Load{
		Pad: 4 << 10, Work: 40 * time.Millisecond, Timeout: userTimeout, FlakyShare: 0.2, SnoozeShare: 0.1, FatalShare: 0.05,
		NamedShare: 0.1,
	}
	random := rand.New(rand.NewPCG(r.Rand.Uint64(), 0))
	const batch, most = 100, 1_000_000
	for n := 0; n < most; n += batch {
		tasks := make([]dispatch.Task, batch)
		for i := range tasks {
			tasks[i] = load.draw(random, fmt.Sprintf("%d-%d", random.Uint64(), n+i), bulkQueue)
		}
		results, err := r.client.EnqueueMany(ctx, tasks)
		if err != nil {
			return err
		}
		switch err := results[0].Err; {
		case errors.Is(err, dispatch.ErrStoreFull):
			r.Note("full after %d tasks", n)
			return nil
		case err != nil:
			return fmt.Errorf("while the server fills up: %w", err)
		}
	}
	return fmt.Errorf("the server is not full after %d tasks", most)
}

// drainFull has workers work a backlog off while the server has no memory for anything, and one of them stop meanwhile; then the
// server has its limit back, and users can store tasks again.
func (r *Run) drainFull(ctx context.Context, node *servers.Node, limit int, workers []*Process) error {
	const less = 1 << 20 // than an empty server has
	if err := limitMemory(node, less); err != nil {
		return err
	}
	begun := time.Now()
	backlog, err := r.Live(ctx)
	if err != nil {
		return err
	}
	u := r.Users(ctx, r.client, enqueueNow, 10*time.Millisecond, queueNames(4)...)
	if err := r.client.ResumeQueue(ctx, bulkQueue); err != nil {
		return fmt.Errorf("a full store: %w", err)
	}
	if err := r.drainTo(ctx, backlog*2/3); err != nil {
		return err
	}
	if err := workers[0].Term(); err != nil {
		return err
	}
	if err := workers[0].Wait(ctx); err != nil {
		return err
	}
	if err := r.drainTo(ctx, backlog/3); err != nil {
		return err
	}
	over := time.Now()
	if err := limitMemory(node, limit); err != nil {
		return err
	}
	healed := time.Now()
	r.Fault("heal", node.Addr())
	r.Note("a backlog of %d was worked off to a third in %v", backlog, over.Sub(begun))
	if err := r.Recovered(ctx); err != nil {
		return err
	}
	u.Leave()
	r.Note("%v", u)
	return requireRefused(u, over, healed)
}

// drainTo waits until no more than so many tasks wait or run.
func (r *Run) drainTo(ctx context.Context, most int64) error {
	return Until(ctx, 20*time.Second, fmt.Sprintf("a full store drains to %d tasks", most), func() (bool, error) {
		live, err := r.Live(ctx)
		return live <= most, err
	})
}

// requireRefused wants all calls of users to have been refused for want of memory before the server got its limit back, which was
// between two instants, with an error that says that nothing was stored, and those that began after it to have succeeded.
func requireRefused(u *users, over, healed time.Time) error {
	refused := func(c userCalled) bool {
		return errors.Is(c.err, dispatch.ErrStoreFull) && !errors.Is(c.err, dispatch.ErrUncertain) && c.begun.Before(healed)
	}
	taken := u.Calls(func(c userCalled) bool { return c.err == nil && c.ended.Before(over) })
	switch n := len(u.Calls(refused)); {
	case n == 0:
		return errors.New("no call was refused, so that nothing is shown")
	case len(taken) > 0:
		return fmt.Errorf("a full store took a task: %v", taken[0])
	}
	return u.Content(refused)
}

func usedMemory(node *servers.Node) (int, error) {
	info, err := node.Command("INFO", "memory")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, "used_memory:"); ok {
			return strconv.Atoi(strings.TrimSpace(text))
		}
	}
	return 0, fmt.Errorf("INFO memory has no used_memory: %q", info)
}

func limitMemory(node *servers.Node, bytes int) error {
	if _, err := node.Command("CONFIG", "SET", "maxmemory", strconv.Itoa(bytes)); err != nil {
		return fmt.Errorf("CONFIG SET maxmemory: %w", err)
	}
	return nil
}
