package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
)

// CreateQueue implements dispatch.QueueStore.
func (s *Store) CreateQueue(ctx context.Context, q dispatch.Queue) (bool, error) {
	config, err := encodeSettings(&q)
	if err != nil {
		return false, err
	}
	call := s.inSteps()
	if err := call.asked(call.listQueue(ctx, q.Name)); err != nil { // listed before it exists; see Enqueue
		return false, err
	}
	interval, burst, concurrent := limitArgs(&q)
	v, err := call.run(ctx, evenUncertain, s.scripts.queueCreate, []string{s.queueKeys(q.Name).meta},
		s.now(), config, interval, burst, concurrent, formatResources(q.Requires), ms(q.TaskTTL))
	if err := call.asked(err); err != nil {
		return false, err
	}
	call.begun = v == int64(1)
	err = call.made(call.listQueue(ctx, q.Name))
	return v == int64(1), cmp.Or(err, call.silent)
}

func (s *Store) listQueue(ctx context.Context, name string) error {
	return s.change(ctx, "sadd", s.queuesKey(), name)
}

// ReplaceQueue implements dispatch.QueueStore.
func (s *Store) ReplaceQueue(ctx context.Context, q dispatch.Queue) (bool, error) {
	config, err := encodeSettings(&q)
	if err != nil {
		return false, err
	}
	interval, burst, concurrent := limitArgs(&q)
	lane, number := s.lanes.enter()
	defer s.lanes.leave(lane)
	keys := []string{s.queueKeys(q.Name).meta, s.callMemo(q.Name, lane)}
	v, err := s.run(ctx, evenUncertain, s.scripts.queueReplace, keys,
		q.Version, config, interval, burst, concurrent, s.now(), formatResources(q.Requires), ms(q.TaskTTL),
		number)
	switch {
	case v == int64(0): // it is to be tried again with other settings, whatever replicas have
		return false, nil
	case err == nil && v == int64(-1):
		return false, dispatch.ErrQueueNotFound
	}
	return v == int64(1), err
}

// Queue implements dispatch.QueueStore.
func (s *Store) Queue(ctx context.Context, name string) (*dispatch.Queue, error) {
	var fields []any
	err := s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		var err error
		fields, err = s.client.HMGet(ctx, s.queueKeys(name).meta, "config", "version", "paused", "created", "draining").Result()
		return err
	})
	if err != nil {
		return nil, err
	}
	config, ok := fields[0].(string)
	if !ok {
		return nil, dispatch.ErrQueueNotFound
	}
	q, err := decodeSettings(config)
	if err != nil {
		return nil, fmt.Errorf("redisstore: settings of queue %s: %w", name, err)
	}
	q.Name, q.Version, q.Paused = name, fieldInt(fields[1]), fieldInt(fields[2]) == 1
	q.CreatedAt, q.Draining = millis(fieldInt(fields[3])), fieldInt(fields[4]) == 1
	return q, nil
}

// fieldInt is a field of a hash as an integer; one that is missing is 0.
func fieldInt(v any) int64 {
	text, _ := v.(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// Queues implements dispatch.QueueStore.
func (s *Store) Queues(ctx context.Context, cursor uint64) (names []string, next uint64, err error) {
	err = s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		var err error
		names, next, err = s.client.SScan(ctx, s.queuesKey(), cursor, "", pageSize).Result()
		return err
	})
	return names, next, err
}

// stateFields says which field of meta stands for a state of a queue.
var stateFields = map[dispatch.QueueState]string{
	dispatch.QueueRunning: "", dispatch.QueuePaused: "paused", dispatch.QueueDraining: "draining",
}

// SetState implements dispatch.QueueStore.
func (s *Store) SetState(ctx context.Context, name string, state dispatch.QueueState) error {
	field, known := stateFields[state]
	if !known {
		return fmt.Errorf("redisstore: a queue cannot be %q", state)
	}
	v, err := s.run(ctx, evenUncertain, s.scripts.queueState, []string{s.queueKeys(name).meta}, field)
	if err == nil && v == int64(0) {
		return dispatch.ErrQueueNotFound
	}
	return err
}

// DeleteQueue implements dispatch.QueueStore. The keys are unlinked: Redis frees their memory in the background.
func (s *Store) DeleteQueue(ctx context.Context, name string) error {
	k := s.queueKeys(name)
	existed, err := s.queueExists(ctx, name)
	if err != nil {
		return err
	}
	call := s.inSteps()
	err = call.change(ctx, "unlink", k.due, k.leased, k.leases, k.tasks, k.state, k.done, k.dead, k.cancelled, k.names, k.meta)
	if err := call.made(err); err != nil {
		return err
	}
	if err := call.made(call.unlistQueue(ctx, name)); err != nil {
		return err
	}
	if call.silent == nil && !existed {
		return dispatch.ErrQueueNotFound
	}
	return call.silent
}

// unlistQueue takes a queue off the list, and puts it back if somebody has created it anew meanwhile. Whoever creates a
// queue lists it before and after: before, so that no task is ever in an unlisted queue should he die in between, and
// after, because the look here may come too soon to see what he is about to create.
func (s *Store) unlistQueue(ctx context.Context, name string) error {
	err := s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.SRem(ctx, s.queuesKey(), name)
			p.ZRem(ctx, s.expiringKey(), name)
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	exists, err := s.queueExists(ctx, name)
	if err == nil && exists {
		err = s.listQueue(ctx, name)
	}
	return err
}

func (s *Store) queueExists(ctx context.Context, name string) (bool, error) {
	_, err := s.Queue(ctx, name)
	if errors.Is(err, dispatch.ErrQueueNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Counts implements dispatch.QueueStore.
func (s *Store) Counts(ctx context.Context, name string) (dispatch.Counts, error) {
	k := s.queueKeys(name)
	v, err := s.run(ctx, evenUncertain, s.scripts.counts, []string{k.due, k.leased, k.done, k.dead, k.cancelled, k.meta}, s.now())
	if err != nil {
		return dispatch.Counts{}, err
	}
	r := replyOf(s.scripts.counts, v)
	if r.int() == 0 && r.err == nil {
		return dispatch.Counts{}, dispatch.ErrQueueNotFound
	}
	out := dispatch.Counts{Ready: r.int(), Scheduled: r.int(), Running: r.int(), Succeeded: r.int(), Dead: r.int(),
		Cancelled: r.int(), TotalSucceeded: r.int(), TotalDead: r.int(), TotalRetried: r.int(), TotalCancelled: r.int(),
		TotalExpired: r.int()}
	if interval := r.int(); interval > 0 {
		out.EffectiveRate = 1e6 / float64(interval)
	}
	return out, r.err
}
