package dispatchtest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// patience bounds, in real time, what should take milliseconds.
const patience = 10 * time.Second

// NewDispatcher makes a dispatcher on the store's clock. It logs to the test and is stopped when the test ends. Register
// handlers on it; RunUntilIdle starts it.
func NewDispatcher(t testing.TB, store *Store, o dispatch.Options) *dispatch.Dispatcher {
	t.Helper()
	o.Clock = store.Clock
	if o.HeartbeatInterval == 0 && o.StaleJobThreshold == 0 {
		// Time moves in leaps, in which no heartbeat can get through.
		o.HeartbeatInterval, o.StaleJobThreshold = 5*time.Hour, 12*time.Hour
	}
	o.Egress.AllowPrivate = true // receivers listen on the loopback interface
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	d, err := dispatch.New(store, o)
	if err != nil {
		t.Fatalf("dispatchtest.NewDispatcher: %v", err)
	}
	drain := o.DrainTimeout
	if drain == 0 {
		drain = 25 * time.Second
	}
	t.Cleanup(func() { stop(t, store, d, drain) })
	return d
}

// stop stops a dispatcher. A handler that runs until its context ends would hold it for DrainTimeout, by a clock that
// stands still: so time moves on, in leaps between which there is real time for what each of them sets off.
func stop(t testing.TB, store *Store, d *dispatch.Dispatcher, drain time.Duration) {
	stopped := make(chan error, 1)
	go func() { stopped <- d.Stop() }()
	deadline := time.After(patience)
	for pause := 10 * time.Millisecond; ; pause = 500 * time.Millisecond {
		select {
		case err := <-stopped:
			if err != nil {
				t.Errorf("dispatchtest: dispatcher did not stop cleanly: %v", err)
			}
			return
		case <-time.After(pause):
			store.Advance(max(drain, 5*time.Second))
		case <-deadline:
			t.Errorf("dispatchtest: dispatcher did not stop within %v", patience)
			return
		}
	}
}

// RunUntilIdle starts the dispatcher, if it was not started yet, and returns when everything that is due has run, as far
// as the limits of the queues allow, and is settled. It never moves time: retries and later tasks wait for Advance.
func RunUntilIdle(t testing.TB, d *dispatch.Dispatcher) {
	t.Helper()
	if err := d.Start(context.Background()); err != nil && !errors.Is(err, dispatch.ErrStarted) {
		t.Fatalf("dispatchtest.RunUntilIdle: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := d.WaitIdle(ctx); err != nil {
		t.Fatalf("dispatchtest.RunUntilIdle: not idle after %v of real time (does a handler or receiver wait for Advance?): %v",
			patience, err)
	}
}
