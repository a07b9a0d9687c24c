package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// ExpiredLeases implements dispatch.Sweeper. Entries that were leased to nobody, as damage to the keys may leave them, would be
// in the way of those behind them for ever: when there is nothing else, they are repaired first.
func (s *Store) ExpiredLeases(ctx context.Context, queue string, limit int) ([]dispatch.Leased, time.Duration, error) {
	limit = min(limit, maxScriptItems)
	leases, next, read, err := s.readLeases(ctx, queue, limit, nil)
	if err == nil && len(leases) == 0 && read > 0 {
		if _, err = s.mend(ctx, queue); err == nil {
			leases, next, _, err = s.readLeases(ctx, queue, limit, nil)
		}
	}
	return leases, next, err
}

// HeldLeases implements dispatch.Sweeper.
func (s *Store) HeldLeases(ctx context.Context, queue string, workers []cluster.WorkerID, cursor uint64) ([]dispatch.Leased, uint64, error) {
	var pairs []string
	var next uint64
	err := s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		var err error
		pairs, next, err = s.client.HScan(ctx, s.queueKeys(queue).leases, cursor, "", pageSize).Result()
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	var ids []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if _, holder, err := parseLease(pairs[i+1]); err == nil && slices.Contains(workers, holder) {
			ids = append(ids, pairs[i])
		}
	}
	var held []dispatch.Leased
	for len(ids) > 0 {
		leases, _, read, err := s.readLeases(ctx, queue, 0, ids)
		if err != nil {
			return nil, 0, err
		}
		for _, l := range leases {
			if slices.Contains(workers, l.Worker) { // it may have changed hands meanwhile
				held = append(held, l)
			}
		}
		ids = ids[read:]
	}
	return held, next, nil
}

// Lease implements dispatch.Sweeper.
func (s *Store) Lease(ctx context.Context, queue string, id dispatch.TaskID) (*dispatch.Leased, error) {
	leases, _, _, err := s.readLeases(ctx, queue, 0, []string{string(id)})
	if err != nil || len(leases) == 0 {
		return nil, err
	}
	return &leases[0], nil
}

// readLeases reads leases that have ended, or those of ids, and how many of these it has read.
func (s *Store) readLeases(ctx context.Context, queue string, limit int, ids []string) ([]dispatch.Leased, time.Duration, int, error) {
	k := s.queueKeys(queue)
	v, err := s.run(ctx, evenUncertain, s.scripts.leases,
		[]string{k.leased, k.leases, k.tasks, k.state}, withIDs(ids, s.now(), limit, maxScriptBytes)...)
	if err != nil {
		return nil, 0, 0, err
	}
	r := replyOf(s.scripts.leases, v)
	now, next, read := r.int(), wait(r.int()), 0
	if len(ids) > 0 {
		read = r.count(min(len(ids), maxScriptItems))
	} else {
		read = int(r.int())
	}
	var leases []dispatch.Leased
	for r.left() > 0 && r.err == nil {
		l := readLease(queue, r.string(), r.string(), r.string(), r.string())
		l.At = millis(now)
		leases = append(leases, l)
	}
	return leases, next, read, r.err
}

// Expiring implements dispatch.Sweeper.
func (s *Store) Expiring(ctx context.Context, limit int) ([]string, error) {
	hints, err := s.readNotes(ctx, s.expiringKey(), 0, 0, limit)
	names := make([]string, 0, len(hints))
	for _, h := range hints {
		names = append(names, h.Queue)
	}
	return names, err
}

// Cleanup implements dispatch.Sweeper. When nothing is left to remove it puts the queue's note right, and looks once
// more: something may have been added between the two.
func (s *Store) Cleanup(ctx context.Context, queue string, limit int) (more bool, err error) {
	next, err := s.cleanup(ctx, queue, limit)
	if err != nil || next == 0 {
		return next == 0, err
	}
	if err := s.replaceNotes(ctx, s.expiringKey(), []dispatch.Hint{{Queue: queue, Wait: next}}); err != nil {
		return false, err
	}
	if next, err = s.cleanup(ctx, queue, 0); err == nil {
		s.noteExpiry(ctx, queue, next)
	}
	return false, err
}

func (s *Store) cleanup(ctx context.Context, queue string, limit int) (next time.Duration, err error) {
	k := s.queueKeys(queue)
	v, err := s.run(ctx, evenUncertain, s.scripts.cleanup, []string{k.tasks, k.state, k.done, k.dead, k.cancelled, k.names},
		s.now(), min(limit, maxScriptItems))
	n, _ := v.(int64)
	return wait(n), err
}

// readNotes reads notes of an index whose time comes within a while, soonest first.
func (s *Store) readNotes(ctx context.Context, key string, within time.Duration, offset, limit int) ([]dispatch.Hint, error) {
	v, err := s.run(ctx, evenUncertain, s.scripts.hints, []string{key}, s.now(), ms(within), offset, limit)
	if err != nil {
		return nil, err
	}
	r := replyOf(s.scripts.hints, v)
	hints := make([]dispatch.Hint, 0, r.left()/2)
	for r.left() > 0 && r.err == nil {
		hints = append(hints, dispatch.Hint{Queue: r.string(), Wait: wait(r.int())})
	}
	return hints, r.err
}

// replaceNotes replaces notes of an index, or removes those whose wait is below zero.
func (s *Store) replaceNotes(ctx context.Context, key string, hints []dispatch.Hint) error {
	args := []any{s.now()}
	for _, h := range hints {
		at := int64(-1)
		if h.Wait >= 0 {
			at = ms(h.Wait)
		}
		args = append(args, at, h.Queue)
	}
	_, err := s.run(ctx, evenUncertain, s.scripts.rest, []string{key}, args...)
	return err
}
