package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// patient is a worker that bears an outage of the store of a few seconds without taking itself for dead, as one with the product's
// defaults does.
var patient = WorkerConfig{Stale: 12 * time.Second, LeaderTTL: 3 * time.Second}

// queueNames are names for n queues. In a cluster a few of them are on every master.
func queueNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("queue-%d", i+1)
	}
	return names
}

// settleDown is the end of a scenario whose fault is over: service becomes normal, the users leave, everything ends, and no call of
// theirs has failed that is not excused.
func (r *Run) settleDown(ctx context.Context, u *users, excuse func(userCalled) bool) error {
	if err := r.Recovered(ctx); err != nil {
		return errors.Join(u.Content(excuse), err)
	}
	return r.goHome(ctx, u, excuse)
}

// goHome is settleDown without a recovery to be measured.
func (r *Run) goHome(ctx context.Context, u *users, excuse func(userCalled) bool) error {
	u.Leave()
	r.Note("%v", u)
	return errors.Join(u.Content(excuse), r.Drain(ctx, 30*time.Second))
}
