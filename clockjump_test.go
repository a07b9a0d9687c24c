package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dispatchkit/dispatch"
)

// serverClock is the clock of a simulated server that is set wrong, again and again. It is safe for concurrent use.
type serverClock struct {
	mu            sync.Mutex
	b             *bubble
	offset        time.Duration
	shown, latest time.Time // what it shows, and the highest that it has ever shown
}

// show has the server go by the clock.
func (c *serverClock) show() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = time.Now().Add(c.offset)
	c.b.server.SetTime(c.shown)
	if c.shown.After(c.latest) {
		c.latest = c.shown
	}
}

func (c *serverClock) set(offset time.Duration) {
	c.mu.Lock()
	c.offset = offset
	c.mu.Unlock()
	c.show()
}

func (c *serverClock) times() (shown, latest time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown, c.latest
}

// run moves the clock until ctx ends.
func (c *serverClock) run(ctx context.Context) {
	for ctx.Err() == nil {
		c.show()
		time.Sleep(50 * time.Millisecond)
	}
}

// The server's clock jumps by five minutes, forward and back. Nothing starts before the server has ever shown its time, nothing is
// lost, and nothing ends twice: what a jump takes from its worker runs again.
func TestServerClockJumps(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { serverClockJumps(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func serverClockJumps(t *testing.T, random *rand.Rand) {
	b := newBubble(t)
	clock := &serverClock{b: b}
	clock.show()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go clock.run(ctx)
	var mu sync.Mutex // guards due and early
	due, early := map[dispatch.TaskID]time.Time{}, 0
	for range 2 {
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", func(_ context.Context, task *dispatch.Task) error {
			_, latest := clock.times()
			mu.Lock()
			if at, known := due[task.ID]; known && latest.Before(at) {
				early++
			}
			mu.Unlock()
			time.Sleep(3 * time.Second)
			return nil
		})
		b.ok(d.Start(t.Context()))
	}
	client := b.dispatcher(dispatch.Options{})
	for range 200 {
		delay := time.Duration(random.IntN(8)) * time.Second
		task := dispatch.Task{Kind: "k", Delay: delay, Timeout: time.Minute, Retry: &noWait}
		before, _ := clock.times()
		id := b.enqueue(client, task)
		mu.Lock()
		due[id] = before.Add(delay).Truncate(time.Millisecond)
		mu.Unlock()
		if random.IntN(10) == 0 {
			clock.set([]time.Duration{-5 * time.Minute, 0, 5 * time.Minute}[random.IntN(3)])
		}
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
	}
	clock.set(0)
	time.Sleep(8 * time.Minute) // what was stored while the clock was fast waits for its time
	synctest.Wait()
	if early > 0 {
		t.Errorf("%d attempts were early", early)
	}
	for id := range due {
		ended := 0
		for _, e := range b.seen.list() {
			if e.ID == id && e.Outcome == dispatch.Succeeded {
				ended++
			}
		}
		if ended != 1 {
			t.Errorf("task %s has ended %d times: %s", id, ended, b.seen.of(id))
		}
	}
	b.ok(b.redis.CheckInvariants(t.Context(), dispatch.DefaultQueue))
}

// stepClock is a local clock that can be set, its monotonic reading too.
type stepClock struct {
	clockwork.Clock
	offset atomic.Int64
}

func (c *stepClock) Now() time.Time                  { return c.Clock.Now().Add(time.Duration(c.offset.Load())) }
func (c *stepClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c *stepClock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// A local clock that is set back while an outcome is on its way does not put the retry off.
func TestClockGoesBackBeforeARetryIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		clock := &stepClock{Clock: clockwork.NewRealClock()}
		d := b.dispatcher(dispatch.Options{Clock: clock})
		handle(d, "k", func(ctx context.Context, _ *dispatch.Task) error {
			if a, _ := dispatch.AttemptFrom(ctx); a.Number == 1 {
				return errors.New("failed")
			}
			return nil
		})
		var once sync.Once
		b.store.on(func(_ context.Context, call string, do func() error) (err error) {
			if call == "Settle" {
				once.Do(func() {
					clock.offset.Add(int64(-5 * time.Minute))
					err = errDown
				})
			}
			if err != nil {
				return err
			}
			return do()
		})
		id := b.enqueue(d, dispatch.Task{Kind: "k", Retry: &dispatch.RetryConfig{MinBackoff: time.Second}})
		b.ok(d.Start(t.Context()))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if got := b.seen.of(id); got != "retry succeeded" {
			t.Errorf("after half a minute: %q", got)
		}
	})
}
