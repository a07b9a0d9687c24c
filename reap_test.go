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

func (b *bubble) ghost(id cluster.WorkerID, queue string, tasks int) []dispatch.Leased {
	b.Helper()
	c := b.client(dispatch.ClientOptions{})
	for range tasks {
		_, err := c.Enqueue(b.Context(), dispatch.Task{Queue: queue, Kind: "k", Timeout: time.Hour})
		b.ok(err)
	}
	register(b, b.redis, cluster.Worker{ID: id, Concurrency: 9})
	var leased []dispatch.Leased
	for seq := int64(1); len(leased) < tasks; seq++ {
		r, err := b.redis.Claim(b.Context(), dispatch.ClaimRequest{Queue: queue, Worker: id, Seq: seq, Budget: 100, Grace: time.Second})
		b.ok(err)
		leased = append(leased, r.Leased...)
	}
	return leased
}

func (b *bubble) settles(tasks int, within time.Duration) {
	b.Helper()
	for began := time.Now(); b.seen.count(dispatch.Retry) < tasks; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > within {
			b.Fatalf("after %v %d leases of %d are settled", within, b.seen.count(dispatch.Retry), tasks)
		}
	}
}

func TestDeadWorkerIsReaped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		const tasks = 250
		b.ghost("w-ghost", "q", tasks)
		began := time.Now()
		d := b.dispatcher(dispatch.Options{Queues: []string{"other"}})
		b.ok(d.Start(t.Context()))
		for b.seen.count(dispatch.Retry) < tasks {
			if time.Since(began) > time.Minute {
				t.Fatalf("%d leases are settled after a minute", b.seen.count(dispatch.Retry))
			}
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took < 30*time.Second || took > 36*time.Second {
			t.Errorf("the leases were settled after %v", took)
		}
		if w := b.worker("w-ghost"); w.State != cluster.StateDead {
			t.Errorf("the worker is %s", w.State)
		}
		for _, e := range b.seen.list() {
			if e.Attempt.ErrorKind != dispatch.KindLeaseLost || e.Attempt.Worker != "w-ghost" || e.Attempt.Number != 1 {
				t.Fatalf("the attempt is %+v", e.Attempt)
			}
		}
		time.Sleep(time.Minute)
		if n := b.seen.count(dispatch.Retry); n != tasks {
			t.Errorf("%d leases were settled, want %d", n, tasks)
		}
		b.ok(b.redis.CheckInvariants(t.Context(), "q"))
	})
}

func TestReapingSparesTheLiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.ghost("w-ghost", "q", 3)
		b.store.onCall("HeldLeases", func(_ context.Context, do func() error) error {
			register(b, b.redis, cluster.Worker{ID: "w-ghost"})
			return do()
		})
		d := b.dispatcher(dispatch.Options{})
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		if n := len(b.seen.list()); n != 0 {
			t.Errorf("%d leases were settled of a worker that lives", n)
		}
		if b.store.count("HeldLeases") == 0 {
			t.Error("nothing was looked for, which proves nothing")
		}
	})
}

func TestOutageKillsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		var all []*dispatch.Dispatcher
		for range 3 {
			d := b.dispatcher(dispatch.Options{})
			d.Handle("k", nothing)
			b.ok(d.Start(t.Context()))
			all = append(all, d)
		}
		time.Sleep(2 * time.Minute)
		b.store.on(func(context.Context, string, func() error) error { return errors.New("outage") })
		time.Sleep(5 * time.Minute)
		b.store.on(nil)
		for range 60 {
			time.Sleep(time.Second)
			for _, d := range all {
				if w := b.worker(d.Worker()); w.State == cluster.StateDead {
					t.Fatalf("worker %s was marked dead after an outage", w.ID)
				}
			}
		}
		b.enqueue(all[0], dispatch.Task{Kind: "k"})
		time.Sleep(time.Second)
		if n := b.seen.count(dispatch.Succeeded); n != 1 {
			t.Errorf("%d tasks have run after the outage, want 1", n)
		}
	})
}

func TestDrainingWorkerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{Queues: []string{"other"}})
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		b.ghost("w-ghost", "q", 3)
		register(b, b.redis, cluster.Worker{ID: "w-ghost", State: cluster.StateDraining})
		b.settles(3, 65*time.Second) // the leader has to find it first
	})
}

func TestReapingIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.ghost("w-ghost", "q", 250)
		failures := 3
		b.store.onCall("Settle", func(_ context.Context, do func() error) error {
			if failures--; failures >= 0 {
				return errDown
			}
			return do()
		})
		d := b.dispatcher(dispatch.Options{Queues: []string{"other"}})
		b.ok(d.Start(t.Context()))
		b.settles(250, 90*time.Second)
		b.ghost("w-second", "q2", 3)
		time.Sleep(31 * time.Second)
		_, err := b.redis.ReapDeadWorkers(t.Context(), 30*time.Second) // by a leader that dies before it does more
		b.ok(err)
		b.settles(253, time.Minute)
	})
}

// After a death all queues are looked at soon, for what the dead has stored and not announced; also if the leases of one queue
// cannot be settled, again and again.
func TestDeathIsToldThoughAQueueFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.ghost("w-ghost", "broken", 1)
		for i := range 50 { // a look at one in 4 s takes more than three minutes
			_, err := b.redis.CreateQueue(t.Context(), dispatch.Queue{Name: fmt.Sprint("q", i)})
			b.ok(err)
		}
		b.store.onCall("HeldLeases", func(context.Context, func() error) error { return errDown })
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", succeed)
		b.ok(d.Start(t.Context()))
		time.Sleep(25 * time.Second)
		for i := range 50 {
			task := dispatch.Submission{Task: dispatch.Task{ID: "unannounced", Kind: "k", Timeout: time.Minute}}
			_, err := b.redis.Enqueue(t.Context(), fmt.Sprint("q", i), []dispatch.Submission{task}, dispatch.EnqueueOptions{})
			b.ok(err)
		}
		time.Sleep(15 * time.Second) // the worker is dead after 30 s
		if n := b.seen.count(dispatch.Succeeded); n < 50 {
			t.Errorf("%d of 50 tasks have run that nobody has announced", n)
		}
	})
}
