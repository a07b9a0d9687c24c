package k8s

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

const ttl = 15 * time.Second

func lead(t *testing.T, s *Store, id cluster.WorkerID, want bool) {
	t.Helper()
	if won, err := s.AcquireLeadership(t.Context(), id, ttl); won != want || err != nil {
		t.Errorf("AcquireLeadership for %s: %v, %v, want %v", id, won, err, want)
	}
}

func renew(t *testing.T, s *Store, id cluster.WorkerID, want bool) {
	t.Helper()
	if ok, err := s.RenewLeadership(t.Context(), id, ttl); ok != want || err != nil {
		t.Errorf("RenewLeadership for %s: %v, %v, want %v", id, ok, err, want)
	}
}

func wantLeader(t *testing.T, s *Store, want cluster.WorkerID) *cluster.Worker {
	t.Helper()
	w, err := s.GetLeader(t.Context())
	switch {
	case err != nil:
		t.Error(err)
	case want == "" && w != nil:
		t.Errorf("leader %+v, want none", w)
	case want != "" && (w == nil || w.ID != want || !w.IsLeader || w.LeaderUntil == nil):
		t.Errorf("leader %+v, want %s", w, want)
	}
	return w
}

func TestLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		a, _ := newStore(server)
		b, _ := newStore(server)
		wantLeader(t, a, "")
		renew(t, a, "w-a", false) // nobody leads
		register(t, a, "w-a", "w-b")
		lead(t, a, "w-a", true)
		lead(t, b, "w-b", false)
		renew(t, b, "w-b", false) // another one leads
		if w := wantLeader(t, b, "w-a"); w.Concurrency != 8 || !w.LeaderUntil.Equal(time.Now().Add(ttl)) {
			t.Errorf("leader %+v", w)
		}
		all, err := b.ListWorkers(t.Context())
		if err != nil || len(all) != 2 || !all[0].IsLeader || all[1].IsLeader ||
			!get(t, b, "w-a").IsLeader || get(t, b, "w-b").IsLeader {
			t.Errorf("who leads of %v, %v", all, err)
		}
		server.took()
		for range 5 {
			time.Sleep(ttl - 1)
			renew(t, a, "w-a", true)
			wantLeader(t, b, "w-a") // observes
		}
		lead(t, a, "w-a", true) // which is a renewal
		lead(t, b, "w-b", false)
		if l := server.lease("dispatch-leader"); *l.Spec.LeaseTransitions != 0 || *l.Spec.LeaseDurationSeconds != 15 {
			t.Errorf("Lease %+v", l.Spec)
		}
		// At its end it is over for its holder, and for those who have seen the last renewal.
		time.Sleep(ttl)
		renew(t, a, "w-a", false)
		wantLeader(t, a, "")
		wantLeader(t, b, "")
		lead(t, b, "w-b", true)
		renew(t, a, "w-a", false)
		wantLeader(t, a, "w-b")
	})
}

func TestRenewalIsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		s, c := newStore(server)
		lead(t, s, "w-a", true)
		server.took()
		for range 3 {
			time.Sleep(time.Second)
			renew(t, s, "w-a", true)
		}
		if took := server.took(); took != "update update update" {
			t.Errorf("three renewals took: %s", took)
		}
		// The answer is lost; somebody changes a label; the Lease is deleted.
		c.hook(nil, down)
		if ok, err := s.RenewLeadership(t.Context(), "w-a", ttl); ok || err == nil {
			t.Errorf("renewal without an answer: %v, %v", ok, err)
		}
		c.hook(nil, nil)
		renew(t, s, "w-a", true)
		server.change("dispatch-leader", func(l *leaseT) { l.Labels["team"] = "red" })
		renew(t, s, "w-a", true)
		server.remove("dispatch-leader")
		renew(t, s, "w-a", false)
		if server.lease("dispatch-leader") != nil {
			t.Error("a renewal made a Lease")
		}
	})
}

// Who sees a leadership for the first time cannot know how old it is.
func TestNewObserverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		a, _ := newStore(server)
		lead(t, a, "w-a", true)
		time.Sleep(time.Hour)
		b, _ := newStore(server)
		lead(t, b, "w-b", false)
		time.Sleep(ttl - 1)
		lead(t, b, "w-b", false)
		time.Sleep(time.Nanosecond)
		lead(t, b, "w-b", true)
	})
}

func TestOneOfManyWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		var mu sync.Mutex
		won := 0
		campaign := func(stores []*Store) {
			var all sync.WaitGroup
			for _, s := range stores {
				all.Go(func() {
					ok, err := s.AcquireLeadership(context.Background(), cluster.NewWorkerID(), ttl)
					if err != nil {
						t.Error(err)
					}
					if ok {
						mu.Lock()
						won++
						mu.Unlock()
					}
				})
			}
			all.Wait()
		}
		var stores []*Store
		for range 8 {
			s, _ := newStore(server)
			stores = append(stores, s)
		}
		campaign(stores) // none was there
		time.Sleep(ttl)
		campaign(stores) // one that has run out
		if won != 2 {
			t.Errorf("%d have won two times", won)
		}
	})
}

func TestLeaderWithoutRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newStore(newServer())
		lead(t, s, "w-a", true)
		if w := wantLeader(t, s, "w-a"); w.Hostname != "" || w.State != "" {
			t.Errorf("leader %+v", w)
		}
		c.hook(down, nil)
		if _, err := s.GetLeader(t.Context()); err == nil || errors.Is(err, cluster.ErrWorkerNotFound) {
			t.Errorf("GetLeader: %v", err)
		}
	})
}
