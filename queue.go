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
	// Weight is the queue's share when several queues wait for the places of one process; 0 means 1, at most 1000.
	Weight int
	// Secret names the secret that signs the requests of tasks with a URL that name none themselves, see Options.Secrets;
	// empty means that they are not signed.
	Secret string
	// Requires is what each task needs that does not itself say how much of that; see Task.Requires. A change is in force
	// for tasks that are stored from then on.
	Requires cluster.Resources
	// Retry says how failed attempts are repeated.
	Retry RetryConfig

	// Paused says whether the queue hands out no tasks. PauseQueue and ResumeQueue change it; create and update do not.
	Paused bool
	// CreatedAt is when the queue was created, by the store's clock. Only read.
	CreatedAt time.Time
	// Version grows with every change of the settings. Only read.
	Version int64
}

// Counts is how many tasks of a queue are in each state at one moment.
type Counts struct {
	// Ready tasks are due now, Scheduled ones later; both are waiting.
	Ready, Scheduled int64
	// Running tasks are under a lease.
	Running int64
	// Succeeded and Dead tasks have ended and are retained.
	Succeeded, Dead int64
	// TotalSucceeded, TotalDead and TotalRetried count since the queue was created.
	TotalSucceeded, TotalDead, TotalRetried int64
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
