package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// The leadership is a lock of redsync whose value is the worker's ID. A lock elects and no more: what a leader writes is
// fenced by its term.

// shortestTTL is less than any use. Below it, a call takes as long as the leadership.
const shortestTTL = 10 * time.Millisecond

// AcquireLeadership implements cluster.Store. A full server does not take a new leader; it keeps the one it has.
//
// Errors: *dispatch.FieldError for an ID that does not match [A-Za-z0-9_-]{1,64} and a ttl below 10 ms.
func (s *Store) AcquireLeadership(ctx context.Context, id cluster.WorkerID, ttl time.Duration) (bool, error) {
	return s.onLeadership(ctx, "acquire", id, ttl, func(ctx context.Context) (bool, error) {
		err := s.leaderLock(lockPool{goredis.NewPool(s.client)}, id, ttl).LockContext(ctx)
		if !isTaken(err) {
			return err == nil, err
		}
		return s.prolong(ctx, id, ttl) // taken, perhaps by this very worker
	})
}

// RenewLeadership implements cluster.Store. Errors are those of AcquireLeadership.
func (s *Store) RenewLeadership(ctx context.Context, id cluster.WorkerID, ttl time.Duration) (bool, error) {
	return s.onLeadership(ctx, "renew", id, ttl, func(ctx context.Context) (bool, error) {
		return s.prolong(ctx, id, ttl)
	})
}

func (s *Store) onLeadership(ctx context.Context, what string, id cluster.WorkerID, ttl time.Duration,
	call func(context.Context) (bool, error),
) (bool, error) {
	if err := checkWorkerID(id); err != nil {
		return false, err
	}
	if err := checkTTL("ttl", ttl); err != nil {
		return false, err
	}
	var held bool
	err := s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		var err error
		held, err = call(ctx)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("redisstore: %s leadership: %w", what, err)
	}
	return held, nil
}

func checkTTL(field string, ttl time.Duration) error {
	if ttl < shortestTTL {
		return &dispatch.FieldError{Field: field, Problem: fmt.Sprintf("is less than %v", shortestTTL)}
	}
	return nil
}

// leadershipTaken is how long the leadership is another worker's, unless it is renewed; 0 if it is not. That costs less than
// to ask for it.
func (s *Store) leadershipTaken(ctx context.Context, id cluster.WorkerID) (left time.Duration, err error) {
	err = s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		leader, err := s.client.Get(ctx, s.leaderKey()).Result()
		if errors.Is(err, redis.Nil) || leader == string(id) {
			left = 0
			return nil
		}
		if err == nil {
			left, err = s.client.PTTL(ctx, s.leaderKey()).Result()
			left = max(left, 0) // below 0: it has just ended, or has no end
		}
		return err
	})
	return left, err
}

// prolong moves the end of a leadership, if it is this worker's.
func (s *Store) prolong(ctx context.Context, id cluster.WorkerID, ttl time.Duration) (bool, error) {
	held, err := s.leaderLock(goredis.NewPool(s.client), id, ttl).ExtendContext(ctx)
	if isTaken(err) { // by another, or by nobody: redsync tells no difference
		return false, nil
	}
	return held, err
}

// resign ends the leadership of a worker, and tells everybody if it may be free now.
func (s *Store) resign(ctx context.Context, id cluster.WorkerID) error {
	free := true
	err := s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		_, err := s.leaderLock(goredis.NewPool(s.client), id, shortestTTL).UnlockContext(ctx)
		switch {
		case isTaken(err):
			free = false
			return nil
		case errors.Is(err, redsync.ErrLockAlreadyExpired):
			return nil // or it was unlocked by a call whose answer was lost
		}
		return err
	})
	if err == nil && free {
		err = s.persist(ctx, evenUncertain, func(ctx context.Context) error {
			return s.client.Publish(ctx, s.wakeChannel(), announcement(dispatch.HintLeader)).Err()
		})
	}
	if err != nil {
		return fmt.Errorf("redisstore: resign leadership: %w", err)
	}
	return nil
}

// leaderLock makes a lock for one call: redsync's locks are not safe for concurrent use, and what they remember is known
// from the call. One try of it may take half of the ttl; redsync's 5 % are less than a slow answer when the ttl is short.
func (s *Store) leaderLock(pool redsyncredis.Pool, id cluster.WorkerID, ttl time.Duration) *redsync.Mutex {
	value := string(id)
	return redsync.New(pool).NewMutex(s.leaderKey(), redsync.WithExpiry(ttl), redsync.WithTries(1),
		redsync.WithTimeoutFactor(0.5), redsync.WithValue(value),
		redsync.WithGenValueFunc(func() (string, error) { return value, nil }))
}

func isTaken(err error) bool {
	var taken *redsync.ErrTaken
	return errors.As(err, &taken)
}

// lockPool is for Lock alone. A Lock that fails undoes itself by deleting the key if it has the value that it tried to
// set. Here that is also the value of a lock that this worker has: trying twice would end its leadership. So Lock
// undoes nothing, and what it may leave behind is this worker's at the next try, or ends with its ttl.
type lockPool struct{ redsyncredis.Pool }

func (p lockPool) Get(ctx context.Context) (redsyncredis.Conn, error) {
	conn, err := p.Pool.Get(ctx)
	return lockConn{conn}, err
}

type lockConn struct{ redsyncredis.Conn }

func (lockConn) Eval(*redsyncredis.Script, ...any) (any, error) { return int64(0), nil }

// BeginTerm implements dispatch.Leadership. A store that knows of no leader believes the caller: its elector may keep the
// leadership elsewhere.
func (s *Store) BeginTerm(ctx context.Context, id cluster.WorkerID) (int64, error) {
	if err := checkWorkerID(id); err != nil {
		return 0, err
	}
	v, err := s.run(ctx, evenUncertain, s.scripts.termBegin, []string{s.leaderKey(), s.termKey()}, s.now(), string(id))
	if err != nil {
		return 0, err
	}
	if v == int64(-1) {
		return 0, dispatch.ErrLeadershipLost
	}
	term, _ := v.(int64)
	return term, nil
}
