package dispatch

import (
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// room is what this process's capacity has left. Dispatcher.mu guards it.
type room struct {
	free cluster.Resources // nil when the process states no capacity
	// vacated counts how often room was given back.
	vacated int
	// starved are queues whose due tasks do not fit at the moment.
	starved map[string]bool
}

// admit makes room for a task, and says whether there is enough.
func (d *Dispatcher) admit(r *running) bool {
	need := r.leased.Task.Requires
	if d.opts.Capacity == nil || len(need) == 0 {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.room.free.Fits(need) {
		return false
	}
	d.room.free = d.room.free.Sub(need)
	r.admitted = true
	return true
}

// vacate gives the room of a task back, when it has ended, and wakes the queues that wait for some.
func (d *Dispatcher) vacate(r *running) {
	if !r.admitted {
		return
	}
	now := d.opts.Clock.Now()
	d.mu.Lock()
	d.room.free = d.room.free.Add(r.leased.Task.Requires)
	d.room.vacated++
	for name := range d.room.starved {
		d.sched.Due(name, now, now)
	}
	clear(d.room.starved)
	d.mu.Unlock()
	d.poke()
}

const (
	// skipFor is how long claims pass over the tasks that did not fit, before they begin at the first one again.
	skipFor = 5 * time.Second
	// maxLooks is how many claims in a row look for a task that fits, each a few hundred tasks further. The search goes on
	// from there a ReconcileInterval later.
	maxLooks = 20
)

// skipped is how many tasks the next claim leaves aside.
func (q *servedQueue) skipped(now time.Time) int {
	if !q.searching && now.Sub(q.skipSince) >= skipFor {
		q.skip, q.skipSince = 0, now
	}
	return q.skip
}

// lookFurther takes in that due tasks do not fit, and says whether to claim again at once, behind them: if not even all
// of the capacity is enough for them. So any number of tasks that fit nobody hide none that does. Tasks that only do not fit
// at the moment keep their turn. d.mu is held.
func (d *Dispatcher) lookFurther(q *servedQueue, reply *ClaimReply, now time.Time) bool {
	if !q.whole || len(reply.Leased) > 0 {
		return false
	}
	q.skip, q.skipSince, q.searching = reply.Skip, now, reply.Skip > 0
	q.looks++
	if q.searching && q.looks < maxLooks {
		return true
	}
	q.looks = 0
	if !q.warnedUnfit {
		q.warnedUnfit = true
		d.log.Warn("dispatch: tasks wait that need more than this whole process has; see Options.Capacity", "queue", q.name)
	}
	return false
}

// starve leaves a queue alone whose first due tasks do not fit, until there is more room, and asks others to step in. The
// instant is when to try again in any case. d.mu is held.
func (d *Dispatcher) starve(q *servedQueue, now time.Time) (again time.Time) {
	if d.room.starved == nil {
		d.room.starved = make(map[string]bool)
	}
	if d.room.vacated != q.vacated {
		return now // the claim was sent before there was as much room as now
	}
	d.room.starved[q.name] = true
	d.askForHelp(q, 0, now)
	return now.Add(d.opts.ReconcileInterval)
}
