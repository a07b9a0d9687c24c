package dispatch

import (
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// room is what this process's capacity has left. Dispatcher.mu guards it.
type room struct {
	free cluster.Resources // nil when the process states no capacity
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
	for name := range d.room.starved {
		d.sched.Due(name, now, now)
	}
	clear(d.room.starved)
	d.mu.Unlock()
	d.poke()
}

// starve leaves a queue alone whose first due tasks do not fit, until there is more room, and asks others to step in. The
// instant is when to try again in any case. d.mu is held.
func (d *Dispatcher) starve(q *servedQueue, now time.Time) (again time.Time) {
	if d.room.starved == nil {
		d.room.starved = make(map[string]bool)
	}
	d.room.starved[q.name] = true
	d.askForHelp(q, now)
	return now.Add(d.opts.ReconcileInterval)
}
