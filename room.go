package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// room is what this process's capacity has left, and who is told of it. Dispatcher.mu guards it.
//
// Queues whose tasks do not fit stand in a line. They are woken one after the other: the next one when the one before has
// claimed and there is still room that no claim in flight is to fill. So the end of a task costs about one claim, however
// many queues wait. A queue is not woken for room in which, as it is known, none of its first tasks fits.
type room struct {
	free cluster.Resources // nil when the process states no capacity
	// reserved is the part of free that the claims in flight may fill, and claims is how many these are. A claim that is
	// late counts no more, as it keeps no places: what it brings beyond the room is given back.
	reserved cluster.Resources
	claims   int
	// line is the starved queues, those whose due tasks do not fit at the moment, by servedQueue.turn: the least recently
	// served first. turns is the last turn that was given.
	line  []*servedQueue
	turns uint64
	// probe says that room was given back since a queue was woken last, and probes counts those that were woken for that
	// alone.
	probe  bool
	probes int
	// waking is how many of the claims in flight are of queues that were woken. fruitless says that the last of these had to
	// leave all tasks where they were. Then it may be that several claims, each told of a part of the room, find nothing that
	// fits into any; so the next one is made alone, and told of all, until one brings something.
	waking    int
	fruitless bool
}

// left is the room that no claim in flight is to fill.
func (m *room) left() cluster.Resources { return atLeastNone(m.free.Sub(m.reserved)) }

// forWoken is the room that the claim of a queue of the line is told of.
func (m *room) forWoken() cluster.Resources {
	if m.fruitless {
		return atLeastNone(maps.Clone(m.free))
	}
	return m.left()
}

// atLeastNone is r, which it changes, without the amounts below zero.
func atLeastNone(r cluster.Resources) cluster.Resources {
	for name, amount := range r {
		r[name] = max(amount, 0)
	}
	return r
}

// next is the queue of the line that is to be woken, or nil. Of those for which there is more room than has been too little it
// is the first. If there is none, any one is tried after room was given back, each in its turn: other processes may have
// taken the tasks that did not fit.
func (m *room) next() *servedQueue {
	room := m.forWoken()
	if (cluster.Resources{}).Fits(room) || m.fruitless && m.waking > 0 {
		return nil
	}
	for _, q := range m.line {
		if !q.tooLittle.Fits(room) {
			return q
		}
	}
	if len(m.line) == 0 || !m.probe || m.claims > 0 {
		return nil
	}
	m.probes++
	return m.line[m.probes%len(m.line)]
}

// enter puts a queue into the line, at its turn.
func (m *room) enter(q *servedQueue) {
	i, there := m.place(q)
	if !there {
		m.line = slices.Insert(m.line, i, q)
	}
	q.starved = true
}

// leave takes a queue out of the line.
func (m *room) leave(q *servedQueue) {
	if i, there := m.place(q); there {
		m.line = slices.Delete(m.line, i, i+1)
	}
	q.starved = false
}

func (m *room) place(q *servedQueue) (i int, there bool) {
	return slices.BinarySearchFunc(m.line, q.turn, func(o *servedQueue, turn uint64) int { return cmp.Compare(o.turn, turn) })
}

// reserve says what room a claim of a queue is told of: all that claims in flight are not to fill. Of that it keeps from
// others what so many tasks need like those that the queue brought last, or all of it if it has not brought any. d.mu is held.
func (d *Dispatcher) reserve(q *servedQueue, budget int) cluster.Resources {
	if d.opts.Capacity == nil {
		return nil
	}
	d.room.leave(q)
	q.told = d.room.left()
	if q.woken {
		q.told = d.room.forWoken()
		d.room.waking++
	}
	q.whole = q.told.Fits(d.opts.Capacity)
	q.reserved = maps.Clone(q.told)
	if q.need != nil {
		for name, amount := range q.told {
			q.reserved[name] = min(amount, int64(budget)*q.need[name])
		}
	}
	if d.room.reserved == nil {
		d.room.reserved = make(cluster.Resources)
	}
	d.room.reserved = d.room.reserved.Add(q.reserved)
	d.room.claims++
	return q.told
}

// unreserve ends what the claim of a queue keeps from others. d.mu is held.
func (d *Dispatcher) unreserve(q *servedQueue) {
	if q.reserved == nil {
		return
	}
	d.room.reserved = d.room.reserved.Sub(q.reserved)
	d.room.claims--
	q.reserved = nil
	if q.woken {
		d.room.waking--
	}
}

// filled takes in what a claim has brought. d.mu is held.
func (d *Dispatcher) filled(q *servedQueue, reply *ClaimReply) {
	d.unreserve(q)
	if q.woken {
		q.woken, d.room.fruitless = false, len(reply.Leased) == 0 && reply.Block == BlockedByCapacity
	}
	if d.opts.Capacity == nil || len(reply.Leased) == 0 {
		return
	}
	d.room.turns++
	q.turn, q.need = d.room.turns, make(cluster.Resources)
	for i := range reply.Leased {
		for name, amount := range reply.Leased[i].Task.Requires {
			q.need[name] = max(q.need[name], amount)
		}
	}
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

// vacate gives the room of a task back, when it has ended, and wakes a queue that waits for some.
func (d *Dispatcher) vacate(r *running) {
	if !r.admitted {
		return
	}
	d.mu.Lock()
	d.room.free = d.room.free.Add(r.leased.Task.Requires)
	d.room.probe = true
	d.wakeStarved(d.opts.Clock.Now())
	d.mu.Unlock()
	d.poke()
}

// wakeStarved wakes the next queue of the line, if there is room for it and nobody else is about to be granted a claim, and
// says whether somebody is. It is called whenever there may be more room, and again when all have been granted their claims.
// d.mu is held.
//
// A queue that is woken may not be granted a claim for other reasons, its rate say; then the next one is woken. But it may
// only wait for a place, and so may the next one. So while there are claims in flight, or no free place, it is one at a
// time: what ends either calls this again.
func (d *Dispatcher) wakeStarved(now time.Time) bool {
	for len(d.room.line) > 0 {
		if at, known := d.sched.NextAt(now); known && !at.After(now) {
			return true
		}
		q := d.room.next()
		if q == nil {
			return false
		}
		d.room.leave(q)
		d.room.probe = false
		if d.queues[q.name] != q {
			continue // it was forgotten
		}
		q.woken = true
		d.sched.Due(q.name, now, now)
		if at, known := d.sched.NextAt(now); known && !at.After(now) {
			return true
		}
		if d.room.claims > 0 || d.sched.Full("") {
			return false
		}
	}
	return false
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

// starve puts a queue into the line whose first due tasks do not fit, until there is more room, and asks others to step in.
// The instant is when to try again in any case. d.mu is held.
func (d *Dispatcher) starve(q *servedQueue, reply *ClaimReply, now time.Time) (again time.Time) {
	q.tooLittle = q.told
	for i := range reply.Leased {
		q.tooLittle = q.tooLittle.Sub(reply.Leased[i].Task.Requires)
	}
	q.tooLittle = atLeastNone(maps.Clone(q.tooLittle))
	if q.turn == 0 {
		d.room.turns++
		q.turn = d.room.turns
	}
	d.room.enter(q)
	switch {
	case q.whole && len(reply.Leased) == 0 && now.Sub(q.handedAt) < d.opts.ReconcileInterval:
		// Nothing more than this process has would do, and the others were told: they would tell each other for ever.
	case q.tooLittle.Fits(d.room.forWoken()):
		d.askForHelp(q, 0, now) // unless there is more room by now
	}
	return now.Add(d.opts.ReconcileInterval)
}
