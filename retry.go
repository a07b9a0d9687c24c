package dispatch

import (
	"math"
	"time"
)

// RetryConfig says how failed attempts are repeated. In every field 0 means: inherit (a task from its queue, a queue
// from the defaults), and a negative value means: none (for the counts, −1).
//
// The rules are those of Google Cloud Tasks.
type RetryConfig struct {
	// MaxAttempts counts the first attempt too. Default 25; −1 is unlimited.
	MaxAttempts int
	// MaxRetryDuration is measured from the start of the first attempt. Default none. When both limits are set,
	// retries go on until both are reached.
	MaxRetryDuration time.Duration
	// MinBackoff is the wait after the first failure. Default 1 s; negative is no wait. MaxBackoff, also an inherited one,
	// bounds it.
	MinBackoff time.Duration
	// MaxBackoff bounds every wait. Default 1 h; negative is no bound.
	MaxBackoff time.Duration
	// MaxDoublings is how often the wait doubles before it grows by equal steps. Default 16, at most 64; −1 is never.
	MaxDoublings int
	// Jitter moves every wait by a random part of it, up to this fraction, sooner or later: 0.1 is up to a tenth, 1 the most.
	// Default none. MaxBackoff bounds the result too.
	Jitter float64
}

// defaultRetry is what a queue inherits: 25 attempts, 1 s doubling up to 1 h, no limit of time.
var defaultRetry = RetryConfig{
	MaxAttempts: 25, MaxRetryDuration: -1, MinBackoff: time.Second, MaxBackoff: time.Hour, MaxDoublings: 16, Jitter: -1,
}

// over fills the fields that rc leaves 0 from base.
func (rc RetryConfig) over(base RetryConfig) RetryConfig {
	return RetryConfig{
		MaxAttempts:      inherit(rc.MaxAttempts, base.MaxAttempts),
		MaxRetryDuration: inherit(rc.MaxRetryDuration, base.MaxRetryDuration),
		MinBackoff:       inherit(rc.MinBackoff, base.MinBackoff),
		MaxBackoff:       inherit(rc.MaxBackoff, base.MaxBackoff),
		MaxDoublings:     inherit(rc.MaxDoublings, base.MaxDoublings),
		Jitter:           inherit(rc.Jitter, base.Jitter),
	}
}

func inherit[T int | float64 | time.Duration](own, base T) T {
	if own == 0 {
		return base
	}
	return own
}

// resolveRetry is the config in force for a task: its own over its queue's over the defaults.
func resolveRetry(task *RetryConfig, queue RetryConfig) RetryConfig {
	rc := queue.over(defaultRetry)
	if task != nil {
		rc = task.over(rc)
	}
	return rc
}

// Backoff is the wait after the attempts-th failed attempt, counted from the failure: MinBackoff, doubled up to
// MaxDoublings times, then growing by the last doubling's step, never more than MaxBackoff.
//
// It takes a resolved config and defaults nothing: a MinBackoff or MaxDoublings of 0 or less is none, a MaxBackoff of 0
// or less is no bound. It saturates and never overflows.
func Backoff(rc RetryConfig, attempts int) time.Duration {
	if rc.MinBackoff <= 0 || attempts < 1 {
		return 0
	}
	doublings := min(max(rc.MaxDoublings, 0), maxDoublings) // of anything, so many are more than fit
	limit := float64(math.MaxInt64)
	if rc.MaxBackoff > 0 {
		limit = float64(rc.MaxBackoff)
	}
	// Floats saturate where a Duration would overflow; below 2^53 ns (104 days) they are exact.
	wait := math.Ldexp(float64(rc.MinBackoff), min(attempts-1, doublings))
	if steps := attempts - 1 - doublings; steps > 0 {
		wait *= float64(steps + 1)
	}
	if wait >= limit {
		if rc.MaxBackoff > 0 {
			return rc.MaxBackoff
		}
		return math.MaxInt64
	}
	return time.Duration(wait)
}

// jittered is a wait moved by its config's Jitter; luck is a random number from 0 to 1.
func jittered(rc RetryConfig, wait time.Duration, luck float64) time.Duration {
	if rc.Jitter <= 0 {
		return wait
	}
	moved := float64(wait) * (1 + rc.Jitter*(2*luck-1))
	limit := maxSchedule
	if rc.MaxBackoff > 0 {
		limit = rc.MaxBackoff
	}
	if moved >= float64(limit) {
		return limit // as it is, and not what a float makes of it
	}
	return time.Duration(moved)
}

// Exhausted says whether a task whose attempts-th attempt failed at now gets no further one. first is when its first
// attempt began; zero means unknown, and then MaxRetryDuration is not reached.
//
// It takes a resolved config and defaults nothing: a limit of 0 or less is none. A limit that is none does not hold the
// other one up; when both are set, both must be reached.
func Exhausted(rc RetryConfig, attempts int, first, now time.Time) bool {
	countSet, timeSet := rc.MaxAttempts > 0, rc.MaxRetryDuration > 0
	if !countSet && !timeSet {
		return false
	}
	countReached := attempts >= rc.MaxAttempts
	timeReached := !first.IsZero() && now.Sub(first) >= rc.MaxRetryDuration
	return (!countSet || countReached) && (!timeSet || timeReached)
}
