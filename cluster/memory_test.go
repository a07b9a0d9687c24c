package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// memory is a registry in memory that notes its calls. It has no leadership.
type memory struct {
	cluster.Store // leadership: a call of it is a nil pointer

	now   func() time.Time
	start time.Time
	fills bool // registering puts CreatedAt into the caller's worker, as a store may

	mu    sync.Mutex
	hook  func(ctx context.Context, call string) error // runs before each call; an error is its result
	calls []string                                     // each with when it began
	rows  map[cluster.WorkerID]cluster.Worker
}

func newMemory(now func() time.Time) *memory {
	return &memory{now: now, start: now(), rows: map[cluster.WorkerID]cluster.Worker{}}
}

// enter notes a call and lets the hook decide on it.
func (s *memory) enter(ctx context.Context, call string) error {
	s.mu.Lock()
	s.calls = append(s.calls, s.stamp(call))
	hook := s.hook
	s.mu.Unlock()
	if err := ctx.Err(); err != nil || hook == nil {
		return err
	}
	return hook(ctx, call)
}

// stamp is what happened and when, in time since the start.
func (s *memory) stamp(what string) string { return fmt.Sprintf("%v %s", s.now().Sub(s.start), what) }

// on sets the hook.
func (s *memory) on(hook func(ctx context.Context, call string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// take returns the calls since it was last asked.
func (s *memory) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// change changes a row behind the worker's back, or removes it.
func (s *memory) change(id cluster.WorkerID, f func(*cluster.Worker) (keep bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.rows[id]
	if f(&w) {
		s.rows[id] = w
	} else {
		delete(s.rows, id)
	}
}

// row returns a row, or one without an ID.
func (s *memory) row(id cluster.WorkerID) cluster.Worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[id]
}

func (s *memory) RegisterWorker(ctx context.Context, w *cluster.Worker) error {
	if err := s.enter(ctx, "register "+string(w.State)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := *w
	if row.CreatedAt.IsZero() {
		row.CreatedAt = s.rows[w.ID].CreatedAt
	}
	if row.CreatedAt.IsZero() {
		row.CreatedAt = s.now()
	}
	row.LastSeen = s.now()
	s.rows[w.ID] = row
	if s.fills {
		w.CreatedAt = row.CreatedAt
	}
	return nil
}

func (s *memory) HeartbeatWorker(ctx context.Context, id cluster.WorkerID) error {
	if err := s.enter(ctx, "beat"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.rows[id]
	if !ok || row.State == cluster.StateDead {
		return cluster.ErrWorkerNotFound
	}
	row.LastSeen = s.now()
	s.rows[id] = row
	return nil
}

func (s *memory) DeregisterWorker(ctx context.Context, id cluster.WorkerID) error {
	if err := s.enter(ctx, "deregister"); err != nil {
		return err
	}
	s.change(id, func(*cluster.Worker) bool { return false })
	return nil
}

func (s *memory) GetWorker(ctx context.Context, id cluster.WorkerID) (*cluster.Worker, error) {
	if err := s.enter(ctx, "get"); err != nil {
		return nil, err
	}
	row := s.row(id)
	if row.ID == "" {
		return nil, cluster.ErrWorkerNotFound
	}
	return &row, nil
}

func (s *memory) DeleteStaleWorkers(ctx context.Context, threshold time.Duration) (int, error) {
	if err := s.enter(ctx, "sweep "+threshold.String()); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.rows)
	maps.DeleteFunc(s.rows, func(_ cluster.WorkerID, w cluster.Worker) bool { return s.now().Sub(w.LastSeen) > threshold })
	return before - len(s.rows), nil
}

var errDown = errors.New("the registry is down")

// down is a hook: every call fails at once.
func down(context.Context, string) error { return errDown }

// silence is a hook: every call lasts until its context ends.
func silence(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// deaf makes a hook: every call that starts with one of the names lasts until it is released, whatever its context says.
func deaf(release <-chan struct{}, names ...string) func(context.Context, string) error {
	return func(_ context.Context, call string) error {
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(call, name) }) {
			<-release
		}
		return nil
	}
}
