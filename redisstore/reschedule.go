package redisstore

import (
	"context"

	"github.com/dispatchkit/dispatch"
)

// RescheduleTask implements dispatch.Inspector. A repetition must not move the task once more, which may wait for its backoff
// by then; the script knows it by its number.
func (s *Store) RescheduleTask(ctx context.Context, queue string, t dispatch.Task) (dispatch.EnqueueReply, error) {
	lane, number := s.lanes.enter()
	defer s.lanes.leave(lane)
	k := s.queueKeys(queue)
	v, err := s.run(ctx, evenUncertain, s.scripts.reschedule, []string{k.due, k.tasks, k.meta, s.callMemo(queue, lane)},
		s.now(), string(t.ID), dueArg(&t), number)
	if err != nil {
		return dispatch.EnqueueReply{}, err
	}
	r := replyOf(s.scripts.reschedule, v)
	switch code := r.int(); {
	case r.err != nil:
		return dispatch.EnqueueReply{}, r.err
	case code == 0:
		return dispatch.EnqueueReply{}, dispatch.ErrTaskNotFound
	case code == -1:
		return dispatch.EnqueueReply{}, dispatch.ErrNotWaiting
	case code < 0: // this call comes late, and nobody waits for it
		return dispatch.EnqueueReply{}, dispatch.ErrUncertain
	}
	return dispatch.EnqueueReply{Moved: r.int() == 1, Wait: wait(r.int())}, r.err
}
