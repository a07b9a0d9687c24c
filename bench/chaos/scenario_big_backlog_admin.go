package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
)

func bigBacklogAdmin() Scenario {
	return Scenario{
		Name: "big-backlog-admin",
		Doc: "a queue with a million tasks that are due later and a flow that is due now, while operators pause, list, inspect, count, " +
			"update, edit, reschedule, run, cancel and delete in it, replay and purge others: no call takes longer than its bound, and what " +
			"is left is what nobody has ended",
		Run: runBigBacklogAdmin,
	}
}

// The queues of big-backlog-admin.
const (
	heapQueue  = "heap"  // the backlog, and a part of the flow
	flowQueue  = "mail"  // the rest of the flow
	binQueue   = "bin"   // is filled and purged
	graveQueue = "grave" // has dead tasks, which are replayed and die again
)

func runBigBacklogAdmin(ctx context.Context, r *Run) error {
	o := &office{Run: r, calls: map[string]*callTimes{}}
	if err := o.pile(ctx, Pick(r, 50_000, 1_000_000)); err != nil {
		return err
	}
	if _, err := r.Workers(ctx, 2, WorkerConfig{RetentionFailed: 10 * time.Minute}); err != nil {
		return err
	}
	if err := o.fillGrave(ctx, 60); err != nil {
		return err
	}
	producer, err := r.Producer(ctx, Load{
		Queues: []string{heapQueue, flowQueue}, Rate: 300, Batch: 3, Seed: r.Rand.Uint64(), Work: 10 * time.Millisecond,
		FlakyShare: 0.05, SnoozeShare: 0.05, DelayShare: 0.1, Delay: time.Second, Timeout: 20 * time.Second,
	})
	if err != nil {
		return err
	}
	if err := o.administer(ctx, Pick(r, 6*time.Second, time.Minute)); err != nil {
		return err
	}
	if err := producer.Finish(ctx); err != nil {
		return err
	}
	if err := o.settleAccounts(ctx); err != nil {
		return err
	}
	if err := r.Drain(ctx, 20*time.Second); err != nil {
		return err
	}
	return o.judge()
}

// administer has four operators work at once, one list the backlog and one purge another queue, for a while.
func (o *office) administer(ctx context.Context, lasts time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	until := time.Now().Add(lasts)
	var wait sync.WaitGroup
	desk := func(work func(random *rand.Rand) error) {
		random := rand.New(rand.NewPCG(o.Rand.Uint64(), 0))
		wait.Go(func() {
			for ctx.Err() == nil && time.Now().Before(until) {
				if err := work(random); err != nil {
					cancel(err)
				}
			}
		})
	}
	for range 4 {
		desk(func(random *rand.Rand) error { return o.act(ctx, random) })
	}
	desk(func(*rand.Rand) error { return o.list(ctx) })
	desk(func(random *rand.Rand) error { return o.purge(ctx, random, Pick(o.Run, 2_000, 50_000)) })
	wait.Wait()
	return context.Cause(ctx)
}

// settleAccounts waits until the flow is over, and compares what is left of the backlog with what was done to it.
func (o *office) settleAccounts(ctx context.Context) error {
	if err := o.client.ResumeQueue(ctx, heapQueue); err != nil {
		return err
	}
	var counts dispatch.Counts
	err := Until(ctx, 30*time.Second, "what is due has been worked off", func() (bool, error) {
		soon, err := o.dueBefore(ctx, heapQueue, time.Now().Add(pileDelay/2))
		if err != nil || soon > 0 {
			return false, err
		}
		counts, err = o.client.Counts(ctx, heapQueue)
		return counts.Running == 0, err
	})
	if err != nil {
		return err
	}
	want := int64(o.piled - o.cancelled - o.deleted - o.ran)
	o.Note("of %d tasks %d were cancelled, %d deleted and %d run; %d are left: %+v", o.piled, o.cancelled, o.deleted, o.ran, want, counts)
	switch {
	case counts.Scheduled != want:
		return fmt.Errorf("lost: %d tasks of the backlog are left, and there should be %d", counts.Scheduled, want)
	case counts.TotalCancelled != int64(o.cancelled):
		return fmt.Errorf("miscounted: %d tasks are said to be cancelled, and %d were", counts.TotalCancelled, o.cancelled)
	case o.cancelled == 0 || o.deleted == 0 || o.ran == 0 || o.purges == 0 || o.replays == 0 || o.listed == 0:
		return errors.New("not all of it was done")
	}
	// Not by the client that writes to the ledger, where it would be the end of the flow as well.
	if err := o.timed("purge of the backlog", 5*time.Second+time.Duration(want)*200*time.Microsecond, func() error {
		return o.client.Client.PurgeQueue(ctx, heapQueue)
	}); err != nil {
		return err
	}
	_, err = o.client.DeleteDead(ctx, graveQueue, dispatch.Filter{})
	return err
}
