package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// patience is how long any one thing may take.
const patience = 15 * time.Second

// await looks again and again until nothing is missing. Its error says what still was when time was up.
func await(ctx context.Context, missing func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		err := missing()
		if err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("%w; missing: %w", ctx.Err(), err)
		}
	}
}

// awaitLeader returns the process that leads, as soon as it is one of the fleet and not the one before.
func (s *story) awaitLeader(ctx context.Context, before *process) (leader *process, err error) {
	err = await(ctx, func() error {
		w, err := s.store.GetLeader(ctx)
		if err != nil {
			return err
		}
		if w != nil {
			leader = s.fleet.find(w.ID)
		}
		if leader == nil || leader == before {
			return errors.New("a leader")
		}
		return nil
	})
	return leader, err
}

// awaitDelivered waits until n tasks of a kind were delivered.
func (s *story) awaitDelivered(ctx context.Context, kind string, n int) error {
	return await(ctx, func() error {
		if got := s.ledger.delivered(kind); got < n {
			return fmt.Errorf("%d of %d tasks of kind %s", n-got, n, kind)
		}
		return nil
	})
}

// awaitLost waits until a dead worker holds nothing any more, and all that it held is reported lost.
func (s *story) awaitLost(ctx context.Context, dead *process, held int) error {
	return await(ctx, func() error {
		left, err := s.heldBy(ctx, dead.id)
		if err != nil {
			return err
		}
		if lost := len(s.ledger.lostBy(dead.id)); left > 0 || lost < held {
			return fmt.Errorf("%d of %d tasks that the dead worker held", max(left, held-lost), held)
		}
		return nil
	})
}

// awaitRedelivered waits until all that a dead worker has lost was delivered by another one.
func (s *story) awaitRedelivered(ctx context.Context, dead *process) error {
	return await(ctx, func() error {
		for _, id := range s.ledger.lostBy(dead.id) {
			if !s.ledger.deliveredByOther(id, dead.id) {
				return fmt.Errorf("task %s, which the dead worker has lost", id)
			}
		}
		return nil
	})
}

// awaitEmpty waits until no queue has any task.
func (s *story) awaitEmpty(ctx context.Context) error {
	return await(ctx, func() error {
		for _, queue := range []string{orderQueue, tickQueue} {
			c, err := s.client.Counts(ctx, queue)
			if err != nil {
				return err
			}
			if left := c.Ready + c.Scheduled + c.Running + c.Dead; left > 0 {
				return fmt.Errorf("%d tasks that are still in queue %s", left, queue)
			}
		}
		return nil
	})
}

// heldBy counts the tasks that a worker holds, as the store has it.
func (s *story) heldBy(ctx context.Context, id cluster.WorkerID) (held int, err error) {
	running := dispatch.Filter{States: []dispatch.TaskState{dispatch.TaskRunning}}
	for _, queue := range []string{orderQueue, tickQueue} {
		for t, err := range s.client.Tasks(ctx, queue, running) {
			if err != nil {
				return 0, err
			}
			if t.LeasedBy == id {
				held++
			}
		}
	}
	return held, nil
}
