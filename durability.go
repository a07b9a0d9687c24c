package dispatch

import (
	"errors"
	"time"
)

// Durability says when what a Client writes counts as stored. The zero value: when the primary has it. A failover of Redis
// may lose the last of what only the primary had.
//
// With Replicas, a call that changes something (Enqueue and EnqueueMany, and all that change or end tasks, queues and cron
// entries) returns only when so many replicas of the server that has it say that they have it too, in memory. When they do
// not say so within Timeout, the error is ErrNotReplicated. The primary may have what was asked for all the same, and nobody
// waits with it: workers may deliver a task before the replicas have it. So Durability bounds what an answer promises, and
// not what happens.
//
// It costs a trip from the primary to its replicas per batch. What is read, and what a Dispatcher does by itself, such as
// claims, outcomes, dead letters and the ticks of cron entries, waits for nobody. So after a failover a task that has run may run
// again, however durably it was stored; and so may one that is enqueued again after ErrNotReplicated, unless it is retained, or
// the caller chose its ID and the dedup window is not over.
//
// The replica that is promoted must be one that said so: with two replicas, Replicas 1 leaves that to Sentinel or the
// Cluster, which prefer the one that is ahead; Replicas 2 leaves nothing to them, and nothing is acknowledged while one of
// the two is away.
type Durability struct {
	// Replicas is how many replicas have to have what was written. 0 means none; at most 16.
	Replicas int
	// Timeout is how long they have for it, counted from when the primary has it. 0 means 1 s; at least 1 ms, at most 2 s.
	// While replicas are silent, calls also wait for those before them, and one that tries again, as UpdateQueue does, waits
	// each time, so that an answer may take several times as long.
	// It is to be left at 0 without Replicas.
	Timeout time.Duration
}

// The limits of a Durability.
const (
	maxReplicas       = 16
	maxReplicaTimeout = 2 * time.Second // Redis clients take a connection for dead that is silent for 3 s
)

// Replicator is a Store that can wait for replicas, as Durability asks for.
type Replicator interface {
	// Durable returns a view of the store: the same, but that every method which changes a task, a queue or a cron entry for
	// a Client returns ErrNotReplicated when fewer than d.Replicas replicas have what the primary has at this moment, after
	// d.Timeout, whatever else it would say, unless it refuses everything, or somebody else was faster. That includes what an
	// earlier call has stored, of any client, so that a call that is repeated, and finds everything done, is as good as the
	// first. What a method returns besides may be there or not. Other methods are as before. The error is about d.
	Durable(d Durability) (Store, error)
}

// withDefaults fills the fields that are zero.
func (d Durability) withDefaults() Durability {
	if d.Replicas > 0 {
		d.Timeout = orDefault(d.Timeout, time.Second)
	}
	return d
}

// validate expects the defaults to be filled in.
func (d Durability) validate() error {
	switch {
	case d.Replicas < 0 || d.Replicas > maxReplicas:
		return fieldErrorf("Durability.Replicas", "%d is not between 0 and %d", d.Replicas, maxReplicas)
	case d.Replicas == 0 && d.Timeout != 0:
		return fieldErrorf("Durability.Timeout", "is %v, and Replicas is 0: nothing is waited for", d.Timeout)
	case d.Replicas > 0 && (d.Timeout < time.Millisecond || d.Timeout > maxReplicaTimeout):
		return fieldErrorf("Durability.Timeout", "%v is not between %v and %v", d.Timeout, time.Millisecond, maxReplicaTimeout)
	}
	return nil
}

// ackedBy is the store through which a client makes what it acknowledges. It expects the defaults to be filled in.
func (d Durability) ackedBy(store Store) (Store, error) {
	if err := d.validate(); err != nil {
		return nil, err
	}
	if d.Replicas == 0 {
		return store, nil
	}
	replicator, ok := store.(Replicator)
	if !ok {
		return nil, fieldErrorf("Durability.Replicas", "is %d, and the store is no Replicator: it cannot wait for replicas", d.Replicas)
	}
	return replicator.Durable(d)
}

// happened says whether the store has done what it was asked for, or may have, so that others are to be told of it.
func happened(err error) bool { return err == nil || errors.Is(err, ErrUncertain) }
