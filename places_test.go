package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

// hanging counts the attempts of each queue that hang, and ends them all at the end of the test.
type hanging struct {
	mu   sync.Mutex
	runs map[string]int
	gate chan struct{}
}

// hang registers a handler of "hang" that does not return before the test is over.
func hang(t testing.TB, d *dispatch.Dispatcher) *hanging {
	h := &hanging{runs: make(map[string]int), gate: make(chan struct{})}
	t.Cleanup(func() { close(h.gate) })
	handle(d, "hang", func(_ context.Context, task *dispatch.Task) error {
		h.mu.Lock()
		h.runs[task.Queue]++
		h.mu.Unlock()
		<-h.gate
		return nil
	})
	return h
}

// of returns how many attempts of a queue hang, once everything has come to rest.
func (h *hanging) of(queue string) int {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[queue]
}

// fill enqueues n tasks of a kind.
func (b *bubble) fill(d *dispatch.Dispatcher, queue, kind string, n int) {
	b.Helper()
	results, err := d.EnqueueMany(b.Context(), slices.Repeat([]dispatch.Task{{Queue: queue, Kind: kind}}, n))
	b.ok(err)
	for _, r := range results {
		b.ok(r.Err)
	}
}

// atOnce demands that a task of a queue runs without any time going by.
func (b *bubble) atOnce(d *dispatch.Dispatcher, queue string) {
	b.Helper()
	before, begin := b.seen.count(dispatch.Succeeded), time.Now()
	b.enqueue(d, dispatch.Task{Queue: queue, Kind: "k"})
	synctest.Wait()
	if n := b.seen.count(dispatch.Succeeded) - before; n != 1 || time.Since(begin) != 0 {
		b.Errorf("%d tasks of queue %s have run after %v, want 1 at once", n, queue, time.Since(begin))
	}
}

// Queues whose attempts hang leave a place to one that was quiet.
func TestQuietQueueBesideHangingOnes(t *testing.T) {
	for _, c := range []struct {
		places int
		want   []int // attempts of the noisy queues, one after another
	}{
		{64, []int{48}}, {64, []int{48, 12}}, {64, []int{48, 12, 3}}, {2, []int{1}}, {3, []int{2}}, {4, []int{3}}, {20, []int{15, 3}},
	} {
		t.Run(fmt.Sprintf("%d of %d places", c.want, c.places), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				d := b.dispatcher(dispatch.Options{GlobalConcurrency: c.places, DrainTimeout: time.Second})
				h := hang(t, d)
				d.Handle("k", nothing)
				b.ok(d.Start(t.Context()))
				for i, want := range c.want {
					queue := fmt.Sprint("noisy", i)
					b.fill(d, queue, "hang", 200)
					if n := h.of(queue); n != want {
						t.Errorf("%d attempts of %s, want %d", n, queue, want)
					}
				}
				b.atOnce(d, "quiet")
				time.Sleep(7 * time.Second)
				b.atOnce(d, "quiet")
				b.atOnce(d, "another")
				for i, want := range c.want {
					if n := h.of(fmt.Sprint("noisy", i)); n != want {
						t.Errorf("%d attempts of noisy%d in the end, want %d", n, i, want)
					}
				}
			})
		})
	}
}

// Queues that become noisy at the same moment: whoever is first, all run, and one place is left.
func TestNoisyQueuesAtTheSameMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{GlobalConcurrency: 16, DrainTimeout: time.Second})
		h := hang(t, d)
		d.Handle("k", nothing)
		b.fill(d, "a", "hang", 100)
		b.fill(d, "b", "hang", 100)
		b.ok(d.Start(t.Context()))
		if x, y := h.of("a"), h.of("b"); x+y != 15 || min(x, y) != 3 {
			t.Errorf("%d and %d attempts, want 12 and 3", x, y)
		}
		b.atOnce(d, "quiet")
	})
}

// What is prefetched of a queue neither takes the places that are left for others nor comes before them.
func TestPrefetchLeavesPlaces(t *testing.T) {
	for _, noisy := range []int{1, 2} {
		t.Run(fmt.Sprint(noisy, " noisy"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				d := b.dispatcher(dispatch.Options{GlobalConcurrency: 16, DrainTimeout: time.Second})
				h := hang(t, d)
				d.Handle("k", nothing)
				handle(d, "quick", func(context.Context, *dispatch.Task) error { time.Sleep(time.Millisecond); return nil })
				var tasks []dispatch.Task
				for i := range noisy {
					queue := fmt.Sprint("noisy", i)
					for range 500 {
						tasks = append(tasks, dispatch.Task{Queue: queue, Kind: "quick"})
					}
					for range 100 {
						tasks = append(tasks, dispatch.Task{Queue: queue, Kind: "hang", Delay: time.Millisecond})
					}
				}
				_, err := d.EnqueueMany(t.Context(), tasks)
				b.ok(err)
				time.Sleep(time.Millisecond)
				b.ok(d.Start(t.Context()))
				time.Sleep(500 * time.Millisecond)
				held, hanging := 0, 0
				for i := range noisy {
					counts, err := d.Counts(t.Context(), fmt.Sprint("noisy", i))
					b.ok(err)
					held += int(counts.Running)
					hanging += h.of(fmt.Sprint("noisy", i))
				}
				if b.seen.count(dispatch.Succeeded) != 500*noisy || held <= hanging || held <= 16 || hanging > 15 || hanging < 12 {
					t.Fatalf("%d have run, %d are held and %d hang, want prefetched ones", b.seen.count(dispatch.Succeeded), held, hanging)
				}
				b.atOnce(d, "quiet")
				time.Sleep(10 * time.Second) // what waited was given back
				b.atOnce(d, "quiet")
				if n := b.seen.count(dispatch.Released); n == 0 || n > 50 {
					t.Errorf("%d were given back", n)
				}
			})
		})
	}
}

// Who serves one queue only leaves it all places.
func TestOneQueueHasAllPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{GlobalConcurrency: 16, Queues: []string{"only"}, DrainTimeout: time.Second})
		h := hang(t, d)
		b.ok(d.Start(t.Context()))
		b.fill(d, "only", "hang", 100)
		if n := h.of("only"); n != 16 {
			t.Errorf("%d attempts, want 16", n)
		}
	})
}

// Settings that were changed count at once, whatever the old ones had the queue wait for; also when a claim that was made
// before them is answered afterwards.
func TestUpdateQueueLiftsWhatWasSaid(t *testing.T) {
	for _, inFlight := range []bool{false, true} {
		t.Run(fmt.Sprint("claim in flight ", inFlight), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				d := b.dispatcher(dispatch.Options{})
				d.Handle("k", nothing)
				_, err := d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Rate: 0.1, Burst: 1})
				b.ok(err)
				b.ok(d.Start(t.Context()))
				answer := make(chan struct{})
				if inFlight {
					claims := 0
					b.store.onCall("Claim", func(_ context.Context, do func() error) error {
						err := do()
						if claims++; claims == 1 {
							<-answer
						}
						return err
					})
				}
				b.fill(d, "q", "k", 10)
				synctest.Wait()
				want := 1
				if inFlight {
					want = 0
				}
				if n := b.seen.count(dispatch.Succeeded); n != want {
					t.Fatalf("%d have run, want %d", n, want)
				}
				b.ok(d.UpdateQueue(t.Context(), "q", func(q *dispatch.Queue) error { q.Rate, q.Burst = 1000, 100; return nil }))
				synctest.Wait()
				close(answer)
				begin := time.Now()
				for b.seen.count(dispatch.Succeeded) < 10 && time.Since(begin) < 200*time.Millisecond {
					time.Sleep(time.Millisecond) // the tokens come at the new rate
				}
				if n := b.seen.count(dispatch.Succeeded); n != 10 {
					t.Errorf("%d of 10 have run after %v", n, time.Since(begin))
				}
			})
		})
	}
}
