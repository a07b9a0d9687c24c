package k8s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dispatchkit/dispatch/cluster"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RegisterWorker implements cluster.Store. The ID has to be a label of DNS, as those of cluster.NewWorkerID are.
func (s *Store) RegisterWorker(ctx context.Context, w *cluster.Worker) error {
	if w == nil {
		return errors.New("k8s: register: the worker is nil")
	}
	if err := s.check(w.ID); err != nil {
		return err
	}
	if w.State == "" {
		return fmt.Errorf("k8s: register worker %s: it has no state", w.ID)
	}
	if err := retry(ctx, func(ctx context.Context) error { return s.register(ctx, *w) }); err != nil {
		return fmt.Errorf("k8s: register worker %s: %w", w.ID, err)
	}
	s.showOnPod(ctx, string(w.ID), string(w.State))
	return nil
}

func (s *Store) register(ctx context.Context, w cluster.Worker) error {
	name := s.rowName(w.ID)
	lease, err := s.leases().Get(ctx, name, metav1.GetOptions{})
	exists := err == nil
	switch {
	case apierrors.IsNotFound(err):
		lease = s.blank(name)
	case err != nil:
		return err
	}
	now := s.opts.Clock.Now()
	if before := s.worker(lease); w.CreatedAt.IsZero() && before != nil {
		w.CreatedAt = before.CreatedAt
	}
	if w.CreatedAt.IsZero() {
		w.CreatedAt = now.UTC()
	}
	if err := s.put(lease, w); err != nil {
		return err
	}
	touch(lease, now)
	if exists {
		_, err = s.write(ctx, lease)
		if apierrors.IsNotFound(err) {
			return errAgain // it was deleted in between
		}
		return err
	}
	created, err := s.leases().Create(ctx, lease, metav1.CreateOptions{FieldManager: updateOptions.FieldManager})
	if err != nil {
		return err
	}
	s.note(created)
	return nil
}

// DeregisterWorker implements cluster.Store. The leadership goes first: when the second write fails, repeating the call
// does the rest.
func (s *Store) DeregisterWorker(ctx context.Context, id cluster.WorkerID) error {
	if err := s.check(id); err != nil {
		return err
	}
	if err := s.resign(ctx, id); err != nil {
		return fmt.Errorf("k8s: deregister worker %s: leadership: %w", id, err)
	}
	if err := s.leases().Delete(ctx, s.rowName(id), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("k8s: deregister worker %s: %w", id, err)
	}
	s.forget(s.rowName(id))
	s.clearPod(ctx, string(id))
	return nil
}

// HeartbeatWorker implements cluster.Store. It is one request, unless the row has changed since this Store saw it last.
func (s *Store) HeartbeatWorker(ctx context.Context, id cluster.WorkerID) error {
	if err := s.check(id); err != nil {
		return err
	}
	name := s.rowName(id)
	lease := s.last(name)
	if lease != nil && !s.alive(lease) {
		lease = nil // it may have registered again, by another Store
	}
	err := retry(ctx, func(ctx context.Context) (err error) {
		if lease == nil {
			if lease, err = s.read(ctx, name); err != nil {
				return err
			}
		}
		if !s.alive(lease) {
			return cluster.ErrWorkerNotFound
		}
		lease = lease.DeepCopy()
		touch(lease, s.opts.Clock.Now())
		_, err = s.write(ctx, lease)
		lease = nil // when it has changed, or is gone, read it
		return err
	})
	return s.missing(id, "heartbeat", err)
}

// alive says whether a row is whole and not marked dead.
func (s *Store) alive(lease *coordinationv1.Lease) bool {
	w := s.worker(lease)
	return w != nil && w.State != cluster.StateDead
}

// GetWorker implements cluster.Store.
func (s *Store) GetWorker(ctx context.Context, id cluster.WorkerID) (*cluster.Worker, error) {
	if err := s.check(id); err != nil {
		return nil, err
	}
	w, err := s.get(ctx, id)
	if err != nil {
		return nil, s.missing(id, "get", err)
	}
	leader, err := s.leader(ctx)
	if err != nil {
		return nil, fmt.Errorf("k8s: get worker %s: leadership: %w", id, err)
	}
	leader.crown(w)
	return w, nil
}

func (s *Store) get(ctx context.Context, id cluster.WorkerID) (*cluster.Worker, error) {
	lease, err := s.read(ctx, s.rowName(id))
	if err != nil {
		return nil, err
	}
	w := s.worker(lease)
	if w == nil {
		return nil, cluster.ErrWorkerNotFound
	}
	return w, nil
}

// missing gives an error of a row the form that all methods have in common.
func (s *Store) missing(id cluster.WorkerID, call string, err error) error {
	if apierrors.IsNotFound(err) {
		s.forget(s.rowName(id))
		err = cluster.ErrWorkerNotFound
	}
	if err != nil {
		return fmt.Errorf("k8s: %s worker %s: %w", call, id, err)
	}
	return nil
}

// ListWorkers implements cluster.Store. It is one request.
func (s *Store) ListWorkers(ctx context.Context) ([]*cluster.Worker, error) {
	items, leader, err := s.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("k8s: list workers: %w", err)
	}
	workers := make([]*cluster.Worker, 0, len(items))
	for _, lease := range items {
		if w := s.worker(lease); w != nil {
			leader.crown(w)
			workers = append(workers, w)
		}
	}
	return workers, nil
}

// list reads the Leases of all workers, by ID, and who leads, and takes all of that in.
func (s *Store) list(ctx context.Context) ([]*coordinationv1.Lease, *leadership, error) {
	if s.invalid != nil {
		return nil, nil, s.invalid
	}
	list, err := s.leases().List(ctx, metav1.ListOptions{LabelSelector: fleetLabel + "=" + s.opts.Prefix})
	if err != nil {
		return nil, nil, err
	}
	s.keep(list.Items)
	var rows []*coordinationv1.Lease
	var leader *leadership
	for i := range list.Items {
		switch lease := &list.Items[i]; {
		case lease.Name == s.leaderName():
			leader = s.leadershipOf(lease)
		case s.isRow(lease):
			rows = append(rows, lease)
		}
	}
	slices.SortFunc(rows, func(a, b *coordinationv1.Lease) int { return cmp.Compare(a.Name, b.Name) })
	return rows, leader, nil
}

// read reads a Lease and takes it in.
func (s *Store) read(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	lease, err := s.leases().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	s.note(lease)
	return lease, nil
}
