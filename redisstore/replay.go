package redisstore

import (
	"cmp"
	"context"

	"github.com/dispatchkit/dispatch"
)

// ReplayTasks implements dispatch.Inspector.
func (s *Store) ReplayTasks(ctx context.Context, queue string, ids []dispatch.TaskID) (dispatch.ReplayReply, error) {
	var out dispatch.ReplayReply
	k := s.queueKeys(queue)
	for len(ids) > 0 {
		part := ids[:min(len(ids), maxScriptItems)]
		ids = ids[len(part):]
		args := []any{s.now()}
		for _, id := range part {
			args = append(args, string(id))
		}
		v, err := s.run(ctx, onlyRefused, s.scripts.replay, []string{k.dead, k.due, k.tasks, k.state}, args...)
		if err != nil {
			return out, err
		}
		r := replyOf(s.scripts.replay, v)
		moved, first := r.int() == 1, wait(r.int())
		replayed, err := digits(r.string(), len(part))
		if err != nil || r.err != nil {
			return out, cmp.Or(r.err, err)
		}
		out.Moved, out.Wait = out.Moved || moved, max(first, 0)
		out.Replayed = append(out.Replayed, replayed...)
	}
	return out, nil
}
