package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// probeQueue is where the probes of Recovered go. All workers serve it.
const probeQueue = "probe"

// Recovered is called when a fault has ended. It returns when service is normal: a task that is enqueued from then on was stored
// and has come to its end, and every queue whose tasks are overdue has handed some out. How long that took is the row's recovery,
// the longest of all calls. Much longer than Bound.Recovery is an error.
func (r *Run) Recovered(ctx context.Context) error {
	healed := time.Now()
	raw, err := r.Raw()
	if err != nil {
		return err
	}
	defer raw.Close()
	limit := 2*r.bound.Recovery + 10*time.Second
	id := ""
	err = Until(ctx, limit, "a probe is stored", func() (bool, error) {
		got, err := r.client.Enqueue(ctx, Work{}.Task(probeQueue))
		id = string(got)
		return err == nil, nil
	})
	if err != nil {
		return err
	}
	stuck, err := tokensOfOverdue(ctx, raw)
	if err != nil {
		return fmt.Errorf("after the fault: %w", err)
	}
	err = Until(ctx, limit, "a probe has ended", func() (bool, error) {
		there, err := raw.HExists(ctx, key(probeQueue, "tasks"), id).Result()
		return err == nil && !there, nil
	})
	if err != nil {
		return err
	}
	err = Until(ctx, limit, "all overdue queues move", func() (bool, error) {
		now, err := tokensOfOverdue(ctx, raw)
		for queue, token := range stuck {
			if now[queue] == token {
				return false, nil
			}
			delete(stuck, queue)
		}
		return err == nil, nil
	})
	r.Took(time.Since(healed))
	return err
}

// Took notes a recovery that the scenario has measured itself. The longest counts.
func (r *Run) Took(d time.Duration) {
	r.Note("service was normal after %v", d.Round(time.Millisecond))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recovery, r.recovered = max(r.recovery, d), true
}

// tokensOfOverdue is, for each queue with overdue tasks that is not paused, the last token that was handed out. It moves with every
// claim.
func tokensOfOverdue(ctx context.Context, raw redis.UniversalClient) (map[string]string, error) {
	queues, err := queuesOf(ctx, raw)
	if err != nil {
		return nil, err
	}
	tokens := map[string]string{}
	for _, queue := range queues {
		overdue, err := raw.ZCount(ctx, key(queue, "due"), "-inf", fmt.Sprint(time.Now().UnixMilli())).Result()
		if err != nil {
			return nil, err
		}
		meta, err := raw.HMGet(ctx, key(queue, "meta"), "token", "paused").Result()
		if err != nil {
			return nil, err
		}
		if paused := meta[1] != nil && meta[1] != ""; overdue > 0 && !paused {
			tokens[queue] = fmt.Sprint(meta[0])
		}
	}
	return tokens, nil
}

// prefix begins the names of all keys.
const prefix = "dispatch"

// key is the name of a key of a queue, or, with "~" for the queue, of what belongs to the whole fleet. The braces keep the keys of one
// queue in one slot of a cluster.
func key(queue, part string) string { return prefix + ":{" + queue + "}:" + part }

// queuesOf are the names of all queues.
func queuesOf(ctx context.Context, raw redis.UniversalClient) ([]string, error) {
	return raw.SMembers(ctx, key("~", "queues")).Result()
}

// heldBy are the tasks of a queue that a worker holds.
func heldBy(ctx context.Context, raw redis.UniversalClient, queue, worker string) (held []audit.TaskKey, err error) {
	leases, err := raw.HGetAll(ctx, key(queue, "leases")).Result()
	for id, lease := range leases {
		if f := strings.Fields(lease); len(f) > 1 && f[1] == worker {
			held = append(held, audit.TaskKey{Queue: queue, ID: id})
		}
	}
	return held, err
}

// Held are the tasks that a process holds under a lease, of all queues.
func (r *Run) Held(ctx context.Context, p *Process) (held []audit.TaskKey, err error) {
	raw, err := r.Raw()
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	queues, err := queuesOf(ctx, raw)
	if err != nil {
		return nil, err
	}
	for _, queue := range queues {
		tasks, err := heldBy(ctx, raw, queue, p.Worker())
		if err != nil {
			return nil, err
		}
		held = append(held, tasks...)
	}
	return held, nil
}

// LeftBy is how many tasks a process that was killed has left behind for another start that nothing in the ledger asks for: those
// that it holds, and those whose outcomes it has had stored and not lived to write down.
func (r *Run) LeftBy(ctx context.Context, p *Process) (int, error) {
	held, err := r.Held(ctx, p)
	if err != nil {
		return 0, err
	}
	h, err := audit.ReadOf(r.ledgerDir(), p.Who)
	if err != nil {
		return 0, err
	}
	left := map[audit.TaskKey]bool{}
	for i := range h.Events {
		switch e := &h.Events[i]; e.Kind {
		case audit.KindStart:
			left[e.Task()] = true
		case audit.KindOutcome:
			delete(left, e.Task())
		}
	}
	for _, task := range held {
		left[task] = true
	}
	return len(left), nil
}
