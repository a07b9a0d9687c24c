package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
)

func clusterReshard() Scenario {
	return Scenario{
		Name: "cluster-reshard",
		Doc: "slots with tasks move between the masters of a cluster and back under load, that of the fleet among them, and one so slowly " +
			"that half of its keys are on either side: no call of a user fails within 5 s, nothing is lost, and nothing is done twice",
		Servers: Cluster,
		Bound:   Bound{Recovery: 3 * time.Second},
		Run:     runClusterReshard,
	}
}

func runClusterReshard(ctx context.Context, r *Run) error {
	if _, err := r.Workers(ctx, 2, patient); err != nil {
		return err
	}
	queues := queueNames(12)
	u := r.Users(ctx, r.Client(), anyCall, 10*time.Millisecond, queues...)
	hot := queues[r.Rand.IntN(len(queues))]
	err := r.Produce(ctx, Load{ // due while they move
		Queues: []string{hot}, Tasks: Pick(r, 3_000, 30_000), Batch: 100, Seed: r.Rand.Uint64(), DelayShare: 1, Delay: 6 * time.Second,
		FlakyShare: 0.1, Timeout: userTimeout, Pad: 200,
	})
	if err != nil {
		return err
	}
	loner := r.Users(ctx, r.Client(), postponing, time.Millisecond, loneQueue)
	eager := r.Users(ctx, r.Client(), enqueueNow, 3*time.Millisecond, hot) // some come when half of the slot's keys have left
	var away absences
	before := refusalsOf(r.Set.Nodes...)
	for range Pick(r, 2, 12) { // there and back
		if err := r.reshard(ctx, &away, hot, time.Duration(2200+r.Rand.IntN(300))*time.Millisecond); err != nil {
			return err
		}
		if err := r.reshard(ctx, &away, loneQueue, time.Duration(300+r.Rand.IntN(500))*time.Millisecond); err != nil {
			return err
		}
		for _, queue := range []string{"~", queues[r.Rand.IntN(len(queues))], queues[r.Rand.IntN(len(queues))]} {
			if err := r.reshard(ctx, &away, queue, 0); err != nil {
				return err
			}
		}
	}
	after := refusalsOf(r.Set.Nodes...)
	r.Note("refusals %v", after)
	if err := after.require(before, "MOVED", "ASK", "TRYAGAIN"); err != nil {
		return err
	}
	loner.Leave()
	eager.Leave()
	for t, err := range r.client.Tasks(ctx, loneQueue, dispatch.Filter{States: []dispatch.TaskState{dispatch.TaskWaiting}}) {
		if err != nil {
			return err
		}
		if err := r.client.RunTask(ctx, loneQueue, t.ID); err != nil {
			return err
		}
	}
	return errors.Join(r.settleDown(ctx, u, away.excuse), loner.Content(away.excuse), eager.Content(away.excuse))
}

// loneQueue has a single task that waits, so that its keys are empty whenever a script takes that out.
const loneQueue = "lone"

// reshard moves the slot of a queue to another master, at once or in a time, and waits until service is normal.
func (r *Run) reshard(ctx context.Context, away *absences, queue string, lasts time.Duration) error {
	name := key(queue, "due")
	slot, err := r.Set.Slot(name)
	if err != nil {
		return err
	}
	from, err := r.Set.MasterOf(name)
	if err != nil {
		return err
	}
	to, err := r.otherMaster(from)
	if err != nil {
		return err
	}
	r.Fault("reshard", to.Addr())
	begun := time.Now()
	if lasts > 0 {
		err = r.reshardSlowly(ctx, slot, from, to, lasts)
	} else {
		err = r.Set.MigrateSlot(slot, from, to)
	}
	if err != nil {
		return fmt.Errorf("slot %d of %s: %w", slot, queue, err)
	}
	r.Note("slot %d of %s moved from %s to %s", slot, queue, from.Addr(), to.Addr())
	away.add(r, begun)
	if now, err := r.Set.MasterOf(name); err != nil || now != to {
		return fmt.Errorf("slot %d is not on %s: %v", slot, to.Addr(), err)
	}
	return r.Recovered(ctx)
}
