package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// flow enqueues without end, in several lanes, and remembers what was promised.
type flow struct {
	client *dispatch.Client
	queues []string
	stop   context.CancelFunc
	lanes  sync.WaitGroup

	mu      sync.Mutex
	acked   []promise
	failed  map[string]int // calls by the class of their error
	sample  map[string]error
	slowest time.Duration
	slowOn  map[string]time.Duration // slowest call by queue
}

// promise is a task that an Enqueue without error has promised to run.
type promise struct {
	id, queue    string
	asked, acked time.Time
}

const (
	lanes = 8
	pace  = 10 * time.Millisecond // between two calls of a lane
	// callPatience is how long a caller waits for Enqueue.
	callPatience = 5 * time.Second
)

// startFlow enqueues until the flow is stopped, or the test ends.
func startFlow(t testing.TB, client *dispatch.Client, queues ...string) *flow {
	ctx, cancel := context.WithCancel(context.Background())
	f := &flow{
		client: client, queues: queues, stop: cancel,
		failed: map[string]int{}, sample: map[string]error{}, slowOn: map[string]time.Duration{},
	}
	for lane := range lanes {
		f.lanes.Go(func() { f.run(ctx, lane) })
	}
	t.Cleanup(f.end)
	return f
}

func (f *flow) run(ctx context.Context, lane int) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := lane; ctx.Err() == nil; n += lanes {
		f.enqueue(f.queues[n%len(f.queues)])
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (f *flow) enqueue(queue string) {
	ctx, cancel := context.WithTimeout(context.Background(), callPatience)
	defer cancel()
	asked := time.Now()
	id, err := f.client.Enqueue(ctx, workTask(queue))
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slowest = max(f.slowest, now.Sub(asked))
	f.slowOn[queue] = max(f.slowOn[queue], now.Sub(asked))
	if err == nil {
		f.acked = append(f.acked, promise{string(id), queue, asked, now})
		return
	}
	class := "other"
	for name, target := range map[string]error{"uncertain": dispatch.ErrUncertain, "full": dispatch.ErrStoreFull} {
		if errors.Is(err, target) {
			class = name
		}
	}
	f.failed[class]++
	f.sample[class] = err
}

// end stops the flow; calls in flight are answered first.
func (f *flow) end() {
	f.stop()
	f.lanes.Wait()
}

// promised are the tasks whose Enqueue was called after since and returned no error.
func (f *flow) promised(since time.Time) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for _, p := range f.acked {
		if p.asked.After(since) {
			ids = append(ids, p.id)
		}
	}
	return ids
}

func (f *flow) errors() (int, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, k := range f.failed {
		n += k
	}
	return n, fmt.Sprintf("%v %v", f.failed, f.sample)
}

// delays are the times from an Enqueue's call to the start of its task, by queue, for calls between two instants.
func (f *flow) delays(l *ledger, from, to time.Time) map[string][]time.Duration {
	f.mu.Lock()
	promises := slices.Clone(f.acked)
	f.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string][]time.Duration{}
	for _, p := range promises {
		if s := l.starts[p.id]; p.asked.After(from) && p.asked.Before(to) && len(s) > 0 {
			out[p.queue] = append(out[p.queue], s[0].at.Sub(p.asked))
		}
	}
	return out
}

// recovered is how long after an instant the first task that was enqueued since has started; 0 is not yet.
func (f *flow) recovered(l *ledger, since time.Time) time.Duration {
	first := time.Duration(0)
	for _, id := range f.promised(since) {
		if s := l.startsOf(id); len(s) > 0 {
			if after := s[0].at.Sub(since); first == 0 || after < first {
				first = after
			}
		}
	}
	return first
}
