package scheduler

import "time"

const (
	// paceWindow is the least time over which tasks are counted, and the longest pause that is not idleness.
	paceWindow = 10 * time.Millisecond
	// claimTime is how long a claim takes on a store under load. What ends in that time is worth having at hand.
	claimTime = 5 * time.Millisecond
)

// pace measures how fast tasks end in this process, to say how many more it should hold than it has places. Where tasks
// end faster than a claim is answered, every place would stand empty for the length of a claim; where they take longer,
// holding more only keeps them from other processes.
//
// A window ends with the first task that ends at least paceWindow after its beginning. So a crowd of slow tasks that
// end together is no pace: its window ends with the next crowd, and is long.
//
// The zero value is a process in which nothing has ended yet.
type pace struct {
	opened time.Time // when the window began, with a task that ended
	ended  int       // tasks in it so far
	last   time.Time // when the last task ended
	ahead  int       // by the window before: tasks per claimTime
}

// done counts n tasks that ended at now.
func (p *pace) done(n int, now time.Time) {
	length := now.Sub(p.opened)
	switch {
	case p.idle(now):
		p.opened, p.ended, p.ahead = now, 0, 0
	case length >= paceWindow:
		p.ahead = int(int64(p.ended) * int64(claimTime) / int64(length))
		p.opened, p.ended = now, 0
	}
	p.ended += n
	p.last = now
}

// prefetch returns how many tasks to hold beyond the places: as many as are worth having at hand, and at most so many.
func (p *pace) prefetch(most int, now time.Time) int {
	if p.idle(now) {
		return 0
	}
	return min(p.ahead, most)
}

// idle says whether no task has ended for the length of a window.
func (p *pace) idle(now time.Time) bool {
	return now.Sub(p.last) >= paceWindow
}
