package cluster

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrWorkerNotFound is returned for a worker whose row is gone, and to the beat of one that was marked dead: it has
	// to register again.
	ErrWorkerNotFound = errors.New("cluster: worker not found")
	// ErrLeadershipLost is returned by what only the leader may do when somebody else leads by now.
	ErrLeadershipLost = errors.New("cluster: leadership lost")
)

// Store is the registry of workers, with one leadership among them. Methods are safe for concurrent use, return within
// a second when their context ends, and may be repeated after an error. Ages are by the store's clock alone, so that
// machines whose clocks differ do no harm.
type Store interface {
	// RegisterWorker writes a worker's row, new or not, as seen now. ID, Hostname, Queues, Concurrency, State, Capacity
	// and Metadata are taken from w, and CreatedAt unless it is zero: then it is what the row had before, or now.
	RegisterWorker(ctx context.Context, w *Worker) error
	// DeregisterWorker removes a row, and the leadership with it if the worker led. A row that is not there is no error.
	DeregisterWorker(ctx context.Context, id WorkerID) error
	// HeartbeatWorker notes that a worker was seen now. It returns ErrWorkerNotFound, and writes nothing, when the row or
	// any part of it is gone or the worker is marked dead.
	HeartbeatWorker(ctx context.Context, id WorkerID) error
	// GetWorker returns one row, or ErrWorkerNotFound.
	GetWorker(ctx context.Context, id WorkerID) (*Worker, error)
	// ListWorkers returns all rows, by ID. At most one is the leader.
	ListWorkers(ctx context.Context) ([]*Worker, error)
	// ReapDeadWorkers marks the workers dead that were last seen longer ago than the threshold, and returns the rows
	// that it has marked. It never deletes one.
	ReapDeadWorkers(ctx context.Context, threshold time.Duration) ([]*Worker, error)
	// DeleteStaleWorkers deletes the rows of workers, of whatever state, that were last seen longer ago than the
	// threshold, and the leadership of one that led. It returns how many it has deleted.
	DeleteStaleWorkers(ctx context.Context, threshold time.Duration) (int, error)

	// AcquireLeadership makes a worker the leader for ttl, unless another one is: then it returns false. A leader may
	// acquire again, which is a renewal. Of several at once only one wins.
	AcquireLeadership(ctx context.Context, id WorkerID, ttl time.Duration) (bool, error)
	// RenewLeadership prolongs a leadership to ttl from now and returns true, or returns false when the worker does not
	// lead: because nobody does, or another one. It never brings back a leadership that has ended.
	RenewLeadership(ctx context.Context, id WorkerID, ttl time.Duration) (bool, error)
	// GetLeader returns the row of the leader, or nil when nobody leads. Of a leader that has no row only the ID and the
	// leadership are known.
	GetLeader(ctx context.Context) (*Worker, error)
}
