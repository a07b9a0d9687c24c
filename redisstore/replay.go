package redisstore

import (
	"cmp"
	"context"

	"github.com/dispatchkit/dispatch"
)

// ReplayTasks implements dispatch.Inspector.
func (s *Store) ReplayTasks(ctx context.Context, queue string, tasks []dispatch.Replay) (dispatch.ReplayReply, error) {
	var out dispatch.ReplayReply
	for len(tasks) > 0 {
		part, err := s.replayPart(ctx, queue, tasks[:min(len(tasks), maxScriptItems)])
		if err != nil {
			return out, err
		}
		out.Moved, out.Wait = out.Moved || part.Moved, part.Wait
		out.Replayed = append(out.Replayed, part.Replayed...)
		tasks = tasks[len(part.Replayed):]
	}
	return out, nil
}

// replayPart replays as many of the first tasks as one script call gets to. The script knows a repetition by its number.
func (s *Store) replayPart(ctx context.Context, queue string, tasks []dispatch.Replay) (out dispatch.ReplayReply, err error) {
	lane, number := s.lanes.enter()
	defer s.lanes.leave(lane)
	args, mode := []any{s.now(), maxScriptBytes, number}, evenUncertain
	for _, t := range tasks {
		args = append(args, string(t.ID), string(t.NewID))
		if t.NewID == "" {
			mode = onlyRefused // it may be dead again by then, after attempts that a second run would not mean
		}
	}
	k := s.queueKeys(queue)
	v, err := s.run(ctx, mode, s.scripts.replay, []string{k.dead, k.due, k.tasks, k.state, k.meta, s.callMemo(queue, lane)}, args...)
	if err != nil {
		return out, err
	}
	r := replyOf(s.scripts.replay, v)
	if r.left() == 1 { // this call comes late, and nobody waits for it
		return out, dispatch.ErrUncertain
	}
	read := r.count(len(tasks))
	out.Moved, out.Wait = r.int() == 1, max(wait(r.int()), 0)
	out.Replayed, err = digits(r.string(), read)
	return out, cmp.Or(r.err, err)
}
