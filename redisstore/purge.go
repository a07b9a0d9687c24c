package redisstore

import (
	"cmp"
	"context"
	"time"

	"github.com/dispatchkit/dispatch"
)

// purgeBatch is how many tasks one slice of a purge looks at. In a long queue each that it removes costs about 10 µs.
const purgeBatch = 50

// PurgeQueue implements dispatch.QueueStore. The first call raises the queue's generation: from then on no script hands
// out a task of an older one, and that is what replicas are asked for. Slices remove the old tasks; should they end halfway,
// or a failover bring some back, claims drop the rest as they meet it.
func (s *Store) PurgeQueue(ctx context.Context, name string, tombstone time.Duration) error {
	lane, number := s.lanes.enter()
	defer s.lanes.leave(lane)
	k := s.queueKeys(name)
	keys := []string{k.due, k.meta, s.callMemo(name, lane)}
	call := s.inSteps()
	v, err := call.run(ctx, evenUncertain, s.scripts.purge, keys, number, ms(tombstone))
	switch err := call.made(err); {
	case err != nil:
		return err
	case v == int64(0):
		return cmp.Or(call.silent, dispatch.ErrQueueNotFound)
	case v != int64(1): // this call comes late, and nobody waits for it
		return dispatch.ErrUncertain
	}
	if tombstone <= 0 {
		tombstone = derivedTombstone // there may be some of these
	}
	s.noteExpiry(ctx, name, tombstone)
	for {
		// One pass sees every task that waits. Where ZSCAN skips entries when others are removed, as miniredis does, the
		// next pass sees them.
		removed, err := s.purgePass(ctx, name)
		if err := call.made(err); err != nil || removed == 0 {
			return cmp.Or(err, call.silent)
		}
	}
}

// purgePass goes once through all tasks that wait and says how many it has removed.
func (s *Store) purgePass(ctx context.Context, name string) (removed int64, err error) {
	for cursor := ""; ; {
		ids, next, err := s.scanIndex(ctx, s.queueKeys(name).due, cursor)
		if err != nil {
			return removed, err
		}
		n, err := s.purgeSlice(ctx, name, ids)
		if removed += n; err != nil {
			return removed, err
		}
		if cursor = next; cursor == "" {
			return removed, nil
		}
	}
}

func (s *Store) purgeSlice(ctx context.Context, name string, ids []string) (removed int64, err error) {
	k := s.queueKeys(name)
	keys := []string{k.due, k.tasks, k.state, k.names, k.meta}
	for len(ids) > 0 {
		part := ids[:min(len(ids), purgeBatch)]
		v, err := s.run(ctx, evenUncertain, s.scripts.purgeSlice, keys, withIDs(part, s.now(), maxScriptBytes)...)
		if err != nil {
			return removed, err
		}
		r := replyOf(s.scripts.purgeSlice, v)
		read := r.count(len(part))
		if removed += r.int(); r.err != nil {
			return removed, r.err
		}
		ids = ids[read:]
	}
	return removed, nil
}
