package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// TestMayTake: the bound is never all places, and rises with what is free.
func TestMayTake(t *testing.T) {
	for places, want := range map[int]int{1: 1, 2: 1, 3: 2, 4: 3, 5: 3, 7: 5, 8: 6, 64: 48, 1000: 750} {
		has := 0
		for mayTake(has, places-has) {
			has++
		}
		if has != want {
			t.Errorf("one queue may have %d of %d places, want %d", has, places, want)
		}
	}
	if mayTake(0, 0) || mayTake(3, 0) || mayTake(0, -1) {
		t.Error("a place may be taken that is not there")
	}
}

// TestParts: busy queues that take turns have equal parts, and leave some places to the others.
func TestParts(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, test := range []struct{ places, queues, each int }{{64, 1, 48}, {64, 2, 27}, {64, 3, 19}, {64, 6, 10}, {10, 2, 4}} {
		t.Run(fmt.Sprintf("%d queues, %d places", test.queues, test.places), func(t *testing.T) {
			s := New(Options{Places: test.places, ClaimCap: 1, Shared: true})
			for i := range test.queues {
				s.Due(fmt.Sprint(i), now, now)
			}
			for {
				g, ok := s.Next(now)
				if !ok {
					break
				}
				s.Claimed(g.Queue, Claim{Leased: 1, Next: now}, now)
			}
			for name, q := range s.queues {
				if q.held != test.each {
					t.Errorf("queue %s has %d places, want %d", name, q.held, test.each)
				}
				if !s.Full(name) {
					t.Errorf("queue %s is not full", name)
				}
			}
			if s.Full("quiet") {
				t.Error("there is no place for another queue")
			}
			s.Due("quiet", now, now)
			if g, ok := s.Next(now); !ok || g.Queue != "quiet" {
				t.Errorf("granted %v, %v, want some of quiet", g, ok)
			}
			if err := s.check(now); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLateAndParts: what a late claim brings when others have its places waits for a place, and takes none from a queue
// that has none.
func TestLateAndParts(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := New(Options{Places: 16, ClaimCap: 100, Shared: true})
	for _, name := range []string{"hung", "well"} {
		s.Due(name, now, now)
		if g, ok := s.Next(now); !ok || g != (Grant{name, 12}) {
			t.Fatalf("granted %v, %v, want 12 of %s", g, ok, name)
		}
		s.Late("hung")
	}
	s.Claimed("well", Claim{Leased: 12, Next: now}, now)
	s.Claimed("hung", Claim{Leased: 12, Next: now}, now)
	s.Due("quiet", now, now)
	if g, ok := s.Next(now); !ok || g != (Grant{"quiet", 1}) {
		t.Errorf("granted %v, %v, want 1 of quiet", g, ok)
	}
	if q := s.queues["hung"]; q.held != 3 || s.InFlight() != 24 {
		t.Errorf("%d of %d leases have a place, want 3 of 24", q.held, s.InFlight())
	}
	s.Returned("hung", 9, now) // they have waited too long
	if q := s.queues["hung"]; q.held != 3 || q.leases != 3 {
		t.Errorf("%d of %d leases have a place, want all 3", q.held, q.leases)
	}
}

// TestWorking: places in which the next tasks have begun before Done was called are given to nobody; but a queue that has
// more than its part gets no others for them.
func TestWorking(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := New(Options{Places: 16, ClaimCap: 100, Shared: true})
	part := map[string]int{}
	parts := func(busy, other int) {
		t.Helper()
		s.Bounds(func(queue string, places int) { part[queue] = places })
		if part["busy"] != busy || part["other"] != other {
			t.Errorf("may be worked on: %v, want %d and %d", part, busy, other)
		}
	}
	s.Due("busy", now, now)
	s.Next(now)
	s.Claimed("busy", Claim{Leased: 30}, now) // 12 have places
	parts(12, 0)
	s.Done("busy", 2, now)
	s.Working("busy", 12) // two of those that waited have begun
	part["busy"] = 0
	parts(12, 0)
	s.Due("other", now, now)
	s.Next(now)
	s.Claimed("other", Claim{Leased: 3, Next: now}, now)
	parts(12, 3)
	s.Done("busy", 4, now)
	s.Working("busy", 12)
	part["busy"] = 0
	if g, ok := s.Next(now); ok {
		t.Errorf("granted %v of places that are taken", g)
	}
	parts(8, 3)
	s.Done("busy", 4, now)
	s.Working("busy", 8)
	part["busy"] = 0
	// Five are free, and each queue may have more again: first what waits already, then what is still to be claimed.
	if g, ok := s.Next(now); !ok || g != (Grant{"other", 2}) {
		t.Errorf("granted %v, %v, want 2 of other", g, ok)
	}
	parts(9, 3)
	s.Working("unknown", 1)
	if err := s.check(now); err != nil {
		t.Error(err)
	}
}
