package k8s

import (
	"context"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReapDeadWorkers implements cluster.Store. A worker is dead when this Store has seen no beat of it for the threshold, so
// a Store that is new marks nobody before that. What a call has marked before it failed is returned by the next one.
func (s *Store) ReapDeadWorkers(ctx context.Context, threshold time.Duration) ([]*cluster.Worker, error) {
	rows, leader, err := s.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("k8s: reap: %w", err)
	}
	var reaped []*cluster.Worker
	for _, lease := range rows {
		w, err := s.reap(ctx, lease, threshold)
		if err != nil {
			return nil, fmt.Errorf("k8s: reap: %s: %w", lease.Name, err)
		}
		if w != nil {
			leader.crown(w)
			reaped = append(reaped, w)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range reaped {
		delete(s.owed, s.rowName(w.ID))
	}
	return reaped, nil
}

// reap marks one worker dead, if it is. It returns the worker if this Store has marked it and not said so yet.
func (s *Store) reap(ctx context.Context, lease *coordinationv1.Lease, threshold time.Duration) (*cluster.Worker, error) {
	var reaped *cluster.Worker
	err := s.whileStale(ctx, lease, s.silent(threshold), func(ctx context.Context, lease *coordinationv1.Lease) error {
		reaped = nil
		w := s.worker(lease)
		switch {
		case w == nil:
			return nil // no whole row, no worker; it will be deleted one day
		case w.State == cluster.StateDead:
			if s.isOwed(lease.Name) {
				reaped = w
			}
			return nil
		}
		w.State = cluster.StateDead
		lease = lease.DeepCopy()
		if err := s.put(lease, *w); err != nil {
			return err
		}
		before := s.owe(lease.Name, true)
		if _, err := s.write(ctx, lease); err != nil {
			if isChange(err) {
				s.owe(lease.Name, before) // refused for certain, so not marked by this Store
			}
			return err
		}
		reaped = w
		return nil
	})
	return reaped, err
}

// owe notes whether a row may have been marked and not returned yet, and says what was noted before.
func (s *Store) owe(name string, owed bool) (before bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.owed[name]
	if owed {
		s.owed[name] = true
	} else {
		delete(s.owed, name)
	}
	return before
}

func (s *Store) isOwed(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owed[name]
}

// DeleteStaleWorkers implements cluster.Store. A row is stale when this Store has seen no beat for the threshold, or, if
// it is marked dead, when the clocks say so: it was found dead by an observer, its worker has to register again anyway,
// and a process that has just started may delete it. Clocks that differ change only how long it is kept.
func (s *Store) DeleteStaleWorkers(ctx context.Context, threshold time.Duration) (int, error) {
	rows, _, err := s.list(ctx)
	if err != nil {
		return 0, fmt.Errorf("k8s: delete stale workers: %w", err)
	}
	deleted := 0
	for _, lease := range rows {
		gone, err := s.deleteStale(ctx, lease, threshold)
		if gone {
			deleted++
		}
		if err != nil {
			return deleted, fmt.Errorf("k8s: delete stale workers: %s: %w", lease.Name, err)
		}
	}
	return deleted, nil
}

// deleteStale deletes one row, if it is stale, and then the leadership of its worker: the other way round, a worker that
// beats in between would lose the leadership while it lives.
func (s *Store) deleteStale(ctx context.Context, lease *coordinationv1.Lease, threshold time.Duration) (gone bool, err error) {
	silent := s.silent(threshold)
	stale := func(lease *coordinationv1.Lease) bool {
		if silent(lease) {
			return true
		}
		w := s.worker(lease)
		return w != nil && w.State == cluster.StateDead && s.opts.Clock.Now().Sub(w.LastSeen) > threshold
	}
	err = s.whileStale(ctx, lease, stale, func(ctx context.Context, lease *coordinationv1.Lease) error {
		err := s.leases().Delete(ctx, lease.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
		})
		gone = err == nil
		return err
	})
	if err != nil || !gone {
		return gone, err
	}
	s.forget(lease.Name)
	return true, s.resign(ctx, cluster.WorkerID(holder(lease)))
}

// silent makes a test of whether this Store has seen no sign of life for longer than the threshold.
func (s *Store) silent(threshold time.Duration) func(*coordinationv1.Lease) bool {
	return func(lease *coordinationv1.Lease) bool {
		return s.opts.Clock.Now().Sub(s.note(lease)) > threshold
	}
}

// whileStale calls f with a Lease that is stale, again with the current one when it has changed meanwhile, and not when
// it is stale no more, or gone.
func (s *Store) whileStale(ctx context.Context, lease *coordinationv1.Lease, stale func(*coordinationv1.Lease) bool,
	f func(context.Context, *coordinationv1.Lease) error,
) error {
	err := retry(ctx, func(ctx context.Context) (err error) {
		if !stale(lease) {
			return nil
		}
		err = f(ctx, lease)
		if !isChange(err) {
			return err
		}
		current, readErr := s.read(ctx, lease.Name)
		if readErr != nil {
			return readErr
		}
		lease = current
		return err
	})
	if apierrors.IsNotFound(err) {
		s.forget(lease.Name)
		return nil
	}
	return err
}
