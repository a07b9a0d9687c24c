package redisstore

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/dispatchkit/dispatch"
)

// RunTask implements dispatch.Inspector. A repetition must not take the lease of the attempt that the first call has
// brought about; the script knows it by its number.
func (s *Store) RunTask(ctx context.Context, queue string, id dispatch.TaskID) (lost int64, err error) {
	lane, number := s.lanes.enter()
	defer s.lanes.leave(lane)
	k := s.queueKeys(queue)
	keys := []string{k.due, k.leased, k.leases, k.tasks, k.meta, s.callMemo(queue, lane)}
	v, err := s.run(ctx, evenUncertain, s.scripts.runTask, keys, s.now(), string(id), number)
	silent := errors.Is(err, dispatch.ErrNotReplicated)
	if err != nil && !silent {
		return 0, err
	}
	r := replyOf(s.scripts.runTask, v)
	switch code := r.int(); {
	case r.err != nil:
		return 0, r.err
	case silent && code != 1:
		return 0, err
	case code == 0:
		return 0, dispatch.ErrTaskNotFound
	case code == -1:
		return 0, dispatch.ErrTaskEnded
	case code < 0: // this call comes late, and nobody waits for it
		return 0, dispatch.ErrUncertain
	}
	lost, bad := strconv.ParseInt(r.string(), 10, 64)
	return lost, cmp.Or(r.err, bad, err)
}
