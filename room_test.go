package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// sleeper is a handler that takes as long as it says.
func sleeper(d time.Duration) dispatch.Handler {
	return dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { time.Sleep(d); return nil })
}

// spread enqueues tasks to queues, one after the other.
func (b *bubble) spread(d *dispatch.Dispatcher, queues, tasks int, need func(i int) cluster.Resources) {
	b.Helper()
	for i := range tasks {
		b.enqueue(d, dispatch.Task{Queue: fmt.Sprint("q", i%queues), Kind: "k", Requires: need(i)})
	}
}

// The end of a task wakes one queue, however many wait for room, and each has its turn.
func TestRoomWakesOneQueue(t *testing.T) {
	const queues, perQueue = 300, 4
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{Capacity: cluster.Resources{"cpu": 1}, DrainTimeout: time.Second})
		var order record[string]
		d.Handle("k", dispatch.HandlerFunc(func(_ context.Context, task *dispatch.Task) error {
			order.add(task.Queue)
			time.Sleep(50 * time.Millisecond)
			return nil
		}))
		b.spread(d, queues, perQueue*queues, func(int) cluster.Resources { return cluster.Resources{"cpu": 1} })
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Second) // each queue is claimed from once, and found not to fit
		before, ran := b.store.count("Claim"), b.seen.count(dispatch.Succeeded)
		const wait = 20 * time.Second
		time.Sleep(wait)
		claims, tasks := b.store.count("Claim")-before, b.seen.count(dispatch.Succeeded)-ran
		if tasks < 395 {
			t.Errorf("%d tasks have run, of the 400 that there was room for", tasks)
		}
		// A queue that starves is looked at every ReconcileInterval besides.
		if limit := 3*tasks + queues*int(wait/(5*time.Second)); claims > limit {
			t.Errorf("%d claims for %d tasks, want at most %d", claims, tasks, limit)
		}
		if n := b.seen.count(dispatch.Released); n > 0 {
			t.Errorf("%d tasks were given back for want of room", n)
		}
		times := make(map[string]int)
		for _, name := range order.all() {
			times[name]++
		}
		for name, n := range times {
			if n > 3 { // two, and those that came first have had one before the others came
				t.Errorf("queue %s has had %d turns, when others have had %d", name, n, len(order.all())/queues)
			}
		}
		if len(times) != queues {
			t.Errorf("%d of %d queues have had a turn", len(times), queues)
		}
		time.Sleep(time.Minute)
		if n := b.seen.count(dispatch.Succeeded); n != perQueue*queues {
			t.Errorf("%d of %d tasks have run", n, perQueue*queues)
		}
	})
}

// No room is left unused that a waiting task fits into: whatever the tasks need, and though claims fail, take long, or bring
// nothing because their queue is paused or has used its rate up.
func TestRoomIsNotLeftUnused(t *testing.T) {
	for name, trouble := range map[string]func(b *bubble, d *dispatch.Dispatcher){
		"none": func(*bubble, *dispatch.Dispatcher) {},
		"slow claims": func(b *bubble, _ *dispatch.Dispatcher) {
			b.store.onCall("Claim", func(_ context.Context, do func() error) error {
				err := do()
				time.Sleep(20 * time.Millisecond)
				return err
			})
		},
		"claims that fail": func(b *bubble, _ *dispatch.Dispatcher) {
			n := 0
			b.store.onCall("Claim", func(_ context.Context, do func() error) error {
				b.store.mu.Lock()
				n++
				fails := n%3 == 0
				b.store.mu.Unlock()
				if fails {
					return errors.Join(dispatch.ErrUncertain, do())
				}
				return do()
			})
		},
		"paused, slow and deleted queues": func(b *bubble, d *dispatch.Dispatcher) {
			b.ok(d.PauseQueue(b.Context(), "q0"))
			b.ok(d.UpdateQueue(b.Context(), "q1", func(q *dispatch.Queue) error { q.Rate, q.Burst = 0.1, 1; return nil }))
			b.ok(d.DeleteQueue(b.Context(), "q2"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const queues, tasks = 12, 240
				b := newBubble(t)
				// With this ReconcileInterval, whom nobody wakes waits for longer than the test does.
				d := b.dispatcher(dispatch.Options{
					Capacity: cluster.Resources{"cpu": 4, "memory": 100}, DrainTimeout: time.Second, ReconcileInterval: time.Hour,
				})
				d.Handle("k", sleeper(50*time.Millisecond))
				b.spread(d, queues, tasks, func(i int) cluster.Resources {
					return cluster.Resources{"cpu": int64(1 + i%3), "memory": int64(i % 30)}
				})
				b.ok(d.Start(t.Context()))
				time.Sleep(200 * time.Millisecond)
				trouble(b, d)
				time.Sleep(5 * time.Minute)
				left := 0
				for i := range queues {
					c, err := d.Counts(t.Context(), fmt.Sprint("q", i))
					if q, _ := d.Queue(t.Context(), fmt.Sprint("q", i)); err == nil && !q.Paused {
						left += int(c.Ready + c.Running)
					}
				}
				if left > 0 {
					t.Errorf("%d tasks are left waiting: %d have run", left, b.seen.count(dispatch.Succeeded))
				}
			})
		})
	}
}

// hungQueue is a store that does not answer the claims of one queue.
type hungQueue struct {
	dispatch.Store
	name string
}

func (s hungQueue) Claim(ctx context.Context, r dispatch.ClaimRequest) (*dispatch.ClaimReply, error) {
	if r.Queue != s.name {
		return s.Store.Claim(ctx, r)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// A claim that hangs keeps no room from other queues for long.
func TestRoomOfAClaimThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d, err := dispatch.New(hungQueue{b.store, "hung"}, dispatch.Options{
			Capacity: cluster.Resources{"cpu": 2}, DrainTimeout: time.Second, ReconcileInterval: time.Hour,
			Observer: b.seen.observe, Logger: silent,
		})
		b.ok(err)
		defer d.Stop()
		d.Handle("k", sleeper(10*time.Millisecond))
		b.ok(d.Start(t.Context()))
		synctest.Wait()
		b.enqueue(d, dispatch.Task{Queue: "hung", Kind: "k", Requires: cluster.Resources{"cpu": 1}})
		b.spread(d, 5, 50, func(int) cluster.Resources { return cluster.Resources{"cpu": 1} })
		time.Sleep(2 * time.Second)
		if n := b.seen.count(dispatch.Succeeded); n != 50 {
			t.Errorf("%d of 50 tasks of other queues have run", n)
		}
	})
}
