package scheduler

import "time"

// Limits are what one queue allows. The zero value is no limit and a weight of 1.
type Limits struct {
	// Rate is tasks per second; 0 is unlimited.
	Rate float64
	// Burst is how many tasks may go at once after a pause, when Rate is set; below 1 counts as 1.
	Burst int
	// Concurrent is how many leases of the queue there may be at once, over all processes; 0 is unlimited.
	Concurrent int
	// Weight is the queue's share among eligible queues; below 1 counts as 1.
	Weight int
}

// limited says whether a queue may have to wait although it has tasks due. Its tasks are never prefetched: a lease that
// waits in memory would use up what the queue allows.
func (l Limits) limited() bool { return l.Rate > 0 || l.Concurrent > 0 }

// state is where a queue stands.
type state int

const (
	idle     state = iota // nothing known to be due: in no heap
	waiting               // eligible at `at`: in the waiting heap
	ready                 // eligible: in the ready heap
	claiming              // granted, and not yet answered: in no heap
	blocked               // as many leases as allowed; a Done helps: in no heap
)

// queue is what is known of one queue.
//
// Invariants: state says which heap holds the queue, and index where; reserved > 0 only while claiming; woken is set
// only while claiming.
type queue struct {
	name   string
	limits Limits
	bucket bucket

	state state
	index int       // in the heap that state names
	at    time.Time // waiting: when the queue becomes eligible
	pass  uint64    // see Scheduler.virtual

	due     time.Time // when the next task is due; zero is none known
	retry   time.Time // no claim before; zero is no bound
	refused bool      // the store said that all places of the queue are taken; a Done of ours may change that

	leased   int       // leases of the queue that this process holds
	reserved int       // budget of the claim in flight
	woken    time.Time // the earliest Due heard during the claim in flight
	leaving  bool      // Forget was called: drop it when it is idle
}

// hear moves the queue's next due time earlier.
func (q *queue) hear(at time.Time) {
	if q.due.IsZero() || at.Before(q.due) {
		q.due = at
	}
}

// full says whether this process alone holds as many leases as the queue allows.
func (q *queue) full() bool { return q.limits.Concurrent > 0 && q.leased >= q.limits.Concurrent }

// eligibleAt is when the queue may be claimed from, by its due time, the store's word and its tokens.
func (q *queue) eligibleAt(now time.Time) time.Time {
	at := q.due
	if q.retry.After(at) {
		at = q.retry
	}
	if token := q.bucket.next(now); token.After(at) {
		at = token
	}
	return at
}

// cost is what n tasks add to the queue's pass. A claim that brought nothing costs something too, or a queue whose
// tasks others take would be asked again and again.
func (q *queue) cost(n int) uint64 {
	return uint64(max(n, 1)) * strideUnit / uint64(max(q.limits.Weight, 1))
}

// strideUnit is the pass of one task at weight 1. At a million tasks a second a pass of 64 bits lasts eight years.
const strideUnit = 1 << 16
