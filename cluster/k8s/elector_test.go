package k8s

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// As the root has it.
var _ interface {
	Acquire(ctx context.Context) (lost <-chan struct{}, err error)
	Release()
} = (*LeaderElector)(nil)

const leaseName = "dispatch-leader"

// The longest time between two looks of a candidate.
const look = 2200 * time.Millisecond * 2

func newElector(s *server) (*LeaderElector, *client) {
	c := s.client()
	e := NewLeaderElector(c, namespace, leaseName)
	e.Logger = new(logbook).logger()
	return e, c
}

func as(id cluster.WorkerID) context.Context { return cluster.WithWorkerID(context.Background(), id) }

func acquire(t *testing.T, e *LeaderElector, id cluster.WorkerID) <-chan struct{} {
	t.Helper()
	lost, err := e.Acquire(as(id))
	if err != nil {
		t.Fatalf("Acquire for %s: %v", id, err)
	}
	return lost
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *server) holder(t *testing.T) string {
	t.Helper()
	lease := s.lease(leaseName)
	if lease == nil {
		return ""
	}
	return holder(lease)
}

func TestOneOfTwoLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a, _ := newElector(s)
		b, _ := newElector(s)
		lost := acquire(t, a, "w-a")
		elected := make(chan struct{})
		go func() {
			acquire(t, b, "w-b")
			close(elected)
		}()
		time.Sleep(time.Hour)
		if isClosed(elected) || isClosed(lost) || s.holder(t) != "w-a" {
			t.Fatalf("after an hour: second elected %v, first lost %v, holder %q", isClosed(elected), isClosed(lost), s.holder(t))
		}
		start := time.Now()
		a.Release()
		if !isClosed(lost) {
			t.Error("Release did not close lost")
		}
		<-elected
		if took := time.Since(start); took > look {
			t.Errorf("after Release the other one was elected in %v, more than %v", took, look)
		}
		if s.holder(t) != "w-b" {
			t.Errorf("holder %q", s.holder(t))
		}
		b.Release()
		if s.holder(t) != "" {
			t.Errorf("holder %q after Release", s.holder(t))
		}
	})
}

func TestManyCampaignAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var mu sync.Mutex
		leaders, terms := 0, 0
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				e, _ := newElector(s)
				lost, err := e.Acquire(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				leaders++
				terms++
				if leaders != 1 {
					t.Errorf("%d leaders", leaders)
				}
				mu.Unlock()
				time.Sleep(time.Minute)
				if isClosed(lost) {
					t.Error("lost in the midst of it")
				}
				mu.Lock()
				leaders--
				mu.Unlock()
				e.Release()
			})
		}
		all.Wait()
		if terms != 5 {
			t.Errorf("%d terms", terms)
		}
	})
}

// The leader that is cut off has to stop before another one starts, whatever cuts it off, and soon enough another one
// has to start.
func TestTakeover(t *testing.T) {
	for name, cut := range map[string]func(context.Context, string) error{"down": down, "silence": silence} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				a, cutOff := newElector(s)
				b, _ := newElector(s)
				lost := acquire(t, a, "w-a")
				elected := make(chan time.Time, 1)
				go func() {
					acquire(t, b, "w-b")
					elected <- time.Now()
				}()
				time.Sleep(time.Minute)
				start := time.Now()
				cutOff.hook(cut, nil)
				<-lost
				lostAt := time.Now()
				if took := lostAt.Sub(start); took > a.LeaseDuration {
					t.Errorf("noticed after %v", took)
				}
				electedAt := <-elected
				if !electedAt.After(lostAt) {
					t.Errorf("elected %v before the other one had lost", lostAt.Sub(electedAt))
				}
				if took := electedAt.Sub(start); took > b.LeaseDuration+2*look {
					t.Errorf("takeover took %v", took)
				}
				// What the old leader does now must not touch the new one's Lease.
				cutOff.hook(nil, nil)
				a.Release()
				if s.holder(t) != "w-b" {
					t.Errorf("holder %q after the old leader's Release", s.holder(t))
				}
				b.Release()
			})
		})
	}
}

// A client that does not listen to its context keeps no leadership alive. Only Release has to wait for it.
func TestLostWhileTheClientHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		e, c := newElector(s)
		lost := acquire(t, e, "w-a")
		release := make(chan struct{})
		c.hook(func(context.Context, string) error { <-release; return errors.New("late") }, nil)
		start := time.Now()
		<-lost
		if took := time.Since(start); took > 12500*time.Millisecond {
			t.Errorf("lost after %v", took)
		}
		c.hook(nil, nil)
		close(release)
		if isClosed(acquire(t, e, "w-a")) { // waits for the end of the one before
			t.Error("lost at once")
		}
		e.Release()
	})
}

func TestAcquireAfterRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		e, _ := newElector(s)
		e.Release() // without a leadership
		for range 3 {
			lost := acquire(t, e, "w-a")
			if _, err := e.Acquire(as("w-a")); !errors.Is(err, errHeld) {
				t.Errorf("Acquire while it leads: %v", err)
			}
			var all sync.WaitGroup
			for range 3 {
				all.Go(e.Release) // closing lost twice would panic
			}
			all.Wait()
			if !isClosed(lost) || s.holder(t) != "" {
				t.Errorf("after Release: lost %v, holder %q", isClosed(lost), s.holder(t))
			}
		}
	})
}

func TestAcquireHonoursItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a, _ := newElector(s)
		b, c := newElector(s)
		acquire(t, a, "w-a")
		for name, hook := range map[string]func(context.Context, string) error{"held": nil, "down": down, "silence": silence} {
			c.hook(hook, nil)
			ctx, cancel := context.WithTimeout(as("w-b"), time.Minute)
			start := time.Now()
			if _, err := b.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(start); took != time.Minute {
				t.Errorf("%s: returned after %v", name, took)
			}
			if _, err := b.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: with a context that has ended: %v", name, err)
			}
			cancel()
		}
		a.Release()
	})
}

func TestContextBoundsTheWaitingOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newElector(newServer())
		ctx, cancel := context.WithCancel(as("w-a"))
		lost, err := e.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(time.Hour)
		if isClosed(lost) {
			t.Error("the leadership ended with the context of Acquire")
		}
		e.Release()
	})
}

// An Acquire that gives up leaves no Lease behind, even one that it does not know of.
func TestGivingUpFreesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		e, c := newElector(s)
		ctx, cancel := context.WithCancel(as("w-a"))
		c.hook(nil, func(_ context.Context, verb string) error {
			if verb == "create" {
				cancel()
				return errors.New("the answer is lost")
			}
			return nil
		})
		if _, err := e.Acquire(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Acquire: %v", err)
		}
		if s.lease(leaseName) == nil || s.holder(t) != "" {
			t.Errorf("holder %q", s.holder(t))
		}
	})
}

func TestReleaseEndsTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a, _ := newElector(s)
		b, _ := newElector(s)
		acquire(t, a, "w-a")
		result := make(chan error)
		go func() {
			_, err := b.Acquire(as("w-b"))
			result <- err
		}()
		time.Sleep(time.Minute)
		b.Release()
		if err := <-result; !errors.Is(err, errReleased) {
			t.Errorf("Acquire: %v", err)
		}
		a.Release()
	})
}

func TestReleaseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := newElector(newServer())
		lost := acquire(t, e, "w-a")
		c.hook(silence, nil)
		start := time.Now()
		e.Release()
		if took := time.Since(start); took > e.RetryPeriod || !isClosed(lost) {
			t.Errorf("took %v, lost %v", took, isClosed(lost))
		}
	})
}

func TestErrorsOfTheServerEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		e, c := newElector(s)
		log := new(logbook)
		e.Logger = log.logger()
		c.hook(down, nil)
		time.AfterFunc(time.Minute, func() { c.hook(nil, nil) })
		lost := acquire(t, e, "w-a")
		if text := log.text(); !strings.Contains(text, "down") || !strings.Contains(text, "worker=w-a") {
			t.Errorf("log: %s", text)
		}
		// Outages shorter than RenewDeadline - RetryPeriod cost nothing.
		for range 10 {
			c.hook(down, nil)
			time.Sleep(7300 * time.Millisecond)
			c.hook(nil, nil)
			time.Sleep(7400 * time.Millisecond)
		}
		if isClosed(lost) {
			t.Error("lost in a short outage")
		}
		// Somebody deletes the Lease: the leader makes a new one.
		s.remove(leaseName)
		time.Sleep(time.Minute)
		if isClosed(lost) || s.holder(t) != "w-a" {
			t.Errorf("after a deletion: lost %v, holder %q", isClosed(lost), s.holder(t))
		}
		// Somebody gives the Lease away: the leader notices.
		s.change(leaseName, func(l *leaseT) { *l.Spec.HolderIdentity = "w-b" })
		<-lost
		e.Release()
		if s.holder(t) != "w-b" {
			t.Errorf("holder %q", s.holder(t))
		}
	})
}

func TestPanicIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := newElector(newServer())
		c.hook(func(context.Context, string) error { panic("boom") }, nil)
		if _, err := e.Acquire(as("w-a")); err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("Acquire: %v", err)
		}
		c.hook(nil, nil)
		lost := acquire(t, e, "w-a")
		c.hook(func(context.Context, string) error { panic("boom") }, nil)
		<-lost
		e.Release()
	})
}

func TestSettingsOfTheElector(t *testing.T) {
	s := newServer()
	for want, e := range map[string]*LeaderElector{
		"client is nil":          NewLeaderElector(nil, namespace, leaseName),
		`namespace ""`:           NewLeaderElector(s.client(), "", leaseName),
		`name of the Lease ""`:   NewLeaderElector(s.client(), namespace, ""),
		`name of the Lease "A_"`: NewLeaderElector(s.client(), namespace, "A_"),
		"LeaseDuration: 1.5s is": {client: s.client(), namespace: "a", name: "b", LeaseDuration: 1500 * time.Millisecond},
		"LeaseDuration: 0s is":   {client: s.client(), namespace: "a", name: "b"},
		"RetryPeriod: 0s is":     {client: s.client(), namespace: "a", name: "b", LeaseDuration: 9 * time.Second},
		"RenewDeadline: 1.2s is": {client: s.client(), namespace: "a", name: "b", LeaseDuration: 9 * time.Second,
			RenewDeadline: 1200 * time.Millisecond, RetryPeriod: time.Second},
		"LeaseDuration: 2s is": {client: s.client(), namespace: "a", name: "b", LeaseDuration: 2 * time.Second,
			RenewDeadline: 2 * time.Second, RetryPeriod: time.Second},
	} {
		if _, err := e.Acquire(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		e.Release()
	}
}
