package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/worker"
)

const (
	noisyQueue = "noisy"
	quietRate  = 100 // tasks per second
	// slowReceiver is how long the noisy queue's receiver takes to answer.
	slowReceiver = 5 * time.Second
)

// noisyPickup is how long tasks of a quiet queue wait for their start beside a queue in which many are due for a
// receiver that takes 5 s.
func noisyPickup(ctx context.Context, e *env, n int) (*histogram, error) {
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // until then the server does not notice that the client has gone
		select {
		case <-time.After(slowReceiver):
		case <-r.Context().Done():
		}
	}))
	defer receiver.Close()
	quiet := min(n/20, 500)
	w, err := newWatch(ctx, e, quiet, dispatch.Options{
		DrainTimeout: time.Millisecond, Egress: worker.Egress{AllowPrivate: true},
	})
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := fill(ctx, w.client, n, func(int) dispatch.Task {
		return dispatch.Task{Queue: noisyQueue, URL: receiver.URL, Payload: payload}
	}); err != nil {
		return nil, err
	}
	if err := w.dispatcher.Start(ctx); err != nil {
		return nil, err
	}
	err = openLoop(ctx, poisson(quiet, quietRate, rand.Uint64()), sleepers, func(ctx context.Context, _ int, intended time.Time) error {
		return w.send(ctx, intended)
	})
	if err != nil {
		return nil, err
	}
	return w.finish(ctx)
}
