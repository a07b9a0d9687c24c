package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// TestBucket walks buckets through time. Each step charges, and then says what is there.
func TestBucket(t *testing.T) {
	type step struct {
		at     time.Duration // since the start
		charge int
		tokens int
		wait   time.Duration // until there is a whole token
	}
	const ms = time.Millisecond
	for _, test := range []struct {
		name  string
		rate  float64
		burst int
		steps []step
	}{
		{"starts full and fills no further", 2, 4, []step{{0, 0, 4, 0}, {time.Hour, 0, 4, 0}}},
		{"refills at its rate", 2, 4, []step{
			{0, 4, 0, 500 * ms}, {499 * ms, 0, 0, 1 * ms}, {500 * ms, 0, 1, 0}, {1500 * ms, 0, 3, 0}, {9 * time.Second, 0, 4, 0},
		}},
		{"keeps what is left of a token", 10, 10, []step{
			{0, 10, 0, 100 * ms}, {150 * ms, 1, 0, 50 * ms}, {200 * ms, 1, 0, 100 * ms},
		}},
		{"burst 1", 1000, 1, []step{{0, 1, 0, 1 * ms}, {1 * ms, 1, 0, 1 * ms}, {10 * ms, 0, 1, 0}}},
		{"charged more than its burst", 10, 3, []step{
			{0, 23, -20, 2100 * ms}, {2000 * ms, 0, 0, 100 * ms}, {2100 * ms, 1, 0, 100 * ms},
		}},
		{"charged in debt", 1, 2, []step{{0, 2, 0, time.Second}, {0, 5, -5, 6 * time.Second}, {6 * time.Second, 0, 1, 0}}},
		{"a task in 100 s", 0.01, 1, []step{
			{0, 1, 0, 100 * time.Second}, {99 * time.Second, 0, 0, time.Second}, {100 * time.Second, 1, 0, 100 * time.Second},
		}},
		{"a million per second", 1e6, 500, []step{
			{0, 500, 0, time.Microsecond}, {time.Microsecond, 1, 0, time.Microsecond}, {251 * time.Microsecond, 0, 250, 0},
			{251 * time.Microsecond, 1_000_250, -1_000_000, time.Second + time.Microsecond},
		}},
		{"a rate that is no fraction of a second", 3, 1, []step{{0, 1, 0, 333_333_334}, {333_333_334, 0, 1, 0}}},
		{"longer than a Duration", 1e-30, 1, []step{{0, 1, 0, longestWait}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b bucket
			start := time.Unix(1_700_000_000, 0)
			b.set(Limits{Rate: test.rate, Burst: test.burst}.resolved(), start)
			for i, s := range test.steps {
				now := start.Add(s.at)
				b.charge(s.charge, now)
				if got := b.tokens(now); got != s.tokens {
					t.Errorf("step %d: %d tokens, want %d", i, got, s.tokens)
				}
				// A wait is rounded up to a whole nanosecond, after arithmetic that may be off by a part of one.
				if got := b.refilled(now).Sub(now); got < s.wait || got > s.wait+1 {
					t.Errorf("step %d: wait %v, want %v", i, got, s.wait)
				}
			}
		})
	}
}

// TestBucketWithoutRate: the zero value, and a bucket whose rate has been taken away, never lack a token.
func TestBucketWithoutRate(t *testing.T) {
	var b bucket
	now := time.Unix(1_700_000_000, 0)
	for _, what := range []string{"zero value", "rate taken away"} {
		b.charge(1000, now)
		if b.tokens(now) < 1000 || !b.refilled(now).Equal(now) {
			t.Errorf("%s: %d tokens, next at %v", what, b.tokens(now), b.refilled(now))
		}
		b.set(Limits{Rate: 1, Burst: 1}, now)
		b.charge(5, now)
		b.set(Limits{}, now)
	}
}

// TestBucketChange: tokens and debt outlive a change of rate and burst.
func TestBucketChange(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, test := range []struct {
		charge      int
		to          Limits
		tokens      int
		afterAWhile int // a second later
	}{
		{0, Limits{Rate: 1, Burst: 20}, 10, 11},
		{0, Limits{Rate: 1, Burst: 4}, 4, 4},
		{8, Limits{Rate: 5, Burst: 10}, 2, 7},
		{8, Limits{Rate: 5, Burst: 1}, 1, 1},
		{15, Limits{Rate: 2, Burst: 10}, -5, -3},
	} {
		t.Run(fmt.Sprintf("%d charged, to %v", test.charge, test.to), func(t *testing.T) {
			var b bucket
			b.set(Limits{Rate: 10, Burst: 10}, now)
			b.charge(test.charge, now)
			b.set(test.to, now)
			if got := b.tokens(now); got != test.tokens {
				t.Errorf("%d tokens, want %d", got, test.tokens)
			}
			if got := b.tokens(now.Add(time.Second)); got != test.afterAWhile {
				t.Errorf("%d tokens after a second, want %d", got, test.afterAWhile)
			}
		})
	}
}

// FuzzBucketRefill: there is a token at the instant that refilled names, and none a microsecond or a thousandth of a
// token earlier. A caller who sleeps until then must not find that it has to sleep again.
func FuzzBucketRefill(f *testing.F) {
	f.Add(0.01, 1, int64(0), 1)
	f.Add(1e6, 500, int64(123_456_789), 100_000)
	f.Add(3.0, 1, int64(333_333_333), 1)
	f.Add(0.1, 3, int64(1e15), 7)
	f.Add(1.0/12, 1, int64(333_333_445), 126) // rounding: a token, less 2^-53
	f.Fuzz(func(t *testing.T, rate float64, burst int, later int64, charge int) {
		if rate < 0.0001 || rate > 1e6 || burst < 1 || burst > 1e6 || later < 0 || charge < 1 || charge > 1e6 {
			t.Skip("no limits, or times, that a queue can have")
		}
		var b bucket
		start := time.Unix(1_700_000_000, 0)
		b.set(Limits{Rate: rate, Burst: burst}.resolved(), start)
		now := start.Add(time.Duration(later))
		b.charge(burst, start)
		b.charge(charge, now)
		at := b.refilled(now)
		if b.tokens(at) < 1 {
			t.Errorf("no token at %v", at.Sub(now))
		}
		if again := b.refilled(at); !again.Equal(at) {
			t.Errorf("at %v there is a token, but it comes after %v", at.Sub(now), again.Sub(at))
		}
		early := at.Add(-max(time.Microsecond, time.Duration(1e6/rate)))
		if early.After(now) && b.tokens(early) >= 1 {
			t.Errorf("a token %v before it was to come", at.Sub(early))
		}
	})
}
