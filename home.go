package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

const (
	// stealDelay is how long a queue's homes have for a task before the next worker in line claims it.
	stealDelay = 50 * time.Millisecond
	// forgottenAfter is how long a note says "now" before everybody takes it for work that nobody else does.
	forgottenAfter = 10 * time.Second
	// actingFor is how long a worker that had to step in for a queue's homes takes itself for one: longer than tasks are put
	// off that only it can run.
	actingFor = 2 * unknownKindDelay
	// handOverPause is how often a home that has no place asks the others to step in for a queue.
	handOverPause = 250 * time.Millisecond
	// planInterval is how often the plan is read without a message of a new one.
	planInterval = 30 * time.Second
)

// Everybody may claim from every queue at any time. But if all processes that hear of a task claimed it, all claims but
// one would be for nothing. So a queue's home claims at once, the next in line a moment later in case the home is hung,
// and the others when they are asked to by one that has no place for more, or when a note grows old.

// fleetLoop keeps this process's view of the others: the leader's plan, or what it makes of the registry without one.
func (d *Dispatcher) fleetLoop(ctx context.Context) {
	var warned bool
	for ctx.Err() == nil {
		plan, err := d.readPlan(ctx)
		switch {
		case err == nil:
			d.log.recovered("plan")
			if d.adopt(plan) {
				d.readNotes(ctx, 0) // this process may be at home where it has not looked yet
			}
			if d.opts.Leader == nil && d.hasPeers() && !warned {
				warned = true
				d.log.Warn("dispatch: there are several workers, and this one has no elector; set Options.Leader on all")
			}
		case ctx.Err() == nil:
			d.log.failing("plan", err)
		}
		d.pauseOr(ctx, soonerThan(planInterval), d.planHeard)
	}
}

// readPlan returns the leader's plan, or one of the live workers.
func (d *Dispatcher) readPlan(ctx context.Context) (*cluster.Plan, error) {
	if d.opts.Leader != nil {
		if plan, err := d.store.Plan(ctx); plan != nil || err != nil {
			return plan, err
		}
	}
	workers, err := d.registry.ListWorkers(ctx)
	if err != nil {
		return nil, err
	}
	plan, _ := d.planOf(workers)
	return plan, nil
}

// planOf makes a plan of the workers that have not missed a beat, and says whether some have: not long enough ago to be
// marked dead, but long enough to be left out. One that is left out by mistake is a home of its own until the next plan.
func (d *Dispatcher) planOf(workers []*cluster.Worker) (plan *cluster.Plan, missing bool) {
	workers = slices.DeleteFunc(slices.Clone(workers), func(w *cluster.Worker) bool { return w.State == cluster.StateDead })
	heard := cluster.Heard(workers, d.opts.HeartbeatInterval*11/10)
	return cluster.NewPlan(heard), len(heard) < len(workers)
}

// adopt makes a plan this process's own, and fits what the scheduler predicts to the new shares. It says whether the plan
// tells anything new.
func (d *Dispatcher) adopt(plan *cluster.Plan) bool {
	now := d.opts.Clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.planned.Same(plan) {
		return false
	}
	d.planned = plan
	clear(d.standings)
	for name, q := range d.queues {
		if q.settings != nil && !q.stale {
			d.sched.SetLimits(name, d.limitsOf(q), now)
		}
	}
	return true
}

// hasPeers says whether there are other live workers, as far as this process knows.
func (d *Dispatcher) hasPeers() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.knowsPeers()
}

// knowsPeers is hasPeers. d.mu is held.
func (d *Dispatcher) knowsPeers() bool {
	if d.planned == nil {
		return false
	}
	for _, w := range d.planned.Workers {
		if w.ID != d.worker {
			return true
		}
	}
	return false
}

// standing is where this process stands with a queue. d.mu is held.
func (d *Dispatcher) standing(queue string) cluster.Standing {
	s, known := d.standings[queue]
	if !known {
		if len(d.standings) >= maxStandings {
			clear(d.standings)
		}
		s = d.planned.Standing(queue, d.worker)
		d.standings[queue] = s
	}
	return s
}

// maxStandings bounds what is remembered of standings, which cost a hash per worker to find.
const maxStandings = 100_000

// actsAsHome says whether this process claims from a queue at once. d.mu is held.
func (d *Dispatcher) actsAsHome(queue string, now time.Time) bool {
	if d.standing(queue).Home() {
		return true
	}
	q := d.queues[queue]
	return q != nil && now.Before(q.actingUntil)
}

// turn says when it is this process's turn to claim what a hint tells of, and whether it ever is: most tasks are for others
// alone. d.mu is held.
func (d *Dispatcher) turn(h Hint, now time.Time) (at time.Time, mine bool) {
	at = now.Add(max(h.Wait, 0))
	if q := d.queues[h.Queue]; q != nil && now.Before(q.strangeUntil) && d.knowsPeers() {
		at = at.Add(2 * stealDelay) // after the next in line
	}
	s := d.standing(h.Queue)
	switch {
	case h.HandOver, d.actsAsHome(h.Queue, now), -h.Wait >= forgottenAfter:
		return at, true
	case s.Rank == s.Homes:
		return at.Add(stealDelay), true
	}
	return time.Time{}, false
}

// stepIn makes a process act as a home for a while that has found work which the homes have left to it. d.mu is held.
func (d *Dispatcher) stepIn(q *servedQueue, now time.Time) {
	if !d.standing(q.name).Home() {
		q.actingUntil = now.Add(actingFor)
	}
}

// handOver asks the others to step in for a queue that has more due than this process has places for: its home at once,
// and the next in line after the delay in which the homes may have taken it. d.mu is held.
func (d *Dispatcher) handOver(q *servedQueue, now time.Time) {
	if !d.lacksRoom(q) {
		return
	}
	if s := d.standing(q.name); d.actsAsHome(q.name, now) {
		d.askForHelp(q, 0, now)
	} else if s.Rank == s.Homes {
		d.askForHelp(q, stealDelay, now)
	}
}

// lacksRoom says whether this process cannot take a task of a queue at the moment. d.mu is held.
func (d *Dispatcher) lacksRoom(q *servedQueue) bool {
	return d.sched.Full(q.name) || q.starved
}

// askForHelp asks the others to step in for a queue, if this process still lacks room after the delay, and no sooner than
// a pause after it last did so. d.mu is held.
func (d *Dispatcher) askForHelp(q *servedQueue, delay time.Duration, now time.Time) {
	if !d.knowsPeers() || q.asking {
		return
	}
	if pause := max(handOverPause-now.Sub(q.handedAt), delay); pause > 0 {
		q.asking = true
		d.opts.Clock.AfterFunc(pause, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			q.asking = false
			if d.life.loops.Err() == nil && d.queues[q.name] == q && d.lacksRoom(q) {
				d.askForHelp(q, 0, d.opts.Clock.Now())
			}
		})
		return
	}
	q.handedAt = now
	d.tell(Hint{Queue: q.name, HandOver: true})
}
