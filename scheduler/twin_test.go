package scheduler

import (
	"slices"
	"time"
)

// twin is what the scheduler should do, said in the dumbest way: one list of queues, in the order in which they came to
// where they stand, that is searched from the front for everything. Ties are so broken by arrival. Only bucket and pace
// are the real ones; they have tests of their own.
type twin struct {
	places, claimCap int
	list             []*twinQueue
	virtual          uint64
	pace             pace
}

type twinQueue struct {
	name       string
	limits     Limits
	bucket     bucket
	stands     string
	at         time.Time
	pass       uint64
	backlogged bool

	due, retry                   time.Time
	refused, relieved, forgotten bool
	leases, budget               int
}

func (w *twin) find(name string) *twinQueue {
	for _, q := range w.list {
		if q.name == name {
			return q
		}
	}
	return nil
}

func (w *twin) know(name string) *twinQueue {
	q := w.find(name)
	if q == nil {
		q = &twinQueue{name: name, limits: Limits{Weight: 1}, stands: "idle"}
		w.list = append(w.list, q)
	}
	return q
}

// best returns the first queue that stands there and that no other such queue comes before.
func (w *twin) best(stands string, before func(a, b *twinQueue) bool) (best *twinQueue) {
	for _, q := range w.list {
		if q.stands == stands && (best == nil || before(q, best)) {
			best = q
		}
	}
	return best
}

func byPass(a, b *twinQueue) bool    { return a.pass < b.pass }
func byInstant(a, b *twinQueue) bool { return a.at.Before(b.at) }

// set moves a queue, to the end of the list if that is a change.
func (w *twin) set(q *twinQueue, stands string) {
	if q.stands == stands {
		return
	}
	if stands == "ready" {
		credit := uint64(0)
		q.backlogged = q.stands == "claiming"
		if q.backlogged {
			credit = uint64(w.claimCap) << 16
		}
		if q.pass+credit < w.virtual {
			q.pass = w.virtual - credit
		}
	}
	q.stands = stands
	i := slices.Index(w.list, q)
	w.list = append(slices.Delete(w.list, i, i+1), q)
}

func (w *twin) arrange(q *twinQueue, now time.Time) {
	if q.stands != "claiming" {
		w.place(q, now)
	}
}

func (w *twin) place(q *twinQueue, now time.Time) {
	q.at = slices.MaxFunc([]time.Time{q.due, q.retry, q.bucket.refilled(now)}, time.Time.Compare)
	switch {
	case q.due.IsZero() && q.forgotten && q.leases == 0:
		w.list = slices.DeleteFunc(w.list, func(other *twinQueue) bool { return other == q })
	case q.due.IsZero():
		w.set(q, "idle")
	case q.limits.Concurrent > 0 && q.leases >= q.limits.Concurrent:
		w.set(q, "blocked")
	case q.refused && q.retry.IsZero():
		w.set(q, "blocked")
	case q.at.After(now):
		w.set(q, "waiting")
	default:
		w.set(q, "ready")
	}
}

func (w *twin) setLimits(name string, l Limits, now time.Time) {
	q := w.know(name)
	if l == q.limits {
		return
	}
	if l.Concurrent != q.limits.Concurrent && q.refused {
		q.refused, q.retry = false, time.Time{}
	}
	q.limits = l
	q.bucket.set(l, now)
	w.arrange(q, now)
}

func (w *twin) dueAt(name string, at, now time.Time) {
	q := w.know(name)
	q.forgotten = false
	if q.due.IsZero() || at.Before(q.due) {
		q.due = at
	}
	w.arrange(q, now)
}

func (w *twin) forget(name string, now time.Time) {
	if q := w.find(name); q != nil {
		q.forgotten, q.due = true, time.Time{}
		w.arrange(q, now)
	}
}

func (w *twin) inFlight() (n int) {
	for _, q := range w.list {
		n += q.leases
	}
	return n
}

func (w *twin) claiming() (n int) {
	for _, q := range w.list {
		if q.stands == "claiming" {
			n++
		}
	}
	return n
}

func (w *twin) free() int {
	n := w.places
	for _, q := range w.list {
		n -= q.leases + q.budget
	}
	return n
}

// pick returns the queue whose turn it is, and its budget.
func (w *twin) pick(now time.Time) (*twinQueue, int) {
	for {
		q := w.best("waiting", byInstant)
		if q == nil || q.at.After(now) {
			break
		}
		w.set(q, "ready")
	}
	q := w.best("ready", byPass)
	if q == nil {
		return nil, 0
	}
	budget := w.free()
	if q.limits.Rate == 0 && q.limits.Concurrent == 0 {
		passed := false
		for _, other := range w.list {
			passed = passed || other.stands == "claiming" && other.backlogged && other.pass < q.pass
		}
		if !passed {
			budget += w.pace.prefetch(w.places, now)
		}
	}
	if q.limits.Rate > 0 {
		budget = min(budget, q.bucket.tokens(now))
	}
	if q.limits.Concurrent > 0 {
		budget = min(budget, q.limits.Concurrent-q.leases)
	}
	return q, min(budget, w.claimCap)
}

func (w *twin) next(now time.Time) (Grant, bool) {
	q, budget := w.pick(now)
	if budget <= 0 {
		return Grant{}, false
	}
	w.virtual = max(w.virtual, q.pass)
	q.budget, q.due, q.relieved = budget, time.Time{}, false
	w.set(q, "claiming")
	return Grant{q.name, budget}, true
}

func (w *twin) nextAt(now time.Time) (time.Time, bool) {
	if _, budget := w.pick(now); budget > 0 {
		return now, true
	}
	q := w.best("waiting", byInstant)
	if q == nil || w.free()+w.pace.prefetch(w.places, now) <= 0 {
		return time.Time{}, false
	}
	return q.at, true
}

func (w *twin) claimed(name string, c Claim, now time.Time) {
	q := w.find(name)
	if q == nil || q.stands != "claiming" {
		return
	}
	q.budget = 0
	q.leases += c.Leased
	q.bucket.charge(c.Leased, now)
	q.pass += uint64(max(c.Leased, 1)) << 16 / uint64(q.limits.Weight)
	q.retry, q.refused = c.Retry, c.Blocked
	if q.refused && q.relieved {
		q.retry, q.refused = time.Time{}, false
	}
	if !q.forgotten && !c.Next.IsZero() && (q.due.IsZero() || c.Next.Before(q.due)) {
		q.due = c.Next
	}
	w.place(q, now)
}

func (w *twin) late(name string) {
	if q := w.find(name); q != nil && q.stands == "claiming" {
		q.budget, q.backlogged = 0, false
	}
}

func (w *twin) done(name string, n int, now time.Time) {
	q := w.find(name)
	if q == nil || min(n, q.leases) <= 0 {
		return
	}
	w.pace.done(min(n, q.leases), now)
	q.leases -= min(n, q.leases)
	q.relieved = true
	if q.refused {
		q.retry, q.refused = time.Time{}, false
	}
	w.arrange(q, now)
}
