package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
)

const (
	quickJob = "quick"
	slowJob  = "slow"
)

// worker runs the tasks of all tenants, whenever their queues come into being.
type worker struct {
	client *dispatch.Client

	mu      sync.Mutex
	seen    map[string]bool          // tenants that were served
	waits   map[string]time.Duration // of the quiet tenants, in this round
	want    int                      // how many these are to be
	started chan []time.Duration     // gets them, sorted, when they are complete
	running int                      // slow tasks now
	peak    int                      // and at most, in this round
	noise   chan struct{}            // is closed when the first of this round runs
}

func startWorker(ctx context.Context, store dispatch.Store) (w *worker, stop func() error, err error) {
	w = &worker{seen: make(map[string]bool)}
	d, err := dispatch.New(store, dispatch.Options{GlobalConcurrency: places})
	if err != nil {
		return nil, nil, err
	}
	w.client = d.Client
	dispatch.HandleFunc(d, quickJob, w.quick)
	d.Handle(slowJob, dispatch.HandlerFunc(w.slowly))
	return w, d.Stop, d.Start(ctx)
}

// expectQuiet begins a round of n quick tasks, each of another tenant. The channel gets their waits when all have begun.
func (w *worker) expectQuiet(n int) <-chan []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits, w.want, w.started = make(map[string]time.Duration, n), n, make(chan []time.Duration, 1)
	return w.started
}

func (w *worker) quick(ctx context.Context, sent time.Time) error {
	wait := time.Since(sent)
	attempt, _ := dispatch.AttemptFrom(ctx)
	tenant := attempt.Task.Queue
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, again := w.waits[tenant]; again {
		return nil // any task may come twice
	}
	w.seen[tenant], w.waits[tenant] = true, wait
	if len(w.waits) == w.want {
		sorted := make([]time.Duration, 0, w.want)
		for _, wait := range w.waits {
			sorted = append(sorted, wait)
		}
		slices.Sort(sorted)
		w.started <- sorted
	}
	return nil
}

// expectNoise begins a round of slow tasks, when none is left of the one before. The channel is closed when the first
// runs.
func (w *worker) expectNoise() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.peak, w.noise = 0, make(chan struct{})
	return w.noise
}

func (w *worker) slowly(ctx context.Context, t *dispatch.Task) error {
	w.count(t.Queue, +1)
	defer w.count(t.Queue, -1)
	_, err := receive(ctx, time.After(slowness))
	return err
}

// count counts the slow tasks that run.
func (w *worker) count(tenant string, change int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[tenant] = true
	if w.running += change; w.running > w.peak {
		if w.peak == 0 {
			close(w.noise)
		}
		w.peak = w.running
	}
}

// loudest is how many slow tasks ran at once in this round.
func (w *worker) loudest() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.peak
}

// served is how many tenants had a task that ran.
func (w *worker) served() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

// receive takes the next value from a channel, unless ctx ends first.
func receive[T any](ctx context.Context, from <-chan T) (v T, err error) {
	select {
	case v = <-from:
		return v, nil
	case <-ctx.Done():
		return v, ctx.Err()
	}
}
