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

// tear is one way in which the keys of a queue come to contradict each other. The task that it is done to is due.
type tear struct {
	name string
	do   func(ctx context.Context, p redis.Pipeliner, queue, id string)
	runs bool // the task is to run all the same; otherwise there is nothing left to run
	// swept: it is in the way of a sweep, which has the whole queue repaired. So these have a queue of their own, and only the look
	// at the other one, which counts, finds the rest.
	swept bool
}

func (t tear) queue() string {
	if t.swept {
		return sweptQueue
	}
	return tornQueue
}

var tears = []tear{
	{name: "indexed without a record", do: func(ctx context.Context, p redis.Pipeliner, queue, id string) {
		p.HDel(ctx, key(queue, "tasks"), id)
	}},
	{name: "a record in no index", do: func(ctx context.Context, p redis.Pipeliner, queue, id string) {
		p.ZRem(ctx, key(queue, "due"), id)
	}, runs: true},
	{name: "leased to nobody", do: func(ctx context.Context, p redis.Pipeliner, queue, id string) {
		p.ZRem(ctx, key(queue, "due"), id)
		p.ZAdd(ctx, key(queue, "leased"), redis.Z{Score: 1, Member: id})
	}, runs: true, swept: true},
	{name: "a lease without an end", do: func(ctx context.Context, p redis.Pipeliner, queue, id string) {
		p.ZRem(ctx, key(queue, "due"), id)
		p.HSet(ctx, key(queue, "leases"), id, ghostLease(id))
	}, runs: true},
	{name: "due and leased", do: func(ctx context.Context, p redis.Pipeliner, queue, id string) {
		p.ZAdd(ctx, key(queue, "leased"), redis.Z{Score: 1, Member: id})
		p.HSet(ctx, key(queue, "leases"), id, ghostLease(id))
	}, runs: true},
	{name: "progress without a record", do: func(ctx context.Context, p redis.Pipeliner, queue, id string) {
		p.HDel(ctx, key(queue, "tasks"), id)
		p.ZRem(ctx, key(queue, "due"), id)
		p.HSet(ctx, key(queue, "state"), id, "\x01\x00\x00\x00\x01\x80")
	}},
	{name: "a lease without a record", do: func(ctx context.Context, p redis.Pipeliner, queue, id string) {
		p.HDel(ctx, key(queue, "tasks"), id)
		p.ZRem(ctx, key(queue, "due"), id)
		p.HSet(ctx, key(queue, "leases"), id, ghostLease(id))
		p.ZAdd(ctx, key(queue, "leased"), redis.Z{Score: 1, Member: id})
	}, swept: true},
	{name: "kept without a record", do: func(ctx context.Context, p redis.Pipeliner, queue, id string) {
		p.HDel(ctx, key(queue, "tasks"), id)
		p.ZRem(ctx, key(queue, "due"), id)
		p.ZAdd(ctx, key(queue, "dead"), redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: id})
	}},
}

// ghostLease is the lease of a worker that is not there. No two have the same token.
func ghostLease(id string) string {
	return fmt.Sprintf("%d ghost 1 1", 1+nameHash(id)%1_000_000_000)
}

// tear enqueues tasks to paused queues, tears some in each way and has the queues go on.
func (h *hostile) tear(ctx context.Context, raw redis.UniversalClient) error {
	for i := range 40 { // so that the leader, who looks at one queue in four seconds, needs minutes, unless it has reason to hurry
		if _, err := h.client.EnsureQueue(ctx, dispatch.Queue{Name: fmt.Sprintf("spare-%d", i)}); err != nil {
			return err
		}
	}
	for _, queue := range []string{tornQueue, sweptQueue} {
		if _, err := h.client.EnsureQueue(ctx, dispatch.Queue{Name: queue}); err != nil {
			return err
		}
		if err := h.client.PauseQueue(ctx, queue); err != nil {
			return err
		}
	}
	for _, t := range tears {
		for range 3 {
			id, err := h.client.Client.Enqueue(ctx, Work{}.Task(t.queue()))
			if err != nil {
				return err
			}
			if t.runs { // then it is a task like others, and the checker follows it
				h.Log.Append(audit.Event{Kind: audit.KindAck, Queue: t.queue(), ID: string(id), Result: audit.AckStored})
			}
			if _, err := raw.TxPipelined(ctx, func(p redis.Pipeliner) error { t.do(ctx, p, t.queue(), string(id)); return nil }); err != nil {
				return err
			}
			h.torn = append(h.torn, tornTask{t, id})
		}
	}
	return errors.Join(h.client.ResumeQueue(ctx, tornQueue), h.client.ResumeQueue(ctx, sweptQueue))
}

type tornTask struct {
	tear
	id dispatch.TaskID
}

// mended waits until nothing is left of the torn tasks.
func (h *hostile) mended(ctx context.Context, raw redis.UniversalClient, limit time.Duration) error {
	var left string
	err := Until(ctx, limit, "torn entries are repaired", func() (bool, error) {
		left = ""
		for _, t := range h.torn {
			for _, part := range []string{"tasks", "leases", "state"} {
				if raw.HExists(ctx, key(t.queue(), part), string(t.id)).Val() {
					left += fmt.Sprintf("%s in %s; ", t.name, part)
				}
			}
			for _, part := range []string{"due", "leased", "dead"} {
				if raw.ZScore(ctx, key(t.queue(), part), string(t.id)).Err() == nil {
					left += fmt.Sprintf("%s in %s; ", t.name, part)
				}
			}
		}
		return left == "", nil
	})
	if err != nil {
		return fmt.Errorf("broken: %w: %s", err, left)
	}
	return nil
}
