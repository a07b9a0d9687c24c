package scheduler

import (
	"cmp"
	"slices"
	"time"
)

// twin is what the scheduler should do, said in the dumbest way: one list of queues, in the order in which they came to
// where they stand, that is searched from the front for everything. Ties are so broken by arrival. Only bucket and pace
// are the real ones; they have tests of their own.
type twin struct {
	places, claimCap int
	shared           bool
	list             []*twinQueue
	ahead            []*twinQueue // in the order in which they came to have tasks ahead
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

	due, retry, met                     time.Time // met is when a claim last met the concurrency limit
	refused, relieved, reset, forgotten bool
	leases, budget                      int
	held, kept                          int // places of leases, and of the budget
	bound                               int // leases that may be worked on
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

func byInstant(a, b *twinQueue) bool { return a.at.Before(b.at) }

// set moves a queue, to the end of the list if that is a change.
func (w *twin) set(q *twinQueue, stands string) {
	if q.stands == stands {
		return
	}
	if stands == "ready" {
		q.backlogged = q.stands == "claiming"
		w.keepUp(q)
	}
	q.stands = stands
	i := slices.Index(w.list, q)
	w.list = append(slices.Delete(w.list, i, i+1), q)
}

// keepUp has a queue save up no turns.
func (w *twin) keepUp(q *twinQueue) {
	credit := uint64(0)
	if q.backlogged {
		credit = uint64(w.claimCap) << 16
	}
	if q.pass+credit < w.virtual {
		q.pass = w.virtual - credit
	}
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

func (w *twin) resetQueue(name string, now time.Time) {
	if q := w.find(name); q != nil {
		q.refused, q.retry = false, time.Time{}
		q.reset = q.stands == "claiming"
		w.setLimits(name, Limits{Weight: 1}, now)
		w.arrange(q, now)
	}
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
		n -= q.held + q.kept
	}
	return n
}

// more counts the places that a queue may take, one by one.
func (w *twin) more(q *twinQueue) int {
	for has, free := q.held+q.kept, w.free(); ; has, free = has+1, free-1 {
		if free == 0 || has > 0 && !w.fair(q, has+1, free-1) {
			return w.free() - free
		}
	}
}

// fair says whether a queue may have so many places if it leaves so many free.
func (w *twin) fair(q *twinQueue, has, free int) bool {
	heaviest := q.limits.Weight
	for _, other := range w.list {
		if other.backlogged && (other.stands == "ready" || other.stands == "claiming") {
			heaviest = max(heaviest, other.limits.Weight)
		}
	}
	return !w.shared || has*heaviest <= max(3*q.limits.Weight, heaviest)*free
}

// beyond is how many more tasks to hold that have no place, when places that are free have been taken.
func (w *twin) beyond(places int, now time.Time) int {
	ahead, taken := 0, places
	for _, q := range w.list {
		ahead += q.leases + q.budget - q.held - q.kept
		taken += q.held + q.kept
	}
	most := w.pace.prefetch(2*w.places-taken, now)
	if ahead > most/2 {
		return 0
	}
	return max(most-ahead, 0)
}

// deal gives free places to tasks that have none.
func (w *twin) deal() {
	w.ahead = slices.DeleteFunc(w.ahead, func(q *twinQueue) bool {
		for range min(w.more(q), q.leases+q.budget-q.held-q.kept) {
			if q.held < q.leases {
				q.held++
				q.bound = q.held
			} else {
				q.kept++
			}
		}
		return q.leases+q.budget == q.held+q.kept
	})
}

func (w *twin) join(q *twinQueue) {
	if q.leases+q.budget > q.held+q.kept && !slices.Contains(w.ahead, q) {
		w.ahead = append(w.ahead, q)
	}
}

func (w *twin) full(name string) bool {
	w.deal()
	free, has := w.places, 0
	for _, q := range w.list {
		free -= q.held
		if q.name == name {
			has = q.leases
		}
	}
	return free <= 0 || w.shared && has > 0 && has+1 > 3*(free-1)
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
	w.deal()
	var turns []*twinQueue
	for _, q := range w.list {
		if q.stands == "ready" {
			turns = append(turns, q)
		}
	}
	for _, q := range turns {
		w.keepUp(q)
	}
	slices.SortStableFunc(turns, func(a, b *twinQueue) int { return cmp.Compare(a.pass, b.pass) })
	for _, q := range turns {
		if budget := w.budget(q, now); budget > 0 {
			return q, budget
		}
		if w.free() == 0 {
			break
		}
	}
	return nil, 0
}

func (w *twin) budget(q *twinQueue, now time.Time) int {
	budget := w.more(q)
	far := q.limits.Concurrent >= 4*w.places && (q.met.IsZero() || now.Sub(q.met) >= time.Minute)
	if q.limits.Rate == 0 && (q.limits.Concurrent == 0 || far) {
		passed := false
		for _, other := range w.list {
			passed = passed || other.stands == "claiming" && other.backlogged && other.pass < q.pass
		}
		if !passed {
			budget += w.beyond(budget, now)
		}
	}
	if q.limits.Rate > 0 {
		budget = min(budget, q.bucket.tokens(now))
	}
	if q.limits.Concurrent > 0 {
		budget = min(budget, q.limits.Concurrent-q.leases)
	}
	return min(budget, w.claimCap)
}

func (w *twin) next(now time.Time) (Grant, bool) {
	q, budget := w.pick(now)
	if budget <= 0 {
		return Grant{}, false
	}
	w.virtual = max(w.virtual, q.pass)
	q.kept = min(budget, w.more(q))
	q.budget, q.due, q.relieved, q.reset = budget, time.Time{}, false, false
	w.join(q)
	w.set(q, "claiming")
	return Grant{q.name, budget}, true
}

func (w *twin) nextAt(now time.Time) (time.Time, bool) {
	if _, budget := w.pick(now); budget > 0 {
		return now, true
	}
	q := w.best("waiting", byInstant)
	if q == nil || w.free()+w.beyond(0, now) <= 0 {
		return time.Time{}, false
	}
	return q.at, true
}

func (w *twin) claimed(name string, c Claim, now time.Time) {
	q := w.find(name)
	if q == nil || q.stands != "claiming" {
		return
	}
	q.held += min(c.Leased, q.kept)
	q.bound += min(c.Leased, q.kept)
	q.budget, q.kept = 0, 0
	q.leases += c.Leased
	w.join(q)
	q.bucket.charge(c.Leased, now)
	q.pass += uint64(max(c.Leased, 1)) << 16 / uint64(q.limits.Weight)
	q.retry, q.refused = c.Retry, c.Blocked
	if c.Blocked {
		q.met = now
	}
	if q.reset || q.refused && q.relieved {
		q.retry, q.refused = time.Time{}, false
	}
	if !q.forgotten && !c.Next.IsZero() && (q.due.IsZero() || c.Next.Before(q.due)) {
		q.due = c.Next
	}
	w.place(q, now)
}

func (w *twin) late(name string) {
	if q := w.find(name); q != nil && q.stands == "claiming" {
		q.budget, q.kept, q.backlogged = 0, 0, false
	}
}

func (w *twin) done(name string, n int, now time.Time) {
	q := w.find(name)
	if q == nil || min(n, q.leases) <= 0 {
		return
	}
	w.pace.done(min(n, q.leases), now)
	q.held = max(q.held-n, 0)
	w.end(q, n, now)
}

func (w *twin) returned(name string, n int, now time.Time) {
	if q := w.find(name); q != nil && min(n, q.leases) > 0 {
		q.held = min(q.held, max(q.leases-n, 0))
		w.end(q, n, now)
	}
}

// working has a queue keep places in which the next tasks have begun.
func (w *twin) working(name string, n int) {
	q := w.find(name)
	if q == nil || !w.shared || min(n, q.leases) <= q.held || w.free() == 0 {
		return
	}
	q.held = min(n, q.leases, q.held+w.free())
	if w.fair(q, q.held+q.kept, w.free()) {
		q.bound = q.held
	}
}

func (w *twin) end(q *twinQueue, n int, now time.Time) {
	q.leases -= min(n, q.leases)
	q.bound = min(q.bound, q.held)
	q.relieved = true
	if q.refused {
		q.retry, q.refused = time.Time{}, false
	}
	w.arrange(q, now)
}
