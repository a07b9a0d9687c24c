package dispatch_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

// An observer that ends its goroutine, as a test's FailNow does, is told of all events all the same, and stops nothing.
func TestObserverThatExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		var log logged
		d := b.dispatcher(dispatch.Options{DrainTimeout: time.Second, Logger: log.logger(), Observer: func(e dispatch.Event) {
			b.seen.observe(e)
			runtime.Goexit()
		}})
		d.Handle("k", nothing)
		var tasks []dispatch.Task
		for range 10 {
			tasks = append(tasks, dispatch.Task{Kind: "k"})
		}
		for round := range 2 {
			_, err := d.EnqueueMany(t.Context(), tasks)
			b.ok(err)
			if round == 0 {
				b.ok(d.Start(t.Context()))
			}
			b.ok(d.WaitIdle(t.Context()))
			if n := b.seen.count(dispatch.Succeeded); n != 10*(round+1) {
				t.Fatalf("%d tasks have run after round %d", n, round)
			}
		}
		begin := time.Now()
		b.ok(d.Stop())
		if took := time.Since(begin); took > time.Second {
			t.Errorf("Stop took %v", took)
		}
		if n := log.count("observer ended its goroutine"); n != 20 {
			t.Errorf("%d lines of 20 tell of it", n)
		}
	})
}

// An observer that does not return keeps no place from other queues, and a stop does not wait for it for ever.
func TestObserverThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		var log logged
		gate, returned := make(chan struct{}), make(chan struct{})
		var first atomic.Bool
		d := b.dispatcher(dispatch.Options{
			GlobalConcurrency: 2, DrainTimeout: time.Second, Logger: log.logger(), Observer: func(e dispatch.Event) {
				if e.Queue == "blocked" && first.CompareAndSwap(false, true) {
					defer close(returned)
					<-gate
				}
				b.seen.observe(e)
			},
		})
		d.Handle("k", nothing)
		b.ok(d.Start(t.Context()))
		b.enqueue(d, dispatch.Task{Queue: "blocked", Kind: "k"})
		time.Sleep(time.Second)
		b.fill(d, "other", "k", 20)
		time.Sleep(time.Second)
		if n := b.seen.count(dispatch.Succeeded); n != 20 {
			t.Errorf("%d of 20 tasks of another queue have run", n)
		}
		begin := time.Now()
		b.ok(d.Stop())
		if took := time.Since(begin); took > 12*time.Second { // the DrainTimeout, and twice the patience for the last outcomes
			t.Errorf("Stop took %v", took)
		}
		if n := log.count("an observer blocks"); n != 1 {
			t.Errorf("%d lines tell of it", n)
		}
		close(gate)
		<-returned
	})
}
