package k8s

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
	"github.com/jonboulle/clockwork"
)

const threshold = 30 * time.Second

func reap(t *testing.T, s *Store) string {
	t.Helper()
	dead, err := s.ReapDeadWorkers(t.Context(), threshold)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range dead {
		if w.State != cluster.StateDead {
			t.Errorf("reaped %+v", w)
		}
	}
	return ids(dead)
}

func TestReap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		s, _ := newStore(server)
		leader, _ := newStore(server)
		register(t, s, "w-a", "w-b")
		if got := reap(t, leader); got != "" {
			t.Errorf("a new observer reaped %q", got)
		}
		time.Sleep(threshold)
		if got := reap(t, leader); got != "" { // longer ago than, not as long as
			t.Errorf("at the threshold: reaped %q", got)
		}
		if err := s.HeartbeatWorker(t.Context(), "w-b"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Nanosecond)
		if got := reap(t, leader); got != "w-a" {
			t.Errorf("reaped %q", got)
		}
		if got := reap(t, leader); got != "" {
			t.Errorf("reaped %q again", got)
		}
		wantMissing(t, "beat of a dead worker", s.HeartbeatWorker(t.Context(), "w-a"))
		if w := get(t, s, "w-a"); w.State != cluster.StateDead || w.Concurrency != 8 {
			t.Errorf("dead worker: %+v", w)
		}
		register(t, s, "w-a")
		time.Sleep(threshold)
		if got := reap(t, leader); got != "w-b" {
			t.Errorf("reaped %q", got)
		}
	})
}

// What counts is when the leader saw a change: the workers' clocks may show any time, even stand still.
func TestSkewedClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		leader, _ := newStore(server)
		var stores []*Store
		names := []cluster.WorkerID{"w-a", "w-b", "w-c"}
		for i, at := range []time.Duration{-24 * time.Hour, 0, 24 * time.Hour} {
			clock := clockwork.NewFakeClockAt(time.Now().Add(at)) // stands still
			stores = append(stores, NewStore(server.client(), namespace, StoreOptions{Clock: clock}))
			register(t, stores[i], names[i])
		}
		for range 20 {
			if got := reap(t, leader); got != "" {
				t.Fatalf("reaped %q", got)
			}
			if n, err := leader.DeleteStaleWorkers(t.Context(), threshold); n != 0 || err != nil {
				t.Fatal(n, err)
			}
			time.Sleep(threshold - time.Second)
			for i, s := range stores {
				if err := s.HeartbeatWorker(t.Context(), names[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		reap(t, leader)
		time.Sleep(threshold + 1)
		if got := reap(t, leader); got != "w-a w-b w-c" {
			t.Errorf("reaped %q", got)
		}
	})
}

// A worker that beats between the leader's look and its write lives.
func TestReapMeetsABeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		s, _ := newStore(server)
		leader, c := newStore(server)
		register(t, s, "w-a")
		reap(t, leader)
		time.Sleep(threshold + 1)
		for _, verb := range []string{"update", "delete"} {
			c.hook(func(_ context.Context, v string) error {
				if v == verb {
					return s.HeartbeatWorker(context.Background(), "w-a")
				}
				return nil
			}, nil)
			if verb == "update" {
				if got := reap(t, leader); got != "" {
					t.Errorf("reaped %q", got)
				}
			} else if n, err := leader.DeleteStaleWorkers(t.Context(), threshold); n != 0 || err != nil {
				t.Errorf("deleted %d, %v", n, err)
			}
			if w := get(t, s, "w-a"); w.State != cluster.StateActive {
				t.Errorf("state %s", w.State)
			}
			time.Sleep(threshold + 1)
		}
		// A change that is no beat is none.
		c.hook(func(_ context.Context, v string) error {
			if v == "update" {
				c.hook(nil, nil)
				server.change("dispatch-worker-w-a", func(l *leaseT) { l.Labels["team"] = "red" })
			}
			return nil
		}, nil)
		if got := reap(t, leader); got != "w-a" {
			t.Errorf("reaped %q", got)
		}
	})
}

// Rows that were marked by a call that failed are returned by the next one.
func TestReapAgainAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		s, c := newStore(server)
		register(t, s, "w-a", "w-b", "w-c")
		time.Sleep(threshold + 1)
		updates := 0
		lost := errors.New("the answer is lost")
		c.hook(nil, func(_ context.Context, verb string) error {
			if verb == "update" {
				if updates++; updates == 2 {
					return lost
				}
			}
			return nil
		})
		if dead, err := s.ReapDeadWorkers(t.Context(), threshold); !errors.Is(err, lost) {
			t.Errorf("reaped %s, %v", ids(dead), err)
		}
		dead, err := s.ReapDeadWorkers(t.Context(), threshold)
		if err != nil || len(dead) != 3 {
			t.Errorf("reaped %s, %v", ids(dead), err)
		}
		if got := reap(t, s); got != "" {
			t.Errorf("reaped %q again", got)
		}
	})
}

func TestDeleteStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		s, _ := newStore(server)
		leader, _ := newStore(server)
		register(t, s, "w-a", "w-b", "w-c", "w-d")
		if won, err := s.AcquireLeadership(t.Context(), "w-a", time.Hour); !won || err != nil {
			t.Fatal(won, err)
		}
		server.change("dispatch-worker-w-d", func(l *leaseT) { l.Annotations = nil }) // half a row goes too
		reap(t, leader)
		time.Sleep(threshold + 1)
		if err := s.HeartbeatWorker(t.Context(), "w-b"); err != nil {
			t.Fatal(err)
		}
		if got := reap(t, leader); got != "w-a w-c" {
			t.Errorf("reaped %q", got)
		}
		// Being marked dead is no sign of life.
		if n, err := leader.DeleteStaleWorkers(t.Context(), threshold); n != 3 || err != nil {
			t.Errorf("deleted %d, %v", n, err)
		}
		if all, err := s.ListWorkers(t.Context()); ids(all) != "w-b" {
			t.Errorf("left: %s, %v", ids(all), err)
		}
		if l, err := leader.GetLeader(t.Context()); l != nil || err != nil {
			t.Errorf("leader %v, %v", l, err)
		}
		// Others' leadership stays.
		if won, err := s.AcquireLeadership(t.Context(), "w-x", time.Hour); !won || err != nil {
			t.Fatal(won, err)
		}
		time.Sleep(threshold + 1)
		if n, err := leader.DeleteStaleWorkers(t.Context(), threshold); n != 1 || err != nil {
			t.Errorf("deleted %d, %v", n, err)
		}
		if l, err := leader.GetLeader(t.Context()); l == nil || l.ID != "w-x" || err != nil {
			t.Errorf("leader %v, %v", l, err)
		}
	})
}

// Who has just started may delete the rows of the dead, but not of those whom nobody has found dead.
func TestNewObserverDeletesTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		s, _ := newStore(server)
		register(t, s, "w-a")
		time.Sleep(threshold + 1)
		if got := reap(t, s); got != "w-a" {
			t.Fatalf("reaped %q", got)
		}
		register(t, s, "w-b")
		for range 2 {
			for _, at := range []time.Duration{time.Hour - threshold - 1, 1} {
				time.Sleep(at)
				want := 0
				if at == 1 && server.lease("dispatch-worker-w-a") != nil {
					want = 1
				}
				other, _ := newStore(server)
				if n, err := other.DeleteStaleWorkers(t.Context(), time.Hour); n != want || err != nil {
					t.Errorf("deleted %d, %v, want %d", n, err, want)
				}
			}
		}
		if all, err := s.ListWorkers(t.Context()); ids(all) != "w-b" {
			t.Errorf("left: %s, %v", ids(all), err)
		}
	})
}
