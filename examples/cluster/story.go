package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/redisstore"
)

// story is one run of the example.
type story struct {
	store  *redisstore.Store
	client *dispatch.Client
	ledger *ledger
	fleet  fleet
	orders int
}

// tell is the run from the first process to the last.
func (s *story) tell(ctx context.Context, redisURL string) error {
	s.orders = 300
	if os.Getenv("DISPATCH_EXAMPLES") == "short" {
		s.orders = 150
	}
	if err := s.fleet.start(ctx, workers, redisURL, s.ledger.note); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{s.beginWork, s.crash, s.endWork, s.stop} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("delivered %d/%d\n", s.ledger.delivered("order"), s.orders)
	return nil
}

// beginWork starts the ticks and the orders, and returns in the middle of the work.
func (s *story) beginWork(ctx context.Context) error {
	leader, err := s.awaitLeader(ctx, nil)
	if err != nil {
		return err
	}
	say("%d workers are up, and %s leads", workers, leader)

	entry := dispatch.Entry{Name: tickEntry, Spec: "@every 1s", Task: dispatch.Task{Queue: tickQueue, Kind: "tick"}}
	if err := s.client.Schedule(ctx, entry); err != nil {
		return err
	}
	if err := s.awaitDelivered(ctx, "tick", 2); err != nil {
		return err
	}
	say("a cron entry ticks every second")

	quick := dispatch.RetryConfig{MinBackoff: 200 * time.Millisecond}
	if _, err := s.client.EnsureQueue(ctx, dispatch.Queue{Name: orderQueue, Retry: quick}); err != nil {
		return err
	}
	tasks := make([]dispatch.Task, s.orders)
	for i := range tasks {
		// By its lease alone, a task of a dead worker would wait for more than this minute. It is the missing heartbeat
		// that brings it back within seconds.
		tasks[i] = dispatch.Task{Queue: orderQueue, Kind: "order", Timeout: time.Minute}
	}
	results, err := s.client.EnqueueMany(ctx, tasks)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
	}
	say("%d orders are enqueued", s.orders)
	return s.awaitDelivered(ctx, "order", s.orders/4)
}

// crash kills the leader, and returns when another one has put everything in order.
func (s *story) crash(ctx context.Context) error {
	leader, err := s.awaitLeader(ctx, nil)
	if err != nil {
		return err
	}
	ticks := s.ledger.delivered("tick")
	leader.kill()
	killed := time.Now()
	time.Sleep(100 * time.Millisecond) // the last it sent may still be on its way into Redis
	held, err := s.heldBy(ctx, leader.id)
	if err != nil {
		return err
	}
	say("killed %s by SIGKILL in the middle of %d tasks", leader, held)

	// The lock of the dead leader ends with its TTL.
	next, err := s.awaitLeader(ctx, leader)
	if err != nil {
		return err
	}
	say("takeover: %s leads, %d ms after the kill", next, time.Since(killed).Milliseconds())

	// The new leader misses the heartbeat of the old one. What that held has failed, and is due for a retry.
	if err := s.awaitLost(ctx, leader, held); err != nil {
		return err
	}
	say("reclaim: %d tasks of %s are settled as lease_lost, %d ms after the kill",
		len(s.ledger.lostBy(leader.id)), leader.name, time.Since(killed).Milliseconds())
	if err := s.awaitRedelivered(ctx, leader); err != nil {
		return err
	}
	say("all of these were delivered again by the other workers")
	return s.awaitDelivered(ctx, "tick", ticks+4) // those that came due meanwhile, and some more
}

// endWork waits for what is left, and checks the ticks.
func (s *story) endWork(ctx context.Context) error {
	if err := s.awaitDelivered(ctx, "order", s.orders); err != nil {
		return err
	}
	if err := s.client.DeleteEntry(ctx, tickEntry); err != nil {
		return err
	}
	if err := s.awaitEmpty(ctx); err != nil {
		return err
	}
	t, err := s.ledger.ticks()
	if err != nil {
		return err
	}
	say("cron: %d ticks from %s to %s, each exactly once; one came %d ms late, because nobody led",
		t.count, t.first.Format(time.TimeOnly), t.last.Format(time.TimeOnly), t.latest.Milliseconds())
	// Those twice were done, and their worker died before it could settle them.
	say("all orders are delivered; %d of them were done twice", s.ledger.repeated("order"))
	return nil
}

// stop drains the workers that are left. They leave nothing behind, not even their rows in the registry.
func (s *story) stop(ctx context.Context) error {
	if err := s.fleet.stop(); err != nil {
		return err
	}
	rows, err := s.store.ListWorkers(ctx)
	if err != nil {
		return err
	}
	for _, p := range s.fleet.living() {
		if slices.ContainsFunc(rows, func(w *cluster.Worker) bool { return w.ID == p.id }) {
			return fmt.Errorf("%s has stopped and is still registered", p)
		}
	}
	say("the other workers were told to stop by SIGTERM, and have drained")
	return nil
}
