package dispatch

import (
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// DefaultQueue is the queue of a task that names none.
const DefaultQueue = "default"

// Queue is a queue and its settings. The zero value of every setting is the default, so Queue{Name: "mail"} is a queue
// without limits and with the default retries. A queue that a task names first is created like that.
//
// A queue is one slot of a Redis Cluster: one core of one master serves it.
type Queue struct {
	// Name matches [A-Za-z0-9][A-Za-z0-9._-]{0,99}.
	Name string

	// Rate is how many attempts may start per second, over all processes; 0 or −1 means unlimited. At least 0.0001,
	// at most 1,000,000; the store keeps it as a whole number of microseconds between two starts.
	Rate float64
	// Burst is how many attempts may start at once after a pause, when Rate is set; 0 means a fifth of Rate, at least
	// 10 and at most 500.
	Burst int
	// MaxConcurrent is how many tasks of the queue may run at once, over all processes; 0 or −1 means unlimited.
	MaxConcurrent int
	// Weight is the queue's share when several queues wait for the places of one process; 0 means 1, at most 1000. Among
	// queues that have as many places as they may, see Options.GlobalConcurrency, it counts up to three times another's.
	Weight int
	// Secret names the secret that signs the requests of tasks with a URL that name none themselves, see Options.Secrets;
	// empty means that they are not signed.
	Secret string
	// Requires is what each task needs that does not itself say how much of that; see Task.Requires. A change is in force
	// for tasks that are stored from then on.
	Requires cluster.Resources
	// Retry says how failed attempts are repeated.
	Retry RetryConfig
	// DeadLetterQueue gets a copy of each task that dies in this queue, see HeaderDeadLetterQueue; empty means none. It must
	// not lead back to this queue. It is a queue like any other, made with default settings if it is not there: unless it is
	// paused, or no process serves it (Options.Queues), its tasks are attempted again.
	DeadLetterQueue string
	// TaskTTL is the age, counted from when it was stored, past which a task is dropped instead of attempted or repeated,
	// and is gone; 0 means none. At least 1 s.
	TaskTTL time.Duration
	// NoThrottle lets tasks go at Rate whatever their receivers answer. Otherwise the queue is slowed down when one request
	// in twenty meets 429, 503 or Retry-After, or more than half of those of 10 s fail (of at least 20): see
	// Counts.EffectiveRate.
	NoThrottle bool

	// Paused says whether the queue hands out no tasks, and Draining whether it takes no new ones. PauseQueue, DrainQueue
	// and ResumeQueue change them; create and update do not.
	Paused, Draining bool
	// CreatedAt is when the queue was created, by the store's clock. Only read.
	CreatedAt time.Time
	// Version grows with every change of the settings. Only read.
	Version int64
}

// QueueState is what a queue does with its tasks.
type QueueState string

// The states of a queue. One may be both paused and draining.
const (
	QueueRunning  QueueState = "running"
	QueuePaused   QueueState = "paused"
	QueueDraining QueueState = "draining"
)

// Counts is how many tasks of a queue are in each state at one moment.
type Counts struct {
	// Ready tasks are due now, Scheduled ones later; both are waiting.
	Ready, Scheduled int64
	// Running tasks are under a lease.
	Running int64
	// Succeeded, Dead and Cancelled tasks have ended and are retained.
	Succeeded, Dead, Cancelled int64
	// TotalSucceeded, TotalDead, TotalRetried, TotalCancelled and TotalExpired (older than TaskTTL) count since the queue
	// was created.
	TotalSucceeded, TotalDead, TotalRetried, TotalCancelled, TotalExpired int64
	// EffectiveRate is how many attempts may start per second now; 0 is unlimited. It is the queue's Rate, or less while
	// receivers are congested: then it is halved at most once a second, to a tenth of Rate or 0.1 at the least, and grows by
	// half after each 10 s without such an answer. For a queue without a Rate it is what the queue did in the last 10 s
	// instead, and 1 at the least; and the queue is free again after 60 s.
	EffectiveRate float64
}

// EffectiveBurst is Burst, or its default for Rate: a fifth of it, at least 10 and at most 500.
func (q Queue) EffectiveBurst() int {
	if q.Burst > 0 {
		return q.Burst
	}
	fifth := int(q.Rate / 5)
	if float64(fifth)*5 < q.Rate {
		fifth++
	}
	return min(max(fifth, 10), 500)
}
