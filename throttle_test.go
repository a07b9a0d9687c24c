package dispatch_test

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

// receiverOf makes a dispatcher in a bubble whose requests a function answers, with a status and a Retry-After, and a queue.
func receiverOf(b *bubble, q dispatch.Queue, answer func() (status, retryAfter int)) *dispatch.Dispatcher {
	b.Helper()
	q.Name = "q"
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		status, after := answer()
		h := make(http.Header)
		if after > 0 {
			h.Set("Retry-After", strconv.Itoa(after))
		}
		return &http.Response{StatusCode: status, Header: h, Body: http.NoBody, Request: r}, nil
	})}
	d := b.dispatcher(dispatch.Options{HTTPClient: client, Queues: []string{"q"}})
	_, err := d.EnsureQueue(b.Context(), q)
	b.ok(err)
	return d
}

func (b *bubble) rate(d *dispatch.Dispatcher) float64 {
	b.Helper()
	c, err := d.Counts(b.Context(), "q")
	b.ok(err)
	return c.EffectiveRate
}

// Receivers that answer 429 or 503, ask for time or fail for the most part slow their queue down; other answers do not.
func TestCongestion(t *testing.T) {
	for name, c := range map[string]struct {
		status, after, tasks int
		off, slow            bool
	}{
		"429":          {status: 429, tasks: 1, slow: true},
		"503":          {status: 503, tasks: 1, slow: true},
		"Retry-After":  {status: 500, after: 60, tasks: 1, slow: true},
		"500, few":     {status: 500, tasks: 19},
		"500, many":    {status: 500, tasks: 25, slow: true},
		"200":          {status: 200, tasks: 100},
		"switched off": {status: 503, tasks: 30, off: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				d := receiverOf(b, dispatch.Queue{Rate: 800, Burst: 500, NoThrottle: c.off, Retry: dispatch.RetryConfig{MinBackoff: time.Hour}},
					func() (int, int) { return c.status, c.after })
				for range c.tasks {
					b.enqueue(d, dispatch.Task{Queue: "q", URL: "http://receiver.test/"})
				}
				b.ok(d.Start(t.Context()))
				time.Sleep(time.Second)
				want := 800.0
				if c.slow {
					want = 400
				}
				if got := b.rate(d); got != want {
					t.Errorf("the rate in force is %v, want %v", got, want)
				}
			})
		})
	}
}

// A handler that fails is no receiver that is congested.
func TestHandlersAreNotCongested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := receiverOf(b, dispatch.Queue{}, nil)
		handle(d, "k", func(context.Context, *dispatch.Task) error { return dispatch.RetryAfter(time.Hour, errTest) })
		for range 100 {
			b.enqueue(d, dispatch.Task{Queue: "q", Kind: "k"})
		}
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Second)
		if got := b.rate(d); got != 0 || b.seen.count(dispatch.Retry) != 100 {
			t.Errorf("the rate in force is %v after %d retries", got, b.seen.count(dispatch.Retry))
		}
	})
}

// While a receiver is congested two processes together send it little, without asking the store all the time; when it is
// well again, so is the queue.
func TestCongestionIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		var sent atomic.Int64
		var well atomic.Bool
		answer := func() (int, int) {
			sent.Add(1)
			if well.Load() {
				return 200, 0
			}
			return 503, 0
		}
		d := receiverOf(b, dispatch.Queue{Retry: dispatch.RetryConfig{MinBackoff: -1, MaxAttempts: 1000}}, answer)
		other := receiverOf(b, dispatch.Queue{}, answer)
		for range 200 {
			b.enqueue(d, dispatch.Task{Queue: "q", URL: "http://receiver.test/"})
		}
		b.ok(d.Start(t.Context()))
		b.ok(other.Start(t.Context()))
		time.Sleep(time.Minute)
		rate := b.rate(d)
		if rate <= 0 || rate > 100 { // a tenth of what it did in the first moment
			t.Errorf("the rate in force is %v", rate)
		}
		before, claims := sent.Load(), b.store.count("Claim")
		time.Sleep(time.Minute)
		if n := float64(sent.Load() - before); n < 30*rate || n > 65*rate {
			t.Errorf("%v requests in a minute, at %v/s", n, rate)
		}
		if n := b.store.count("Claim") - claims; n > 2*60*11 {
			t.Errorf("%d claims in a minute", n)
		}
		well.Store(true)
		time.Sleep(3 * time.Minute)
		if n := b.seen.count(dispatch.Succeeded); n != 200 || b.rate(d) != 0 {
			t.Errorf("%d succeeded, the rate in force is %v", n, b.rate(d))
		}
	})
}
