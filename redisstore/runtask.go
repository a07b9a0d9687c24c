package redisstore

import (
	"context"
	"crypto/rand"

	"github.com/dispatchkit/dispatch"
)

// RunTask implements dispatch.Inspector. The request's name lets the script tell a repetition, which must not take the
// lease of the attempt that the first one has brought about.
func (s *Store) RunTask(ctx context.Context, queue string, id dispatch.TaskID) (lost int64, err error) {
	k := s.queueKeys(queue)
	v, err := s.run(ctx, evenUncertain, s.scripts.runTask, []string{k.due, k.leased, k.leases, k.tasks, k.meta},
		s.now(), string(id), rand.Text())
	if err != nil {
		return 0, err
	}
	r := replyOf(s.scripts.runTask, v)
	switch code := r.int(); {
	case r.err != nil:
		return 0, r.err
	case code == 0:
		return 0, dispatch.ErrTaskNotFound
	case code < 0:
		return 0, dispatch.ErrTaskEnded
	}
	if lease := r.string(); lease != "" {
		lost, _, err = parseLease(lease)
	}
	return lost, err
}
