package k8s

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leadership is one that goes on. Nil is none.
type leadership struct {
	id    cluster.WorkerID
	until time.Time // by the local clock
}

func (l *leadership) isOf(id cluster.WorkerID) bool { return l != nil && l.id == id }

// crown notes on a worker that it leads, if it does.
func (l *leadership) crown(w *cluster.Worker) {
	if l.isOf(w.ID) {
		until := l.until.Round(0).UTC()
		w.IsLeader, w.LeaderUntil = true, &until
	}
}

// leadershipOf reads who leads from the leader's Lease, which was taken in before. A leadership lasts until nothing was
// seen of it for as long as its holder has asked for.
func (s *Store) leadershipOf(lease *coordinationv1.Lease) *leadership {
	since := s.note(lease)
	ttl, err := time.ParseDuration(lease.Annotations[ttlAnnotation])
	if err != nil && lease.Spec.LeaseDurationSeconds != nil { // somebody else wrote it
		ttl = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	}
	until := since.Add(ttl)
	if holder(lease) == "" || !s.opts.Clock.Now().Before(until) {
		return nil
	}
	return &leadership{cluster.WorkerID(holder(lease)), until}
}

// leader reads who leads.
func (s *Store) leader(ctx context.Context) (*leadership, error) {
	lease, err := s.read(ctx, s.leaderName())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.leadershipOf(lease), nil
}

// AcquireLeadership implements cluster.Store. A ttl that is not above 0 is an error.
func (s *Store) AcquireLeadership(ctx context.Context, id cluster.WorkerID, ttl time.Duration) (bool, error) {
	if err := s.checkLeader(id, ttl); err != nil {
		return false, err
	}
	won := false
	err := retry(ctx, func(ctx context.Context) error {
		lease, err := s.read(ctx, s.leaderName())
		if apierrors.IsNotFound(err) {
			lease = s.blank(s.leaderName())
			s.hold(lease, id, ttl)
			created, err := s.leases().Create(ctx, lease, metav1.CreateOptions{FieldManager: updateOptions.FieldManager})
			if err == nil {
				s.note(created)
				won = true
			}
			return err
		}
		if err != nil {
			return err
		}
		if leader := s.leadershipOf(lease); leader != nil && leader.id != id {
			return nil
		}
		lease = lease.DeepCopy()
		s.hold(lease, id, ttl)
		_, err = s.write(ctx, lease)
		if apierrors.IsNotFound(err) {
			return errAgain
		}
		won = err == nil
		return err
	})
	if err != nil {
		return false, fmt.Errorf("k8s: acquire leadership for %s: %w", id, err)
	}
	return won, nil
}

// RenewLeadership implements cluster.Store. It is one request, unless the Lease has changed since this Store saw it last.
// A ttl that is not above 0 is an error.
func (s *Store) RenewLeadership(ctx context.Context, id cluster.WorkerID, ttl time.Duration) (bool, error) {
	if err := s.checkLeader(id, ttl); err != nil {
		return false, err
	}
	lease := s.last(s.leaderName())
	if lease != nil && !s.leadershipOf(lease).isOf(id) {
		lease = nil // it may have changed since
	}
	renewed := false
	err := retry(ctx, func(ctx context.Context) (err error) {
		if lease == nil {
			if lease, err = s.read(ctx, s.leaderName()); err != nil {
				return err
			}
		}
		if !s.leadershipOf(lease).isOf(id) {
			return nil
		}
		lease = lease.DeepCopy()
		s.hold(lease, id, ttl)
		_, err = s.write(ctx, lease)
		lease = nil
		renewed = err == nil
		return err
	})
	if apierrors.IsNotFound(err) {
		s.forget(s.leaderName())
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("k8s: renew leadership for %s: %w", id, err)
	}
	return renewed, nil
}

// GetLeader implements cluster.Store.
func (s *Store) GetLeader(ctx context.Context) (*cluster.Worker, error) {
	if s.invalid != nil {
		return nil, s.invalid
	}
	leader, err := s.leader(ctx)
	if err != nil {
		return nil, fmt.Errorf("k8s: get leader: %w", err)
	}
	if leader == nil {
		return nil, nil
	}
	w, err := s.get(ctx, leader.id)
	if err != nil {
		if err = s.missing(leader.id, "get leader: get", err); !errors.Is(err, cluster.ErrWorkerNotFound) {
			return nil, err
		}
		w = &cluster.Worker{ID: leader.id}
	}
	leader.crown(w)
	return w, nil
}

// resign ends the leadership of a worker, if it leads.
func (s *Store) resign(ctx context.Context, id cluster.WorkerID) error {
	err := retry(ctx, func(ctx context.Context) error {
		lease, err := s.read(ctx, s.leaderName())
		if err != nil || holder(lease) != string(id) {
			return err
		}
		lease = lease.DeepCopy()
		nobody := ""
		lease.Spec.HolderIdentity = &nobody
		_, err = s.write(ctx, lease)
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (s *Store) checkLeader(id cluster.WorkerID, ttl time.Duration) error {
	if err := s.check(id); err != nil {
		return err
	}
	if ttl <= 0 {
		return fmt.Errorf("k8s: leadership for %s: ttl %v is not above 0", id, ttl)
	}
	return nil
}

// hold writes into the leader's Lease that a worker leads, for ttl from now.
func (s *Store) hold(lease *coordinationv1.Lease, id cluster.WorkerID, ttl time.Duration) {
	touch(lease, s.opts.Clock.Now())
	if holder(lease) != string(id) {
		name, changes := string(id), int32(0)
		if lease.Spec.LeaseTransitions != nil {
			changes = *lease.Spec.LeaseTransitions + 1
		}
		lease.Spec.HolderIdentity, lease.Spec.LeaseTransitions = &name, &changes
		lease.Spec.AcquireTime = lease.Spec.RenewTime
	}
	seconds := int32(min((ttl+time.Second-1)/time.Second, 1<<31-1))
	lease.Spec.LeaseDurationSeconds = &seconds
	s.annotate(lease, ttlAnnotation, ttl.String())
}
