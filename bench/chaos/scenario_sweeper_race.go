package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

func sweeperRace() Scenario {
	return Scenario{
		Name: "sweeper-race",
		Doc: "many leases expire at one instant, behind entries that belong to no task, and three workers sweep them at once: each is " +
			"settled once as lost, its task runs, and nothing is left",
		Bound: Bound{},
		Run:   runSweeperRace,
	}
}

// ghost holds all leases: a worker that is nowhere, so that they can only expire.
const ghost = "w-ghost"

func runSweeperRace(ctx context.Context, r *Run) error {
	queues := []string{"mail", "report", "image", "audio", "video"}
	tasks := Pick(r, 5_000, 50_000)
	err := r.Produce(ctx, Load{
		Queues: queues, Tasks: tasks, Batch: 500, Seed: r.Rand.Uint64(), Work: 10 * time.Millisecond, Timeout: time.Minute,
	})
	if err != nil {
		return err
	}
	leased := 0
	for _, queue := range queues {
		n, err := r.haunt(ctx, queue)
		if err != nil {
			return err
		}
		leased += n
	}
	if leased != tasks {
		return fmt.Errorf("the ghost has leased %d of %d tasks", leased, tasks)
	}
	raw, err := r.Raw()
	if err != nil {
		return err
	}
	defer raw.Close()
	// Each of them takes itself for the leader, and so sweeps what has expired without waiting for another.
	workers, err := r.Workers(ctx, 3, WorkerConfig{Alone: true, Places: 200, Sweep: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	if err := r.expireAll(ctx, raw, queues); err != nil {
		return err
	}
	if err := r.Drain(ctx, Pick(r, 30*time.Second, 2*time.Minute)); err != nil {
		return err
	}
	return r.sweptOnce(workers, tasks)
}

// haunt leases all tasks of a queue for an hour, to nobody.
func (r *Run) haunt(ctx context.Context, queue string) (leased int, err error) {
	for seq := int64(1); ; seq++ {
		reply, err := r.store.Claim(ctx, dispatch.ClaimRequest{Queue: queue, Worker: ghost, Seq: seq, Budget: 150, Grace: time.Hour})
		if err != nil {
			return leased, err
		}
		if len(reply.Leased) == 0 {
			return leased, nil
		}
		leased += len(reply.Leased)
	}
}

// torn is how many entries there are of each kind before the leases of a queue: more than a sweep takes at once.
const torn = 150

// expireAll puts torn entries before the leases of each queue, as a crash or an operator's hand may leave them, and has all leases end
// now, with a note that says so.
func (r *Run) expireAll(ctx context.Context, raw redis.UniversalClient, queues []string) error {
	r.Fault("expire", "")
	now := time.Now().UnixMilli()
	for _, queue := range queues {
		ids, err := raw.ZRange(ctx, key(queue, "leased"), 0, -1).Result()
		if err != nil {
			return err
		}
		_, err = raw.TxPipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range ids {
				p.ZAdd(ctx, key(queue, "leased"), redis.Z{Score: float64(now), Member: id})
				if i%(len(ids)/10) == 0 { // a lease that nobody holds, of a task that is there
					p.ZAdd(ctx, key(queue, "leased"), redis.Z{Score: 3, Member: id})
					p.HDel(ctx, key(queue, "leases"), id)
				}
			}
			for i := range torn {
				nobody, nothing := fmt.Sprint("nobody-", i), fmt.Sprint("nothing-", i)
				p.ZAdd(ctx, key(queue, "leased"), redis.Z{Score: 1, Member: nobody}, redis.Z{Score: 2, Member: nothing})
				p.HSet(ctx, key(queue, "leases"), nothing, fmt.Sprintf("%d %s 1 1", i+1, ghost))
			}
			p.ZAdd(ctx, key("~", "active"), redis.Z{Score: float64(now), Member: queue})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sweptOnce checks that each lease that the ghost had was settled as lost, once, and that the workers did so side by side.
func (r *Run) sweptOnce(workers []*Process, tasks int) error {
	h, err := r.History()
	if err != nil {
		return err
	}
	swept, by := map[audit.TaskKey]int{}, map[string]int{}
	for _, e := range h.Events {
		if e.Kind == audit.KindOutcome && e.Outcome == audit.OutcomeLeaseLost {
			swept[e.Task()]++
			by[e.Who]++
		}
	}
	r.Note("leases swept by each: %v", by)
	for task, n := range swept {
		if n > 1 {
			return fmt.Errorf("task %s of queue %s was swept %d times", task.ID, task.Queue, n)
		}
	}
	if want := tasks - 10*5; len(swept) != want {
		return fmt.Errorf("%d leases were swept, not %d", len(swept), want)
	}
	if len(by) < 2 {
		return errors.New("one worker alone has swept, so there was no race")
	}
	return nil
}
