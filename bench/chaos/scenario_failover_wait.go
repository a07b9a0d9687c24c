package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
)

func failoverWait() Scenario {
	return Scenario{
		Name: "failover-wait",
		Doc: "a primary is killed whose replica lags behind, with clients that ask for one replica: nothing that they were acknowledged is " +
			"lost, and while no replica follows every call says that what it stored is not replicated",
		Servers: Replicated,
		Bound:   Bound{Recovery: 4 * time.Second, MayLose: (*Run).Forgotten, Duplicates: (*Run).Allowed, Unexplained: (*Run).Allowed},
		Run:     runFailoverWait,
	}
}

// replicaTimeout is how long a replica has. A call that begins while none answers takes up to three times that, as it waits for
// those before it.
const replicaTimeout = 700 * time.Millisecond

// alone is a time in which no replica was in step.
type alone struct {
	*lag
	back time.Time // of the old primary, as a replica
}

// settles is how long a replica may be slow to answer once its primary counts it again, on a machine that is busy.
const settles = 500 * time.Millisecond

func runFailoverWait(ctx context.Context, r *Run) error {
	if _, err := r.Workers(ctx, 2, patient); err != nil {
		return err
	}
	durable, err := r.ClientOf(r.store, dispatch.ClientOptions{Durability: dispatch.Durability{Replicas: 1, Timeout: replicaTimeout}})
	if err != nil {
		return err
	}
	u := r.Users(ctx, durable, enqueueForSoon, 10*time.Millisecond, queueNames(8)...)
	var times []alone
	for range Pick(r, 1, 8) {
		if !Sleep(ctx, time.Duration(1500+r.Rand.IntN(1000))*time.Millisecond) {
			return context.Cause(ctx)
		}
		a, err := r.leaveAlone(ctx)
		if err != nil {
			return err
		}
		times = append(times, a)
	}
	if !Sleep(ctx, time.Second) {
		return context.Cause(ctx)
	}
	notReplicated := func(c userCalled) bool {
		return errors.Is(c.err, dispatch.ErrNotReplicated) && slices.ContainsFunc(times, func(a alone) bool {
			return c.ended.After(a.paused) && c.begun.Before(a.back.Add(settles))
		})
	}
	if err := r.goHome(ctx, u, notReplicated); err != nil {
		return err
	}
	return requireHonest(u, times)
}

// leaveAlone has a primary die whose replica is behind, and waits until the next one has a replica.
func (r *Run) leaveAlone(ctx context.Context) (a alone, err error) {
	old := r.Set.Primary()
	if a.lag, err = r.failOverBehind(ctx, 4*replicaTimeout+time.Duration(r.Rand.IntN(1000))*time.Millisecond); err != nil {
		return a, err
	}
	r.MayForget(a.paused, a.promoted, false, nil)
	if err := r.Recovered(ctx); err != nil {
		return a, err
	}
	f, err := r.forgot(a.lag)
	if err != nil {
		return a, err
	}
	r.Allow(f.attempts)
	err = r.revivePrimary(ctx, old)
	a.back = time.Now()
	return a, err
}

// requireHonest wants no call to have been acknowledged while the replica was paused, and some to have said that they were not.
func requireHonest(u *users, times []alone) error {
	for _, a := range times {
		during := u.Calls(func(c userCalled) bool { return c.begun.After(a.deaf) && c.ended.Before(a.killed) })
		lies := slices.DeleteFunc(slices.Clone(during), func(c userCalled) bool { return c.err != nil })
		switch {
		case len(lies) > 0:
			return fmt.Errorf("%d calls were acknowledged while no replica read: %v", len(lies), lies[0])
		case len(during) == 0:
			return errors.New("no call was made while the replica was paused, so that nothing is shown")
		}
	}
	return nil
}
