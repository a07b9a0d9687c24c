package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

// farAway is when the scheduled half of a big backlog is due.
const farAway = 24 * time.Hour

// bigBacklog is what is measured on one big backlog, which takes long to store.
type bigBacklog struct {
	perClaim float64 // Redis CPU, µs per task that was claimed and settled
	slowest  call
}

// onBigBacklog stores n due tasks and n scheduled ones, claims and settles a fifth of the due ones, and then makes every
// kind of call. Both figures of a repeat come from the same backlog.
func onBigBacklog(ctx context.Context, e *env, store *redisstore.Store, n int) (bigBacklog, error) {
	return oncePerRepeat(e, "scale/backlog", func() (bigBacklog, error) {
		if err := fillBoth(ctx, store, n); err != nil {
			return bigBacklog{}, err
		}
		perClaim, err := claimSome(ctx, e, store, n/5)
		if err != nil {
			return bigBacklog{}, err
		}
		slowest, err := slowestCall(ctx, e, store)
		return bigBacklog{perClaim, slowest}, err
	})
}

func backlogPerClaim(ctx context.Context, e *env, store *redisstore.Store, n int) (float64, error) {
	b, err := onBigBacklog(ctx, e, store, n)
	return b.perClaim, err
}

func slowestScript(ctx context.Context, e *env, store *redisstore.Store, n int) (float64, error) {
	b, err := onBigBacklog(ctx, e, store, n)
	return b.slowest.micros, err
}

// smallPerClaim is the same as backlogPerClaim with a backlog of n due and n scheduled tasks. Half of the due ones are
// taken, several times, for one time would be too short to tell.
func smallPerClaim(ctx context.Context, e *env, store *redisstore.Store, n int) (float64, error) {
	const rounds = 5
	var sum float64
	for range rounds {
		if err := fillBoth(ctx, store, n); err != nil {
			return 0, err
		}
		perClaim, err := claimSome(ctx, e, store, n/2)
		if err != nil {
			return 0, err
		}
		sum += perClaim
		if err := store.DeleteQueue(ctx, queue); err != nil {
			return 0, err
		}
	}
	return sum / rounds, nil
}

func fillBoth(ctx context.Context, store *redisstore.Store, n int) error {
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		return err
	}
	later := time.Now().Add(farAway)
	return fill(ctx, client, 2*n, func(i int) dispatch.Task {
		t := noop
		if i%2 == 1 {
			t.ScheduleTime = later.Add(time.Duration(i) * time.Millisecond)
		}
		return t
	})
}

// claimSome runs a dispatcher until n tasks are settled and returns the server's processor time, in µs, for each.
func claimSome(ctx context.Context, e *env, store *redisstore.Store, n int) (_ float64, err error) {
	var settled atomic.Int64
	enough := make(chan struct{})
	d, err := dispatch.New(store, dispatch.Options{Observer: func(ev dispatch.Event) {
		if ev.Outcome == dispatch.Succeeded && settled.Add(1) == int64(n) {
			close(enough)
		}
	}})
	if err != nil {
		return 0, err
	}
	d.Handle(noop.Kind, dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { return nil }))
	before, err := redisCPU(ctx, e.redis())
	if err != nil {
		return 0, err
	}
	if err := d.Start(ctx); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Stop()) }()
	select {
	case <-enough:
	case <-ctx.Done():
		return 0, fmt.Errorf("%d of %d tasks are settled: %w", settled.Load(), n, ctx.Err())
	}
	after, err := redisCPU(ctx, e.redis())
	return float64((after - before).Nanoseconds()) / 1000 / float64(settled.Load()), err
}
