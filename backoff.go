package dispatch

import (
	"math/rand/v2"
	"time"
)

const (
	firstPause = 50 * time.Millisecond
	topPause   = 5 * time.Second
)

// backoffAfter is the pause after the given number of failures in a row of a call to the store: 50 ms doubling to 5 s,
// with half of it random, so that processes that failed together do not come back together.
func backoffAfter(failures int) time.Duration {
	pause := firstPause << min(max(failures-1, 0), 10)
	pause = min(pause, topPause)
	return pause/2 + rand.N(pause/2+1)
}

// soonerThan is a random time in the last fifth of an interval, so that processes that started together spread out.
func soonerThan(interval time.Duration) time.Duration {
	return interval - rand.N(interval/5+1)
}
