package dispatch

import (
	"math"
	"math/big"
	"testing"
	"time"
)

// exactBackoff is Backoff in numbers of any size.
func exactBackoff(rc RetryConfig, attempts int) *big.Int {
	wait := big.NewInt(0)
	if rc.MinBackoff > 0 && attempts >= 1 {
		doublings := min(max(rc.MaxDoublings, 0), 64)
		wait.Lsh(big.NewInt(int64(rc.MinBackoff)), uint(min(attempts-1, doublings)))
		if steps := attempts - 1 - doublings; steps > 0 {
			wait.Mul(wait, new(big.Int).Add(big.NewInt(int64(steps)), big.NewInt(1)))
		}
	}
	limit := big.NewInt(math.MaxInt64)
	if rc.MaxBackoff > 0 {
		limit = big.NewInt(int64(rc.MaxBackoff))
	}
	if wait.Cmp(limit) > 0 {
		return limit
	}
	return wait
}

// FuzzBackoff compares with exact arithmetic: no wait is negative, above its bound, or shorter than that of the attempt
// before, and one below 104 days is exact.
func FuzzBackoff(f *testing.F) {
	f.Add(int64(time.Second), int64(time.Hour), 16, 25, 0.0, 0.5)
	f.Add(int64(1), int64(0), 64, math.MaxInt, 1.0, 0.0)
	f.Add(int64(math.MaxInt64), int64(-1), -1, 2, -1.0, 1.0)
	f.Add(int64(maxSchedule), int64(maxSchedule), 3, 5, 0.1, 1.0)
	f.Add(int64(-1), int64(1), 0, 0, 0.3, 0.7)
	f.Add(int64(316223999999999904), int64(316223999999999934), 3, 25, 0.1, 0.9) // a float of MaxBackoff is more than it
	f.Fuzz(func(t *testing.T, least, most int64, doublings, attempts int, jitter, luck float64) {
		rc := RetryConfig{MinBackoff: time.Duration(least), MaxBackoff: time.Duration(most), MaxDoublings: doublings}
		got, want := Backoff(rc, attempts), exactBackoff(rc, attempts)
		off := new(big.Int).Sub(want, big.NewInt(int64(got)))
		tolerance := new(big.Int).Rsh(want, 50) // floats have 53 bits
		if got < 0 || off.CmpAbs(tolerance) > 0 {
			t.Errorf("%+v after %d attempts: %d, want %d", rc, attempts, got, want)
		}
		if most > 0 && int64(got) > most {
			t.Errorf("%+v after %d attempts: %v", rc, attempts, got)
		}
		if attempts > math.MinInt && Backoff(rc, attempts-1) > got {
			t.Errorf("%+v after %d attempts: %v, after %v", rc, attempts, got, Backoff(rc, attempts-1))
		}

		rc.Jitter = jitter
		if rc.validate("Task.Retry") != nil || !(luck >= 0 && luck <= 1) {
			return
		}
		moved := jittered(rc, got, luck)
		bound := maxSchedule
		if most > 0 {
			bound = min(bound, time.Duration(most))
		}
		switch {
		case rc.Jitter <= 0 && moved != got:
			t.Errorf("%+v moves %v to %v", rc, got, moved)
		case rc.Jitter > 0 && (moved < 0 || moved > bound || float64(moved) > 2*float64(got)+1):
			t.Errorf("%+v moves %v to %v", rc, got, moved)
		}
	})
}

// FuzzExhausted spells the rules out: a limit that is none does not hold the other up, and of two both must be reached.
func FuzzExhausted(f *testing.F) {
	f.Add(3, int64(0), 3, int64(0), int64(0))
	f.Add(3, int64(time.Hour), 3, int64(1), int64(time.Hour))
	f.Add(-1, int64(-1), math.MaxInt, int64(1), int64(1))
	f.Add(0, int64(time.Hour), 1, int64(0), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, limit int, duration int64, attempts int, began, ran int64) {
		rc := RetryConfig{MaxAttempts: limit, MaxRetryDuration: time.Duration(duration)}
		first := time.Time{}
		if began != 0 {
			first = start.Add(time.Duration(began % (1 << 50)))
		}
		ran %= 1 << 50
		now := start.Add(time.Duration(began%(1<<50) + ran))
		byCount, byTime := attempts >= limit, !first.IsZero() && ran >= duration
		want := false
		switch {
		case limit > 0 && duration > 0:
			want = byCount && byTime
		case limit > 0:
			want = byCount
		case duration > 0:
			want = byTime
		}
		if got := Exhausted(rc, attempts, first, now); got != want {
			t.Errorf("%+v after %d attempts in %v: %v", rc, attempts, now.Sub(first), got)
		}
	})
}
