package redisstore

import (
	"context"

	"github.com/dispatchkit/dispatch"
)

// RescheduleTask implements dispatch.Inspector.
func (s *Store) RescheduleTask(ctx context.Context, queue string, t dispatch.Task) (dispatch.EnqueueReply, error) {
	k := s.queueKeys(queue)
	v, err := s.run(ctx, evenUncertain, s.scripts.reschedule, []string{k.due, k.tasks, k.meta},
		s.now(), string(t.ID), dueArg(&t))
	if err != nil {
		return dispatch.EnqueueReply{}, err
	}
	r := replyOf(s.scripts.reschedule, v)
	switch code := r.int(); {
	case r.err != nil:
		return dispatch.EnqueueReply{}, r.err
	case code == 0:
		return dispatch.EnqueueReply{}, dispatch.ErrTaskNotFound
	case code < 0:
		return dispatch.EnqueueReply{}, dispatch.ErrNotWaiting
	}
	return dispatch.EnqueueReply{Moved: r.int() == 1, Wait: wait(r.int())}, r.err
}
