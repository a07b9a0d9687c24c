package dispatch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/redisstore"
)

var _ dispatch.LeaderElector = (*redisstore.Elector)(nil)

// elector is elected by the test.
type elector struct {
	mu       sync.Mutex
	elect    chan struct{} // a value elects
	lost     chan struct{}
	id       cluster.WorkerID
	released int
	panics   bool
	err      error
}

func newElector() *elector { return &elector{elect: make(chan struct{}, 10)} }

func (e *elector) Acquire(ctx context.Context) (<-chan struct{}, error) {
	id, _ := cluster.WorkerIDFrom(ctx)
	select {
	case <-e.elect:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.panics {
		panic("elector")
	}
	if e.err != nil {
		return nil, e.err
	}
	e.id = id
	e.lost = make(chan struct{})
	return e.lost, nil
}

func (e *elector) Release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.released++
	e.lose()
}

// change changes what the elector does.
func (e *elector) change(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

// state is how often it was released, and whom it elected last.
func (e *elector) state() (released int, id cluster.WorkerID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.released, e.id
}

// lose ends the leadership. e.mu is held.
func (e *elector) lose() {
	if e.lost != nil {
		close(e.lost)
		e.lost = nil
	}
}

func TestRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		e := newElector()
		d := b.dispatcher(dispatch.Options{Leader: e})
		role := func(want string) {
			t.Helper()
			time.Sleep(10 * time.Second)
			if got := d.Role(); got != want {
				t.Errorf("the role is %s, want %s", got, want)
			}
		}
		b.ok(d.Start(t.Context()))
		role("follower")
		e.elect <- struct{}{}
		role("leader")
		if _, id := e.state(); id != d.Worker() {
			t.Errorf("elected %q, want the worker's ID", id)
		}
		e.change(e.lose)
		role("follower")
		if n, _ := e.state(); n != 1 {
			t.Errorf("released %d times, want once", n)
		}
		e.change(func() { e.panics = true })
		e.elect <- struct{}{}
		role("follower")
		e.change(func() { e.panics, e.err = false, errors.New("no") })
		e.elect <- struct{}{}
		role("follower")
		e.change(func() { e.err = nil })
		e.elect <- struct{}{}
		role("leader")
		b.ok(d.Stop())
		if n, _ := e.state(); d.Role() != "follower" || n != 2 {
			t.Errorf("after the stop: %s, released %d times", d.Role(), n)
		}
	})
}

// A leader that was followed by another, and does not know, ends its term at its first write.
func TestTermIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		e := newElector()
		d := b.dispatcher(dispatch.Options{Leader: e})
		b.ok(d.Start(t.Context()))
		e.elect <- struct{}{}
		time.Sleep(10 * time.Second)
		plan, err := b.redis.Plan(t.Context())
		b.ok(err)
		if plan == nil || len(plan.Workers) != 1 {
			t.Fatalf("the plan is %+v", plan)
		}
		term, err := b.redis.BeginTerm(t.Context(), "w-other")
		b.ok(err)
		if term <= plan.Term {
			t.Fatalf("term %d follows %d", term, plan.Term)
		}
		b.ok(d.Schedule(t.Context(), dispatch.Entry{Name: "m", Spec: "* * * * *", Task: dispatch.Task{Kind: "k"}}))
		time.Sleep(5 * time.Second)
		if n, _ := e.state(); d.Role() != "follower" || n != 1 {
			t.Errorf("the role is %s, released %d times", d.Role(), n)
		}
		info, err := d.Entry(t.Context(), "m")
		b.ok(err)
		if !info.Next.IsZero() {
			t.Errorf("the old leader has planned the entry: %+v", info)
		}
	})
}

// After a clean stop of the leader another process leads within a second.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		var all []*dispatch.Dispatcher
		for range 3 {
			d := b.dispatcher(dispatch.Options{Leader: b.redis.Elector(redisstore.ElectorOptions{})})
			b.ok(d.Start(t.Context()))
			all = append(all, d)
		}
		leader := func(within time.Duration) *dispatch.Dispatcher {
			t.Helper()
			for began := time.Now(); time.Since(began) <= within; time.Sleep(10 * time.Millisecond) {
				for _, d := range all {
					if d.Role() == "leader" {
						return d
					}
				}
			}
			t.Fatalf("nobody leads after %v", within)
			return nil
		}
		for n := 3; n > 1; n-- {
			time.Sleep(20 * time.Second)
			first := leader(time.Second)
			led, err := b.redis.GetLeader(t.Context())
			b.ok(err)
			if led.ID != first.Worker() {
				t.Errorf("the store says that %s leads, want %s", led.ID, first.Worker())
			}
			stopped := time.Now()
			b.ok(first.Stop())
			if second := leader(time.Second); second == first || time.Since(stopped) > time.Second {
				t.Errorf("took over after %v", time.Since(stopped))
			}
		}
	})
}
