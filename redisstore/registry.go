package redisstore

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

const (
	// workerLife is how long the row of a worker outlives its last beat. The leader removes it long before; this is for
	// when no leader ever comes back.
	workerLife = 24 * time.Hour
	// workersPerCall is how many rows one script call works on.
	workersPerCall = 100
)

var _ cluster.Store = (*Store)(nil)

// RegisterWorker implements cluster.Store. An empty State is active.
//
// Errors: *dispatch.FieldError for an ID that does not match [A-Za-z0-9_-]{1,64}, a hostname of more than 255 bytes,
// more than 1000 queues, a negative concurrency, an unknown state, and more than 256 KiB in all.
func (s *Store) RegisterWorker(ctx context.Context, w *cluster.Worker) error {
	if err := checkWorker(w); err != nil {
		return err
	}
	record, err := encodeWorker(w)
	if err != nil {
		return err
	}
	state, created := w.State, int64(0)
	if state == "" {
		state = cluster.StateActive
	}
	if !w.CreatedAt.IsZero() {
		created = w.CreatedAt.UnixMilli()
	}
	_, err = s.run(ctx, evenUncertain, s.scripts.workerRegister, []string{s.workersKey(), s.workerKey(w.ID)},
		s.now(), string(w.ID), record, string(state), created, ms(workerLife),
		s.wakeChannel(), announcement(dispatch.HintWorkers))
	return err
}

// DeregisterWorker implements cluster.Store.
func (s *Store) DeregisterWorker(ctx context.Context, id cluster.WorkerID) error {
	if err := checkWorkerID(id); err != nil {
		return err
	}
	_, err := s.run(ctx, evenUncertain, s.scripts.workerRemove, []string{s.workersKey(), s.workerKey(id), s.leaderKey()},
		string(id), s.wakeChannel(), announcement(dispatch.HintWorkers), announcement(dispatch.HintLeader))
	return err
}

// HeartbeatWorker implements cluster.Store. What is left of a row of which a part is gone is removed.
func (s *Store) HeartbeatWorker(ctx context.Context, id cluster.WorkerID) error {
	if err := checkWorkerID(id); err != nil {
		return err
	}
	v, err := s.run(ctx, evenUncertain, s.scripts.workerBeat, []string{s.workersKey(), s.workerKey(id)},
		s.now(), string(id), ms(workerLife))
	if err == nil && v == int64(0) {
		return cluster.ErrWorkerNotFound
	}
	return err
}

// GetWorker implements cluster.Store.
func (s *Store) GetWorker(ctx context.Context, id cluster.WorkerID) (*cluster.Worker, error) {
	if err := checkWorkerID(id); err != nil {
		return nil, err
	}
	workers, leads, err := s.workers(ctx, []string{string(id)})
	if err != nil {
		return nil, err
	}
	if len(workers) == 0 {
		return nil, cluster.ErrWorkerNotFound
	}
	leads.on(workers)
	return workers[0], nil
}

// ListWorkers implements cluster.Store. The rows are read a hundred at a time.
func (s *Store) ListWorkers(ctx context.Context) ([]*cluster.Worker, error) {
	var ids []string
	err := s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		var err error
		ids, err = s.client.ZRange(ctx, s.workersKey(), 0, -1).Result()
		return err
	})
	if err != nil {
		return nil, err
	}
	all := make([]*cluster.Worker, 0, len(ids))
	var leads leadership
	for part := range slices.Chunk(ids, workersPerCall) {
		var workers []*cluster.Worker
		if workers, leads, err = s.workers(ctx, part); err != nil {
			return nil, err
		}
		all = append(all, workers...)
	}
	leads.on(all) // who led at the last reading: each may have seen another leader
	slices.SortFunc(all, func(a, b *cluster.Worker) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return all, nil
}

// workers reads rows, at most workersPerCall, as far as they are whole.
func (s *Store) workers(ctx context.Context, ids []string) ([]*cluster.Worker, leadership, error) {
	keys := append([]string{s.workersKey(), s.leaderKey()}, s.workerKeys(ids)...)
	v, err := s.run(ctx, evenUncertain, s.scripts.workerRead, keys, withIDs(ids, s.now())...)
	if err != nil {
		return nil, leadership{}, err
	}
	return s.readWorkers(s.scripts.workerRead, v)
}

func (s *Store) workerKeys(ids []string) []string {
	keys := make([]string, 0, len(ids))
	for _, id := range ids {
		keys = append(keys, s.workerKey(cluster.WorkerID(id)))
	}
	return keys
}

// GetLeader implements cluster.Store.
func (s *Store) GetLeader(ctx context.Context) (*cluster.Worker, error) {
	var ids []string // whom the last reading has named
	for {
		workers, leads, err := s.workers(ctx, ids)
		switch {
		case err != nil:
			return nil, err
		case leads.id == "":
			return nil, nil
		case len(ids) == 1 && ids[0] == string(leads.id):
			if len(workers) == 0 {
				workers = []*cluster.Worker{{ID: leads.id}}
			}
			leads.on(workers)
			return workers[0], nil
		}
		ids = []string{string(leads.id)}
	}
}

// ReapDeadWorkers implements cluster.Store. With an error it returns the rows that it has marked before; what it was
// marking when the error came is found by ListWorkers alone.
func (s *Store) ReapDeadWorkers(ctx context.Context, threshold time.Duration) ([]*cluster.Worker, error) {
	ids, err := s.staleWorkers(ctx, threshold)
	if err != nil {
		return nil, err
	}
	var dead []*cluster.Worker
	name := rand.Text()
	for part := range slices.Chunk(ids, workersPerCall) {
		keys := append([]string{s.workersKey(), s.leaderKey()}, s.workerKeys(part)...)
		v, err := s.run(ctx, evenUncertain, s.scripts.workerReap, keys, withIDs(part, s.now(), ms(max(threshold, 0)), name,
			s.wakeChannel(), announcement(dispatch.HintWorkers))...)
		if err != nil {
			return dead, err
		}
		workers, leads, err := s.readWorkers(s.scripts.workerReap, v)
		leads.on(workers)
		if dead = append(dead, workers...); err != nil {
			return dead, err
		}
	}
	return dead, nil
}

// DeleteStaleWorkers implements cluster.Store. Half a row is deleted too, and not counted. If the server's answer was
// lost on the way, what it has deleted then is not counted either.
func (s *Store) DeleteStaleWorkers(ctx context.Context, threshold time.Duration) (int, error) {
	ids, err := s.staleWorkers(ctx, threshold)
	if err != nil {
		return 0, err
	}
	deleted := 0
	for part := range slices.Chunk(ids, workersPerCall) {
		keys := append([]string{s.workersKey(), s.leaderKey()}, s.workerKeys(part)...)
		v, err := s.run(ctx, evenUncertain, s.scripts.workerSweep, keys, withIDs(part, s.now(), ms(max(threshold, 0)),
			s.wakeChannel(), announcement(dispatch.HintWorkers), announcement(dispatch.HintLeader))...)
		if err != nil {
			return deleted, err
		}
		n, _ := v.(int64)
		deleted += int(n)
	}
	return deleted, nil
}

// staleWorkers finds the workers that were last seen longer ago than the threshold. Whoever acts on that looks again:
// they may beat meanwhile.
func (s *Store) staleWorkers(ctx context.Context, threshold time.Duration) ([]string, error) {
	const page = 1000
	const longest = 100 * 365 * 24 * time.Hour // before the first worker ever
	within := -time.Duration(ms(min(max(threshold, 0), longest))+1) * time.Millisecond
	var ids []string
	for {
		notes, err := s.readNotes(ctx, s.workersKey(), within, len(ids), page)
		if err != nil {
			return nil, err
		}
		for _, n := range notes {
			ids = append(ids, n.Queue)
		}
		if len(notes) < page {
			return ids, nil
		}
	}
}
