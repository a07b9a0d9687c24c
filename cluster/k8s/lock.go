package k8s

import (
	"context"
	"fmt"
	"time"

	"github.com/jonboulle/clockwork"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is the Lease of an election: client-go's, with a limit to each request, and telling when one that wrote was
// begun. It is used by one goroutine.
type lock struct {
	*resourcelock.LeaseLock
	limit   time.Duration // of one request; the API server may accept a connection and never answer
	clock   clockwork.Clock
	written func(begun time.Time)
	tried   bool // a write was begun: the Lease may be ours, even if it failed
}

// Get reads the Lease.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	return l.LeaseLock.Get(ctx)
}

// Create writes the Lease where there is none.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.LeaseLock.Create)
}

// Update writes the Lease as it was read last, or written: not if it has changed since.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.LeaseLock.Update)
}

func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord,
	write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	l.tried = true
	begun := l.clock.Now()
	if err := write(ctx, record); err != nil {
		return err
	}
	l.written(begun)
	return nil
}

// handOver frees the Lease if it is ours. A write of the election that was cut off may land in between, once; then the
// second try finds it.
func (l *lock) handOver(limit time.Duration) error {
	if !l.tried {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var err error
	for range 3 {
		var record *resourcelock.LeaderElectionRecord
		record, _, err = l.LeaseLock.Get(ctx)
		if errors.IsNotFound(err) || err == nil && record.HolderIdentity != l.Identity() {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		record.HolderIdentity = ""
		record.LeaseDurationSeconds = 1 // 0 is refused
		if err = l.LeaseLock.Update(ctx, *record); !errors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
