package redisstore

import (
	"cmp"
	"context"

	"github.com/dispatchkit/dispatch"
)

// ReplayTasks implements dispatch.Inspector.
func (s *Store) ReplayTasks(ctx context.Context, queue string, tasks []dispatch.Replay) (dispatch.ReplayReply, error) {
	var out dispatch.ReplayReply
	k := s.queueKeys(queue)
	keys := []string{k.dead, k.due, k.tasks, k.state, k.meta}
	for len(tasks) > 0 {
		part := tasks[:min(len(tasks), maxScriptItems)]
		args, mode := []any{s.now(), maxScriptBytes}, evenUncertain
		for _, t := range part {
			args = append(args, string(t.ID), string(t.NewID))
			if t.NewID == "" {
				mode = onlyRefused // it may be dead again by then, after attempts that a second run would not mean
			}
		}
		v, err := s.run(ctx, mode, s.scripts.replay, keys, args...)
		if err != nil {
			return out, err
		}
		r := replyOf(s.scripts.replay, v)
		read, moved, first := r.count(len(part)), r.int() == 1, wait(r.int())
		replayed, err := digits(r.string(), read)
		if err := cmp.Or(r.err, err); err != nil {
			return out, err
		}
		out.Moved, out.Wait = out.Moved || moved, max(first, 0)
		out.Replayed = append(out.Replayed, replayed...)
		tasks = tasks[read:]
	}
	return out, nil
}
