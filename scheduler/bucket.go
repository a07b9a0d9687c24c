package scheduler

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// bucket predicts the tokens of a queue's rate. The zero value is a queue without a rate.
type bucket struct {
	limiter *rate.Limiter
}

// set changes rate and burst. Tokens that were saved up stay, as far as the new burst has room.
func (b *bucket) set(perSecond float64, burst int, now time.Time) {
	if perSecond <= 0 {
		b.limiter = nil
		return
	}
	burst = max(burst, 1)
	if b.limiter == nil {
		b.limiter = rate.NewLimiter(rate.Limit(perSecond), burst)
		return
	}
	b.limiter.SetLimitAt(now, rate.Limit(perSecond))
	b.limiter.SetBurstAt(now, burst)
}

// slack makes up for what floating-point arithmetic loses of a token.
const slack = 1e-6

// whole is how many whole tokens there are; without a rate, more than anybody asks for.
func (b *bucket) whole(now time.Time) int {
	if b.limiter == nil {
		return math.MaxInt
	}
	return max(int(math.Floor(b.limiter.TokensAt(now)+slack)), 0)
}

// next is when there is one whole token: the zero time when there is one now.
func (b *bucket) next(now time.Time) time.Time {
	if b.whole(now) > 0 {
		return time.Time{}
	}
	missing := (1 - b.limiter.TokensAt(now)) / float64(b.limiter.Limit())
	return now.Add(time.Duration(math.Ceil(missing * float64(time.Second))))
}

// charge takes n tokens. The store has granted them, so it may take more than there are; the debt is waited off.
func (b *bucket) charge(n int, now time.Time) {
	for b.limiter != nil && n > 0 {
		part := min(n, b.limiter.Burst()) // a reservation of more than the burst is refused
		b.limiter.ReserveN(now, part)
		n -= part
	}
}
