package cluster

import (
	"maps"
	"slices"
	"time"
)

// WorkerState is where a worker stands in its life.
type WorkerState string

// The states of a worker. One that has stopped in good order is in none of them: its row is gone.
const (
	// StateActive is a worker that claims tasks.
	StateActive WorkerState = "active"
	// StateDraining is a worker that stops: it claims nothing, and finishes what it runs.
	StateDraining WorkerState = "draining"
	// StateDead is a worker that was not heard of for too long. Its leases are given to others. A worker that was only
	// cut off finds ErrWorkerNotFound at its next beat, and registers again.
	StateDead WorkerState = "dead"
)

// Worker is one running process, as the registry holds it.
type Worker struct {
	// ID names this run of the process.
	ID WorkerID `json:"id"`
	// Hostname is where it runs.
	Hostname string `json:"hostname"`
	// Queues are those that it serves; empty means all.
	Queues []string `json:"queues"`
	// Concurrency is how many tasks it runs at once.
	Concurrency int `json:"concurrency"`
	// State is where it stands.
	State WorkerState `json:"state"`
	// Capacity is what its tasks may use together; nil when it states none.
	Capacity Resources `json:"capacity,omitempty"`
	// IsLeader says that it holds the leadership of this store, and LeaderUntil until when if it does not renew it; what
	// another elector says is not known here. Only read.
	IsLeader    bool       `json:"is_leader"`
	LeaderUntil *time.Time `json:"leader_until,omitempty"`
	// LastSeen is the time of its last beat, by the registry's clock. Only read.
	LastSeen time.Time `json:"last_seen"`
	// Metadata is what its operator wants to be known of it.
	Metadata map[string]string `json:"metadata,omitempty"`
	// CreatedAt is when it registered first, by the registry's clock: registering sets it when it is zero.
	CreatedAt time.Time `json:"created_at"`
}

// Serves says whether the worker serves a queue.
func (w *Worker) Serves(queue string) bool { return serves(w.Queues, queue) }

// serves says whether the queue is among those that are served, where none named means all.
func serves(queues []string, queue string) bool {
	return len(queues) == 0 || slices.Contains(queues, queue)
}

// clone copies the worker with all that it refers to.
func (w *Worker) clone() Worker {
	c := *w
	c.Queues = slices.Clone(w.Queues)
	c.Capacity = maps.Clone(w.Capacity)
	c.Metadata = maps.Clone(w.Metadata)
	if w.LeaderUntil != nil {
		until := *w.LeaderUntil
		c.LeaderUntil = &until
	}
	return c
}
