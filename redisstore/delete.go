package redisstore

import (
	"cmp"
	"context"
	"errors"

	"github.com/dispatchkit/dispatch"
)

// DeleteTasks implements dispatch.Inspector.
func (s *Store) DeleteTasks(ctx context.Context, queue string, ids []dispatch.TaskID, o dispatch.DeleteOptions) ([]bool, error) {
	deleted := make([]bool, 0, len(ids))
	for len(ids) > 0 {
		codes, err := s.deletePart(ctx, queue, ids[:min(len(ids), maxScriptItems)], o)
		deleted, ids = append(deleted, codes...), ids[len(codes):]
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// deletePart removes tasks and says of each whether it did, for as many of the first as one script call gets to. The script
// knows a repetition by its number: an ID may be that of another task by then.
func (s *Store) deletePart(ctx context.Context, queue string, ids []dispatch.TaskID, o dispatch.DeleteOptions) ([]bool, error) {
	lane, number := s.lanes.enter()
	defer s.lanes.leave(lane)
	k := s.queueKeys(queue)
	keys := []string{k.due, k.leased, k.leases, k.tasks, k.state, k.done, k.dead, k.cancelled, k.names, k.meta, s.callMemo(queue, lane)}
	args := []any{s.now(), ms(o.Tombstone), flag(o.DeadOnly), maxScriptBytes, s.endedChannel(), queue, number}
	for _, id := range ids {
		args = append(args, string(id))
	}
	v, silent := s.run(ctx, evenUncertain, s.scripts.delete, keys, args...)
	if silent != nil && !errors.Is(silent, dispatch.ErrNotReplicated) {
		return nil, silent
	}
	r := replyOf(s.scripts.delete, v)
	if r.left() == 1 { // this call comes late, and nobody waits for it
		return nil, dispatch.ErrUncertain
	}
	read, kept := r.count(len(ids)), r.int()
	codes, err := digits(r.string(), read)
	if err := cmp.Or(r.err, err); err != nil {
		return nil, err
	}
	s.noteExpiry(ctx, queue, wait(kept))
	return codes, silent
}
