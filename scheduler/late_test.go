package scheduler

import (
	"testing"
	"time"
)

// A claim that gets no answer keeps no places from other queues, and what it brings late counts all the same.
func TestLate(t *testing.T) {
	now := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	s := New(Options{Places: 10, ClaimCap: 100})
	next := func(queue string, budget int) {
		t.Helper()
		if g, ok := s.Next(now); !ok || g != (Grant{queue, budget}) {
			t.Fatalf("granted %v, %v, want %d of %s", g, ok, budget, queue)
		}
	}
	s.Late("unknown")
	s.Due("hung", now, now)
	s.Late("hung") // no claim is in flight
	next("hung", 10)
	s.Due("well", now, now)
	if g, ok := s.Next(now); ok {
		t.Fatalf("granted %v while a claim may bring ten tasks for ten places", g)
	}
	s.Late("hung")
	s.Late("hung")
	next("well", 10)
	s.Claimed("well", Claim{Leased: 4, Next: now}, now)
	s.Claimed("hung", Claim{Leased: 10, Next: now}, now)
	if got := s.InFlight(); got != 14 || s.Claiming() != 0 {
		t.Errorf("%d leases and %d claims in flight, want 14 and 0", got, s.Claiming())
	}
	if g, ok := s.Next(now); ok {
		t.Errorf("granted %v beyond the places", g)
	}
	s.Done("hung", 10, now)
	s.Done("well", 4, now)
	next("well", 10) // it had fewer
	s.Claimed("well", Claim{Leased: 1}, now)
	next("hung", 9) // in time again, it keeps its places
	if s.reserved != 9 {
		t.Errorf("%d places are reserved, want 9", s.reserved)
	}
}

// A backlogged queue whose claim is late is not waited for: others are prefetched.
func TestLateBacklogged(t *testing.T) {
	now := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	s := New(Options{Places: 10, ClaimCap: 10})
	s.Due("hung", now, now)
	s.Next(now)
	s.Claimed("hung", Claim{Leased: 1, Next: now}, now)
	s.Next(now)
	if s.returning.min() == nil {
		t.Fatal("the queue is not backlogged, which proves nothing")
	}
	s.Late("hung")
	if s.returning.min() != nil {
		t.Error("the late queue is still waited for")
	}
	s.Claimed("hung", Claim{Next: now}, now)
	if g, ok := s.Next(now); !ok || g.Queue != "hung" {
		t.Errorf("granted %v, %v after the late answer", g, ok)
	}
}
