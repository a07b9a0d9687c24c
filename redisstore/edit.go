package redisstore

import (
	"context"
	"errors"

	"github.com/dispatchkit/dispatch"
)

// errNewerRecord is a record that says more than this version of the program can write.
var errNewerRecord = errors.New("redisstore: the record has fields that this program does not know, which an edit would lose")

// EditTask implements dispatch.Inspector. What the record says besides the task stays: when it was stored, whether its ID
// was chosen or derived, and by which call.
func (s *Store) EditTask(ctx context.Context, queue string, id dispatch.TaskID, change func(*dispatch.Task) error) error {
	record, err := s.waitingRecord(ctx, queue, id)
	if err != nil {
		return err
	}
	var sub dispatch.Submission
	if err := decodeSubmission(record, &sub); err != nil {
		return err
	}
	if same, err := encodeRecord(&sub); err != nil || same != record[stampBytes:] {
		return errors.Join(errNewerRecord, err)
	}
	sub.ID, sub.Queue = id, queue
	if err := change(&sub.Task); err != nil {
		return err
	}
	edited, err := encodeRecord(&sub)
	if err != nil {
		return err
	}
	lane, number := s.lanes.enter()
	defer s.lanes.leave(lane)
	k := s.queueKeys(queue)
	keys := []string{k.due, k.tasks, k.meta, s.callMemo(queue, lane)}
	v, err := s.run(ctx, evenUncertain, s.scripts.edit, keys, number, string(id), record, record[:stampBytes]+edited)
	switch {
	case v == int64(-2): // whatever replicas have
		return dispatch.ErrConflict
	case err != nil:
		return err
	case v == int64(0):
		return dispatch.ErrTaskNotFound
	case v == int64(-1):
		return dispatch.ErrNotWaiting
	case v != int64(1): // this call comes late, and nobody waits for it
		return dispatch.ErrUncertain
	}
	return nil
}

// waitingRecord reads the record of a task that waits.
func (s *Store) waitingRecord(ctx context.Context, queue string, id dispatch.TaskID) (string, error) {
	k := s.queueKeys(queue)
	keys := []string{k.due, k.leased, k.leases, k.tasks, k.state, k.done, k.dead, k.cancelled}
	v, err := s.run(ctx, evenUncertain, s.scripts.inspect, keys, maxScriptBytes, string(id))
	if err != nil {
		return "", err
	}
	r := replyOf(s.scripts.inspect, v)
	if r.int(); r.left() == 0 && r.err == nil {
		return "", dispatch.ErrTaskNotFound
	}
	_, where, _, _, record := r.string(), r.string(), r.string(), r.string(), r.string()
	if r.err == nil && stateOf[where] != dispatch.TaskWaiting {
		return "", dispatch.ErrNotWaiting
	}
	return record, r.err
}
