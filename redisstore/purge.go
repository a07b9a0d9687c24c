package redisstore

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/dispatchkit/dispatch"
)

// PurgeQueue implements dispatch.QueueStore. The first call raises the queue's generation: from then on no script hands
// out a task of an older one. Slices remove the old tasks; should they end halfway, claims drop the rest as they meet it.
func (s *Store) PurgeQueue(ctx context.Context, name string, tombstone time.Duration) error {
	k := s.queueKeys(name)
	v, err := s.run(ctx, evenUncertain, s.scripts.purge, []string{k.due, k.meta}, rand.Text(), ms(tombstone))
	switch {
	case err != nil:
		return err
	case v == int64(0):
		return dispatch.ErrQueueNotFound
	}
	if tombstone > 0 {
		s.noteExpiry(ctx, name, tombstone)
	}
	for cursor := ""; ; {
		ids, next, err := s.scanIndex(ctx, k.due, cursor)
		if err != nil {
			return err
		}
		if err := s.purgeSlice(ctx, name, ids); err != nil {
			return err
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

func (s *Store) purgeSlice(ctx context.Context, name string, ids []string) error {
	k := s.queueKeys(name)
	keys := []string{k.due, k.tasks, k.state, k.names, k.meta}
	for len(ids) > 0 {
		v, err := s.run(ctx, evenUncertain, s.scripts.purgeSlice, keys, withIDs(ids, s.now(), maxScriptBytes)...)
		if err != nil {
			return err
		}
		read, _ := v.(int64)
		ids = ids[max(read, 1):]
	}
	return nil
}
