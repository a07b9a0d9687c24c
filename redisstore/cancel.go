package redisstore

import (
	"cmp"
	"context"
	"errors"

	"github.com/dispatchkit/dispatch"
)

// CancelTask implements dispatch.Inspector. The script knows a repetition by its number: the task may be gone by then.
func (s *Store) CancelTask(ctx context.Context, queue string, c dispatch.Cancellation) (bool, error) {
	progress := ""
	if c.Progress != nil {
		var err error
		if progress, err = encodeProgress(c.Progress); err != nil {
			return false, err
		}
	}
	lane, number := s.lanes.enter()
	defer s.lanes.leave(lane)
	k := s.queueKeys(queue)
	keys := []string{k.due, k.leased, k.leases, k.tasks, k.state, k.names, k.cancelled, k.meta, s.callMemo(queue, lane)}
	v, err := s.run(ctx, evenUncertain, s.scripts.cancel, keys,
		s.now(), string(c.ID), c.Lease.Fence, ms(c.Retention), ms(c.Tombstone), progress,
		s.endedChannel(), queue, number)
	silent := errors.Is(err, dispatch.ErrNotReplicated)
	if err != nil && !silent {
		return false, err
	}
	r := replyOf(s.scripts.cancel, v)
	switch code := r.int(); {
	case r.err != nil || code == -1: // it is to be tried again with another lease, whatever replicas have
		return false, r.err
	case code == 1:
		s.noteExpiry(ctx, queue, wait(r.int()))
		return true, cmp.Or(r.err, err)
	case silent:
		return false, err
	case code == 0:
		return false, dispatch.ErrTaskNotFound
	case code == -2:
		return false, dispatch.ErrTaskEnded
	case code == -4: // this call comes late, and nobody waits for it
		return false, dispatch.ErrUncertain
	}
	return true, nil // it was cancelled before
}
