package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
	"github.com/dispatchkit/dispatch/worker"
)

const (
	quietQueue = "quiet"
	quietEvery = 10 * time.Millisecond
	quietTasks = 500
	// slowReceiver is how long the noisy queue's receiver takes to answer.
	slowReceiver = 5 * time.Second
)

// noisyPickup is how long tasks of a quiet queue wait for their start, in ms and for 99 of 100 of them, beside a queue in
// which n tasks are due for a receiver that takes 5 s.
func noisyPickup(ctx context.Context, store *redisstore.Store, n int) (float64, error) {
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(slowReceiver):
		case <-r.Context().Done():
		}
	}))
	defer receiver.Close()
	waits := make(chan time.Duration, quietTasks)
	d, err := dispatch.New(store, dispatch.Options{
		DrainTimeout: time.Millisecond, Egress: worker.Egress{AllowPrivate: true},
	})
	if err != nil {
		return 0, err
	}
	d.Handle("noop", dispatch.HandlerFunc(func(_ context.Context, t *dispatch.Task) error {
		var sent time.Time
		if err := json.Unmarshal(t.Payload, &sent); err != nil {
			return dispatch.SkipRetry(err)
		}
		waits <- time.Since(sent)
		return nil
	}))
	if err := fillURL(ctx, d.Client, n, receiver.URL); err != nil {
		return 0, err
	}
	if err := d.Start(ctx); err != nil {
		return 0, err
	}
	defer d.Stop()
	all, err := quietTraffic(ctx, d.Client, waits)
	if err != nil {
		return 0, err
	}
	slices.Sort(all)
	p99 := all[len(all)*99/100]
	return float64(p99.Microseconds()) / 1000, store.DeleteQueue(ctx, quietQueue)
}

// quietTraffic enqueues a task every 10 ms and returns how long each waited for its start.
func quietTraffic(ctx context.Context, client *dispatch.Client, waits <-chan time.Duration) ([]time.Duration, error) {
	tick := time.NewTicker(quietEvery)
	defer tick.Stop()
	for range quietTasks {
		<-tick.C
		t, err := dispatch.NewTask("noop", time.Now())
		if err != nil {
			return nil, err
		}
		t.Queue = quietQueue
		if _, err := client.Enqueue(ctx, t); err != nil {
			return nil, err
		}
	}
	var all []time.Duration
	for len(all) < quietTasks {
		select {
		case w := <-waits:
			all = append(all, w)
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d quiet tasks started: %w", len(all), quietTasks, ctx.Err())
		}
	}
	return all, nil
}
