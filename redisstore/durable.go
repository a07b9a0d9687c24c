package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
)

// durableAlone is how many calls that do not travel wait for the replicas of one server at once. Each holds a connection of
// the client, which others want too; with those of the convoy they are seven.
const durableAlone = 4

// answerTime is what an answer takes besides waiting for replicas, and much more than that.
const answerTime = 100 * time.Millisecond

// Durable implements dispatch.Replicator. A call and what waits for replicas go to the master that has the keys, on one
// connection:
//
//	EVALSHA …   the script, or several that travel together
//	EVAL mark   a write, so that WAIT does not go by an older one
//	WAIT        once for all of them
//
// WAIT goes by the last write of its connection. From Redis 7.2 on, a script that writes nothing, because an earlier call of
// another connection has stored the task, leaves that as it was, and WAIT would answer at once for something old.
func (s *Store) Durable(d dispatch.Durability) (dispatch.Store, error) {
	var limit time.Duration // go-redis has the same one for WAIT in a pipeline as for any answer; below 0 is none
	switch client := s.client.(type) {
	case *redis.Client:
		limit = client.Options().ReadTimeout
	case *redis.ClusterClient:
		limit = client.Options().ReadTimeout
	default:
		return nil, &dispatch.FieldError{Field: "Durability.Replicas",
			Problem: fmt.Sprintf("needs a store on a *redis.Client or a *redis.ClusterClient, not on a %T", client)}
	}
	if limit > 0 && limit < d.Timeout+answerTime {
		return nil, &dispatch.FieldError{Field: "Durability.Timeout",
			Problem: fmt.Sprintf("%v is too long for the Redis client, whose ReadTimeout is %v and should be %v longer", d.Timeout, limit, answerTime)}
	}
	return &Store{
		client: s.client, prefix: s.prefix, log: s.log, scripts: s.scripts, lanes: newLanes(), company: s.company,
		durability: d, base: s, now: func() string { return s.now() },
	}, nil
}

// isDurable says whether what this store acknowledges is replicated.
func (s *Store) isDurable() bool { return s.durability.Replicas > 0 }

// serverOf finds the server that has a key; nil where only the client knows.
func (s *Store) serverOf(ctx context.Context, key string) (*redis.Client, error) {
	switch client := s.client.(type) {
	case *redis.Client:
		return client, nil
	case *redis.ClusterClient:
		return client.MasterForKey(ctx, key)
	}
	return nil, nil
}

// evalDurably runs a call that is acknowledged. With ErrNotReplicated it has run, and the reply is there.
func (s *Store) evalDurably(ctx context.Context, t *travelling) (any, error) {
	server, err := s.serverOf(ctx, t.key())
	if err != nil {
		return nil, err
	}
	t.ctx, t.args, t.answered = ctx, owned(t.args), make(chan struct{})
	c := s.convoyTo(server)
	call := c.alone
	if t.travels() {
		call = c.wait
	}
	reply, err := call(ctx, t)
	if cluster, ok := s.client.(*redis.ClusterClient); ok && err != nil && judge(err) != final {
		cluster.ReloadState(ctx) // a master's own client does not tell that of the cluster when the slot, or the master, has gone
	}
	return reply, err
}

// change runs a single command that changes a key.
func (s *Store) change(ctx context.Context, args ...any) error {
	return s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		if !s.isDurable() {
			return s.client.Do(ctx, args...).Err()
		}
		_, err := s.evalDurably(ctx, &travelling{command: args})
		return err
	})
}

// steps is a call that takes several. When replicas have kept silent about one, the others are made without waiting for them
// again, and the call ends with that. An error of a step never says that nothing was done, once something was.
type steps struct {
	*Store       // which makes the next one
	silent error // ErrNotReplicated, or nil
	begun  bool  // something was done that stays
}

func (s *Store) inSteps() *steps { return &steps{Store: s} }

// asked takes in the error of a step that leaves nothing to speak of; the call ends with what it returns, unless that is nil.
func (c *steps) asked(err error) error {
	switch {
	case errors.Is(err, dispatch.ErrNotReplicated):
		c.Store, c.silent = c.base, err
		return nil
	case err == nil || !c.begun:
		return err
	case errors.Is(err, dispatch.ErrStoreFull): // of which nothing is stored
		return fmt.Errorf("%w: %v", dispatch.ErrUncertain, err)
	}
	return fmt.Errorf("%w: %w", dispatch.ErrUncertain, err)
}

// made is the same for a step that does something.
func (c *steps) made(err error) error {
	err = c.asked(err)
	c.begun = c.begun || err == nil
	return err
}

// listDurably makes sure that a queue that exists is listed on replicas too. In a cluster the list may be on another master
// than the queue; on one server it is older than what is in the queue, and goes with it.
func (s *Store) listDurably(ctx context.Context, queue string) error {
	if _, several := s.client.(*redis.ClusterClient); !several || !s.isDurable() {
		return nil
	}
	if _, known := s.listed.Load(queue); known {
		return nil
	}
	if err := s.listQueue(ctx, queue); err != nil {
		return err
	}
	s.listed.Store(queue, true)
	return nil
}

// alone sends a call in a pipeline of its own. Like that of any call, it ends with ctx.
func (c *convoy) alone(ctx context.Context, t *travelling) (any, error) {
	select {
	case c.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	go func() {
		defer func() { <-c.places }()
		c.send(ctx, []*travelling{t})
	}()
	select {
	case <-t.answered:
		return t.reply, t.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// confirmation is the end of a pipeline that asks for replicas.
type confirmation struct {
	durability dispatch.Durability
	mark, wait *redis.Cmd
}

// confirm ends a pipeline whose calls are acknowledged; key is one of theirs.
func (c *convoy) confirm(ctx context.Context, pipe redis.Pipeliner, key string) *confirmation {
	if c.durability.Replicas == 0 {
		return nil
	}
	mark := key
	if end := strings.IndexByte(key, '}'); end >= 0 {
		mark = key[:end+1] + ":mark"
	}
	return &confirmation{
		durability: c.durability,
		mark:       pipe.Eval(ctx, c.mark.source, []string{mark}),
		wait:       pipe.Do(ctx, "wait", c.durability.Replicas, ms(c.durability.Timeout)),
	}
}

// err is nil when enough replicas have what the calls before have written and found.
func (c *confirmation) err() error {
	if c == nil {
		return nil
	}
	if err := c.mark.Err(); err != nil && !errors.Is(err, redis.Nil) {
		return &unconfirmedError{err}
	}
	n, err := c.wait.Int()
	if err != nil {
		return &unconfirmedError{err}
	}
	if n < c.durability.Replicas {
		return fmt.Errorf("%w: %d of %d replicas after %v", dispatch.ErrNotReplicated, n, c.durability.Replicas, c.durability.Timeout)
	}
	return nil
}

// unconfirmedError is that of a call that has run, when nothing is known of the replicas.
type unconfirmedError struct{ err error }

func (e *unconfirmedError) Error() string { return "no answer for the replicas: " + e.err.Error() }
