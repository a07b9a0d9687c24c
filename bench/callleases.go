package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// handBatch is how many leases a dispatcher settles at once, at the most. It sweeps half as many at once.
const handBatch = 150

// claimLeases claims tasks ten times, budget at once. The default of a dispatcher is 100, and 150 is the most.
func claimLeases(budget int) func(context.Context, *calls) error {
	return func(ctx context.Context, c *calls) error {
		for range 10 {
			c.seq++
			reply, err := c.store.Claim(ctx, dispatch.ClaimRequest{
				Queue: c.queue, Worker: c.worker, Seq: c.seq, Budget: budget, Grace: 10 * time.Second,
			})
			if err != nil {
				return err
			}
			if len(reply.Leased) != budget {
				return fmt.Errorf("%d tasks were claimed, want %d", len(reply.Leased), budget)
			}
			c.leased = append(c.leased, reply.Leased...)
		}
		return nil
	}
}

func extendLeases(ctx context.Context, c *calls) error {
	for batch := range slices.Chunk(c.leased, handBatch) {
		var extensions []dispatch.Extension
		var held []dispatch.Held
		for _, l := range batch {
			extensions = append(extensions, dispatch.Extension{ID: l.Task.ID, Lease: l.Lease, For: time.Minute})
			held = append(held, dispatch.Held{ID: l.Task.ID, Lease: l.Lease})
		}
		_, err := c.store.Extend(ctx, c.queue, extensions)
		_, err2 := c.store.Holds(ctx, c.queue, held)
		_, err3 := c.store.Lease(ctx, c.queue, batch[0].Task.ID)
		if err := errors.Join(err, err2, err3); err != nil {
			return err
		}
	}
	return nil
}

func listLeases(ctx context.Context, c *calls) error {
	if _, _, err := c.store.ExpiredLeases(ctx, c.queue, handBatch/2); err != nil {
		return err
	}
	for cursor := uint64(0); ; {
		_, next, err := c.store.HeldLeases(ctx, c.queue, []cluster.WorkerID{c.worker}, cursor)
		if cursor = next; err != nil || cursor == 0 {
			return err
		}
	}
}

// settleLeases leaves tasks that are retained for so short a time that they are to be cleaned up at once.
func settleLeases(ctx context.Context, c *calls) error {
	for batch := range slices.Chunk(c.leased, handBatch) {
		var items []dispatch.Settlement
		for _, l := range batch {
			items = append(items, dispatch.Settlement{
				ID: l.Task.ID, Lease: l.Lease, Outcome: dispatch.Succeeded, After: time.Millisecond, Tombstone: time.Millisecond,
				Progress: &dispatch.Progress{Attempts: 1},
			})
		}
		c.seq++
		reply, err := c.store.Settle(ctx, dispatch.SettleRequest{Queue: c.queue, Worker: c.worker, Seq: c.seq, Items: items})
		if err != nil {
			return err
		}
		if slices.Contains(reply.Applied, false) {
			return errors.New("a lease taken by hand was not current")
		}
	}
	return nil
}

func cleanUp(ctx context.Context, c *calls) error {
	for more := true; more; {
		var err error
		if more, err = c.store.Cleanup(ctx, c.queue, 100); err != nil {
			return err
		}
	}
	return nil
}
