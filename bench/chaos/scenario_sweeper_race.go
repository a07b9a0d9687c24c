package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/bench/chaos/faultproxy"
)

func sweeperRace() Scenario {
	return Scenario{
		Name: "sweeper-race",
		Doc: "many leases expire at one instant, behind entries that belong to no task, and three workers sweep them at once, of whom one " +
			"is frozen between what it reads and what it does: each is settled once as lost, its task runs, and nothing is left",
		Run: runSweeperRace,
	}
}

// ghost holds all leases: a worker that is nowhere, so that they can only expire.
const ghost = "w-ghost"

func runSweeperRace(ctx context.Context, r *Run) error {
	queues := []string{"mail", "report", "image", "audio", "video"}
	tasks := Pick(r, 5_000, 50_000)
	err := r.Produce(ctx, Load{
		Queues: queues, Tasks: tasks, Batch: 500, Seed: r.Rand.Uint64(), Work: 800 * time.Millisecond, Timeout: time.Minute,
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
	if err := r.expireAll(ctx, raw, queues); err != nil {
		return err
	}
	if err := r.race(ctx, len(queues)); err != nil {
		return err
	}
	if err := r.Drain(ctx, Pick(r, 30*time.Second, 2*time.Minute)); err != nil {
		return err
	}
	return r.sweptOnce(tasks)
}

// race has three workers sweep, each of which takes itself for the leader. The first one is frozen when it has asked what there is to
// sweep, and thawed when the others have swept the same and work on it.
func (r *Run) race(ctx context.Context, queues int) error {
	var book scriptBook
	r.Set.Primary().Proxy().Lose(faultproxy.Loss{Match: func(q faultproxy.Request) bool { // loses nothing: the book learns
		book.name(q)
		return false
	}})
	config := WorkerConfig{Alone: true, Places: 1000, Sweep: 200 * time.Millisecond, OwnProxy: true}
	slow, err := r.Worker(ctx, config)
	if err != nil {
		return err
	}
	asked, asks, settles := make(chan struct{}), atomic.Int64{}, atomic.Int64{}
	slow.Proxy().Delay(20 * time.Millisecond) // the answer is not there yet when it is frozen
	slow.Proxy().Lose(faultproxy.Loss{Match: func(q faultproxy.Request) bool {
		switch book.name(q) {
		case "leases":
			if asks.Add(1) == int64(queues) { // of each queue, as far as it asks them side by side
				close(asked)
			}
		case "settle":
			settles.Add(1)
		}
		return false
	}})
	select {
	case <-asked:
	case <-time.After(10 * time.Second):
		return errors.New("nobody has looked for leases that have ended")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := slow.Stop(); err != nil {
		return err
	}
	config.OwnProxy = false
	others, err := r.Workers(ctx, 2, config)
	if err != nil {
		return err
	}
	err = r.Await(ctx, 10*time.Second, "the others work on what they have swept", func(h *audit.History) bool {
		return count(h, func(e *audit.Event) bool { return e.Kind == audit.KindStart && e.Who == others[0].Who }) > 100
	})
	if err != nil {
		return err
	}
	before := settles.Load()
	if err := slow.Cont(); err != nil {
		return err
	}
	return Until(ctx, 10*time.Second, "the thawed one settles what it had read", func() (bool, error) {
		return settles.Load() > before, nil
	})
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

// expireAll has all leases end now, with a note that says so. Before those of all queues but the first two it puts torn entries, as an
// operator's hand may leave them; a sweep of the others meets leases at once.
func (r *Run) expireAll(ctx context.Context, raw redis.UniversalClient, queues []string) error {
	r.Fault("expire", "")
	now := time.Now().UnixMilli()
	for n, queue := range queues {
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
			if n >= 2 {
				tearLeases(ctx, p, queue)
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

// tearLeases puts entries before the leases of a queue: IDs that are leased to nobody, and leases of what has no record.
func tearLeases(ctx context.Context, p redis.Pipeliner, queue string) {
	for i := range torn {
		nobody, nothing := fmt.Sprint("nobody-", i), fmt.Sprint("nothing-", i)
		p.ZAdd(ctx, key(queue, "leased"), redis.Z{Score: 1, Member: nobody}, redis.Z{Score: 2, Member: nothing})
		p.HSet(ctx, key(queue, "leases"), nothing, fmt.Sprintf("%d %s 1 1", i+1, ghost))
	}
}

// sweptOnce checks that each lease that the ghost had was settled as lost, once, and that the workers did so side by side.
func (r *Run) sweptOnce(tasks int) error {
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
