package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// quietFlow sends a task every few milliseconds and measures how long until it is picked up.
type quietFlow struct {
	t      testing.TB
	d      *dispatch.Dispatcher
	cancel context.CancelFunc
	lane   sync.WaitGroup

	mu     sync.Mutex
	sent   map[dispatch.TaskID]int // how often it has run
	asked  map[string]time.Time    // by payload
	marked time.Time
	pickUp []time.Duration // of tasks sent since the mark
}

func newQuietFlow(t testing.TB, d *dispatch.Dispatcher) *quietFlow {
	q := &quietFlow{t: t, d: d, sent: map[dispatch.TaskID]int{}, asked: map[string]time.Time{}, cancel: func() {}}
	d.Handle("quiet", dispatch.HandlerFunc(q.handle))
	t.Cleanup(q.end)
	return q
}

func (q *quietFlow) start() {
	ctx, cancel := context.WithCancel(context.Background())
	q.cancel = cancel
	q.lane.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			q.send(fmt.Sprint(i))
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
}

func (q *quietFlow) send(payload string) {
	q.mu.Lock()
	q.asked[payload] = time.Now()
	q.mu.Unlock()
	id, err := q.d.Enqueue(context.Background(), dispatch.Task{Queue: quietly, Kind: "quiet", Payload: []byte(payload)})
	if err != nil {
		q.t.Errorf("quiet task: %v", err)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent[id] += 0
}

func (q *quietFlow) handle(_ context.Context, task *dispatch.Task) error {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent[task.ID]++
	if asked := q.asked[string(task.Payload)]; asked.After(q.marked) {
		q.pickUp = append(q.pickUp, now.Sub(asked))
	}
	return nil
}

// mark begins a stretch of time that is measured.
func (q *quietFlow) mark() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.marked, q.pickUp = time.Now(), nil
}

// since says how the pick-up was since the mark.
func (q *quietFlow) since() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pickUp) == 0 {
		return "no task"
	}
	slices.Sort(q.pickUp)
	at := func(percent int) float64 { return inMillis(q.pickUp[(len(q.pickUp)-1)*percent/100]) }
	return fmt.Sprintf("%d tasks, p50 %.1f ms, p99 %.1f, slowest %.1f", len(q.pickUp), at(50), at(99), at(100))
}

// end stops the flow; the call in flight is answered first.
func (q *quietFlow) end() {
	q.cancel()
	q.lane.Wait()
}

// missing is how many of the tasks that were sent have not run exactly once.
func (q *quietFlow) missing() (missing, sent int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, times := range q.sent {
		if times != 1 {
			missing++
		}
	}
	return missing, len(q.sent)
}
