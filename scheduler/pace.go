package scheduler

import "time"

// pace measures how fast leases end, to say how many tasks are worth having in memory before a place is free for them:
// those that end while a claim is under way.
type pace struct {
	since time.Time // start of the current window
	count int       // leases that ended in it
	ahead int       // tasks to prefetch, by the last whole window
}

const (
	paceWindow = 10 * time.Millisecond
	// claimTime is a generous time for a claim under load, its answer and the settling that frees a place.
	claimTime = 5 * time.Millisecond
)

// ended counts n leases that have ended.
func (p *pace) ended(n int, now time.Time) {
	p.roll(now)
	p.count += n
}

// prefetch is how many tasks end in one claimTime. It is 0 for slow handlers and after a pause.
func (p *pace) prefetch(now time.Time) int {
	p.roll(now)
	return p.ahead
}

// roll closes the window once it is over. One that is long over says that little happens.
func (p *pace) roll(now time.Time) {
	length := now.Sub(p.since)
	if length < paceWindow {
		return
	}
	p.ahead = int(int64(p.count) * int64(claimTime) / int64(length))
	if p.since.IsZero() {
		p.ahead = 0
	}
	p.since, p.count = now, 0
}
