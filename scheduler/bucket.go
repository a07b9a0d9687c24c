package scheduler

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

const (
	// slack is what a token may lack and still count. It is far above the rounding error of a bucket that owes up to a
	// million tokens, and below what a store could notice: 100 ns at a rate of 0.01 per second. Because tokens and
	// refilled both allow for it, there is a token at the instant that refilled has named, not a few ns later.
	slack = 1e-9
	// longestWait bounds a wait, so that no rate is too low and no debt too deep for a time.Duration.
	longestWait = 100 * 365 * 24 * time.Hour
)

// bucket predicts how many tasks the store will lease of a queue with a rate. It starts full, and may owe tokens: the
// store decides what is leased, and the bucket only follows. The zero value is the bucket of a queue without a rate,
// which never lacks a token.
type bucket struct {
	limiter *rate.Limiter // nil without a rate
}

// set changes rate and burst. The tokens, or the debt, stay what they are at now, but for tokens beyond the new burst.
// It requires resolved Limits.
func (b *bucket) set(l Limits, now time.Time) {
	switch {
	case l.Rate == 0:
		b.limiter = nil
	case b.limiter == nil:
		b.limiter = rate.NewLimiter(rate.Limit(l.Rate), l.Burst)
	default:
		b.limiter.SetLimitAt(now, rate.Limit(l.Rate))
		b.limiter.SetBurstAt(now, l.Burst)
	}
}

// tokens returns how many whole tokens there are at now; below zero is a debt.
func (b *bucket) tokens(now time.Time) int {
	if b.limiter == nil {
		return math.MaxInt
	}
	return int(math.Floor(b.limiter.TokensAt(now) + slack))
}

// refilled returns the instant from which there is a whole token: now, or later.
func (b *bucket) refilled(now time.Time) time.Time {
	if b.limiter == nil {
		return now
	}
	missing := 1 - b.limiter.TokensAt(now)
	if missing <= slack {
		return now
	}
	wait := math.Ceil(missing / float64(b.limiter.Limit()) * float64(time.Second))
	return now.Add(time.Duration(min(wait, float64(longestWait))))
}

// charge takes n tokens, whether they are there or not.
func (b *bucket) charge(n int, now time.Time) {
	if b.limiter == nil {
		return
	}
	// A Limiter refuses to reserve more than its burst at a time, and lets reservations add up to any debt.
	for burst := b.limiter.Burst(); n > 0; n -= burst {
		b.limiter.ReserveN(now, min(n, burst))
	}
}
