package redisstore

import (
	"cmp"
	"context"

	"github.com/dispatchkit/dispatch"
)

// DeleteTasks implements dispatch.Inspector.
func (s *Store) DeleteTasks(ctx context.Context, queue string, ids []dispatch.TaskID, o dispatch.DeleteOptions) ([]bool, error) {
	k := s.queueKeys(queue)
	keys := []string{k.due, k.leased, k.leases, k.tasks, k.state, k.done, k.dead, k.cancelled, k.names, k.meta}
	deleted := make([]bool, 0, len(ids))
	for len(ids) > 0 {
		part := ids[:min(len(ids), maxScriptItems)]
		args := []any{s.now(), ms(o.Tombstone), flag(o.DeadOnly), maxScriptBytes, s.endedChannel(), queue}
		for _, id := range part {
			args = append(args, string(id))
		}
		v, err := s.run(ctx, evenUncertain, s.scripts.delete, keys, args...)
		if err != nil {
			return deleted, err
		}
		r := replyOf(s.scripts.delete, v)
		read, kept := r.count(len(part)), r.int()
		codes, err := digits(r.string(), read)
		if err := cmp.Or(r.err, err); err != nil {
			return deleted, err
		}
		s.noteExpiry(ctx, queue, wait(kept))
		deleted, ids = append(deleted, codes...), ids[read:]
	}
	return deleted, nil
}
