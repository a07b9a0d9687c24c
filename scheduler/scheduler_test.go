package scheduler

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"
)

// TestManyQueues: a hundred thousand queues that are due at one instant are granted once each, first come, first
// served.
func TestManyQueues(t *testing.T) {
	const n = 100_000
	now := time.Unix(1_700_000_000, 0)
	at := now.Add(time.Minute)
	s := New(Options{Places: 10, ClaimCap: 1})
	for i := range n {
		s.Due(strconv.Itoa(i), at, now)
	}
	if _, ok := s.Next(now); ok {
		t.Error("granted before the time")
	}
	if next, ok := s.NextAt(now); !ok || !next.Equal(at) {
		t.Errorf("NextAt is %v, %v; want %v", next, ok, at)
	}
	for i := range n {
		g, ok := s.Next(at)
		if !ok || g.Queue != strconv.Itoa(i) {
			t.Fatalf("grant %d is %v, %v", i, g, ok)
		}
		s.Claimed(g.Queue, Claim{Leased: 1}, at)
		s.Done(g.Queue, 1, at)
	}
	if _, ok := s.NextAt(at); ok {
		t.Error("there is more to claim")
	}
	if err := s.check(at); err != nil {
		t.Error(err)
	}
}

// TestZeroTime: the zero time is an instant like any other to Due, although the scheduler takes it for "never".
func TestZeroTime(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := New(Options{Places: 1})
	s.Due("mail", time.Time{}, now)
	if _, ok := s.Next(now); !ok {
		t.Error("a task that was due long ago is not seen")
	}
}

// TestClockGoesBack: what was seen to be due stays granted, and nothing that was counted is lost.
func TestClockGoesBack(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	before := now.Add(-time.Hour)
	s := New(Options{Places: 10, ClaimCap: 10})
	s.SetLimits("mail", Limits{Rate: 1, Burst: 5}, before)
	s.Due("mail", before, before)
	s.Next(before)
	s.Claimed("mail", Claim{Leased: 5, Next: now}, before)
	if at, ok := s.NextAt(now); !ok || !at.Equal(now) {
		t.Errorf("NextAt is %v, %v", at, ok)
	}
	if g, ok := s.Next(before); !ok || g.Budget != 1 {
		t.Errorf("an hour before its token, a queue that was ready is granted %v, %v; want 1", g, ok)
	}
	s.Claimed("mail", Claim{Leased: 1, Next: before}, before)
	s.Done("mail", 6, before)
	if err := s.check(now); err != nil {
		t.Error(err)
	}
	if _, ok := s.Next(now.Add(time.Hour)); !ok {
		t.Error("nothing is granted any more")
	}
}

// TestLimitsThatMeanTheSame are told from others by their resolved form.
func TestLimitsThatMeanTheSame(t *testing.T) {
	none := Limits{}.resolved()
	for _, l := range []Limits{
		{Burst: 5}, {Burst: -1}, {Weight: 1}, {Weight: -3}, {Concurrent: -1},
		{Rate: -1}, {Rate: math.NaN()}, {Rate: math.Inf(1), Burst: 3}, {Rate: math.Inf(-1)},
	} {
		if got := l.resolved(); got != none {
			t.Errorf("%+v sets limits: %+v", l, got)
		}
	}
	if l := (Limits{Rate: 0.5}).resolved(); l != (Limits{Rate: 0.5, Burst: 1, Weight: 1}) {
		t.Errorf("a rate is resolved to %+v", l)
	}
	if l := (Limits{Concurrent: 1}).resolved(); l != (Limits{Concurrent: 1, Weight: 1}) {
		t.Errorf("a concurrency limit is resolved to %+v", l)
	}
}

// TestPassGrows: each claim moves a queue up, whatever its weight, and by its share.
func TestPassGrows(t *testing.T) {
	for _, test := range []struct {
		n, weight int
		want      pass
	}{
		{1, 1, stride}, {0, 1, stride}, {100, 1, 100 * stride}, {3, 3, stride}, {100, 1000, stride / 10},
		{1, 1000, stride / 1000}, {1, math.MaxInt, 1}, {0, math.MaxInt, 1},
	} {
		t.Run(fmt.Sprintf("%d tasks of weight %d", test.n, test.weight), func(t *testing.T) {
			if got := pass(7).after(test.n, test.weight) - 7; got != test.want {
				t.Errorf("moved up by %d, want %d", got, test.want)
			}
		})
	}
	if got := pass(3 * stride).less(2); got != stride {
		t.Errorf("two tasks before 3 is %d", got)
	}
	if got := pass(1).less(2); got != 0 {
		t.Errorf("before the beginning is %d", got)
	}
}

// TestNoAllocations: a queue that is known costs no memory, whatever happens to it.
func TestNoAllocations(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, shared := range []bool{false, true} {
		s := New(Options{Places: 64, ClaimCap: 100, Shared: shared})
		s.SetLimits("limited", Limits{Rate: 1e6, Burst: 2, Concurrent: 10}, now)
		life := func() {
			now = now.Add(time.Millisecond)
			for _, name := range []string{"free", "limited"} {
				s.Due(name, now.Add(time.Microsecond), now)
			}
			now = now.Add(time.Microsecond)
			for range 2 {
				g, ok := s.Next(now)
				if !ok {
					t.Fatal("no grant")
				}
				s.Claimed(g.Queue, Claim{Leased: g.Budget + 1, Next: now.Add(time.Second)}, now)
				s.NextAt(now)
				s.Done(g.Queue, g.Budget+1, now)
			}
		}
		life()
		if n := testing.AllocsPerRun(100, life); n > 0 {
			t.Errorf("shared %v: %v allocations", shared, n)
		}
	}
}
