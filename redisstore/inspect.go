package redisstore

import (
	"cmp"
	"context"
	"strconv"

	"github.com/dispatchkit/dispatch"
)

// pageSize is how many entries a listing reads at once.
const pageSize = 100

// stateOf says which state the keys stand for.
var stateOf = map[string]dispatch.TaskState{
	"due": dispatch.TaskWaiting, "leased": dispatch.TaskRunning, "done": dispatch.TaskSucceeded, "dead": dispatch.TaskDead,
	"cancelled": dispatch.TaskCancelled,
}

// Task implements dispatch.Inspector.
func (s *Store) Task(ctx context.Context, queue string, id dispatch.TaskID) (*dispatch.TaskInfo, error) {
	found, err := s.inspect(ctx, queue, []string{string(id)})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, dispatch.ErrTaskNotFound
	}
	return found[0], nil
}

// Tasks implements dispatch.Inspector. It reads the index of the state with ZSCAN, so a page holds the server up no
// longer for a million tasks than for a hundred.
func (s *Store) Tasks(ctx context.Context, queue string, state dispatch.TaskState, cursor string) ([]*dispatch.TaskInfo, string, error) {
	k := s.queueKeys(queue)
	index := map[dispatch.TaskState]string{
		dispatch.TaskWaiting: k.due, dispatch.TaskRunning: k.leased, dispatch.TaskSucceeded: k.done, dispatch.TaskDead: k.dead,
		dispatch.TaskCancelled: k.cancelled,
	}[state]
	ids, next, err := s.scanIndex(ctx, index, cursor)
	if err != nil {
		return nil, "", err
	}
	found, err := s.inspect(ctx, queue, ids)
	if err != nil {
		return nil, "", err
	}
	page := found[:0]
	for _, t := range found {
		if t.State == state {
			page = append(page, t)
		}
	}
	return page, next, nil
}

// scanIndex reads one page of the IDs of a zset. Cursors are "" at both ends.
func (s *Store) scanIndex(ctx context.Context, key, cursor string) (ids []string, next string, err error) {
	from, _ := strconv.ParseUint(cursor, 10, 64)
	var pairs []string
	var to uint64
	err = s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		var err error
		pairs, to, err = s.client.ZScan(ctx, key, from, "", pageSize).Result()
		return err
	})
	for i := 0; i < len(pairs); i += 2 {
		ids = append(ids, pairs[i])
	}
	if to != 0 {
		next = strconv.FormatUint(to, 10)
	}
	return ids, next, err
}

// inspect reads tasks wherever they stand; those that are gone are left out.
func (s *Store) inspect(ctx context.Context, queue string, ids []string) ([]*dispatch.TaskInfo, error) {
	k := s.queueKeys(queue)
	keys := []string{k.due, k.leased, k.leases, k.tasks, k.state, k.done, k.dead, k.cancelled}
	var found []*dispatch.TaskInfo
	for len(ids) > 0 {
		v, err := s.run(ctx, evenUncertain, s.scripts.inspect, keys, withIDs(ids, maxScriptBytes)...)
		if err != nil {
			return nil, err
		}
		r := replyOf(s.scripts.inspect, v)
		read := r.count(min(len(ids), maxScriptItems))
		for r.left() > 0 && r.err == nil {
			found = append(found, readTask(r, queue))
		}
		if r.err != nil {
			return nil, r.err
		}
		ids = ids[read:]
	}
	return found, nil
}

// withIDs puts IDs behind the other arguments of a script, no more than one call may have.
func withIDs(ids []string, args ...any) []any {
	for _, id := range ids[:min(len(ids), maxScriptItems)] {
		args = append(args, id)
	}
	return args
}

// readTask reads one task of the reply. What cannot be read is an error of the task, which does not hide the others.
func readTask(r *reply, queue string) *dispatch.TaskInfo {
	id, where, score, lease, record, progress := r.string(), r.string(), r.string(), r.string(), r.string(), r.string()
	t := &dispatch.TaskInfo{State: stateOf[where]}
	var named bool
	recordErr := decodeRecord(record, &t.Task, &named)
	if recordErr == nil {
		t.CreatedAt = recordCreated(record)
	} else {
		t.Task = dispatch.Task{}
	}
	t.ID, t.Queue = dispatch.TaskID(id), queue
	var progressErr, leaseErr error
	if t.Progress, progressErr = decodeProgress(progress); progressErr != nil {
		t.Progress = dispatch.Progress{}
	}
	at, scoreErr := strconv.ParseInt(score, 10, 64)
	switch t.State {
	case dispatch.TaskWaiting:
		t.Due = millis(dueTime(at))
	case dispatch.TaskRunning:
		t.LeaseEnd = millis(at)
		t.Token, t.LeasedBy, leaseErr = parseLease(lease)
	default:
		t.ExpiresAt = millis(at)
	}
	t.Err = cmp.Or(recordErr, progressErr, leaseErr, scoreErr)
	return t
}
