package storetest

import (
	"time"

	"github.com/dispatchkit/dispatch"
)

// What administration does to the model.

// read is what an edit goes by, or why there can be none.
func (m *model) read(id string) (*modelTask, error) {
	t := m.tasks[id]
	switch {
	case t == nil:
		return nil, dispatch.ErrTaskNotFound
	case t.state != dispatch.TaskWaiting:
		return nil, dispatch.ErrNotWaiting
	}
	read := *t
	return &read, nil
}

// edit changes a task, if its record is what was read.
func (m *model) edit(id string, read *modelTask, size int) error {
	t := m.tasks[id]
	switch {
	case t == nil, t.generation < m.generation:
		return dispatch.ErrTaskNotFound
	case t.state != dispatch.TaskWaiting:
		return dispatch.ErrNotWaiting
	case t.created != read.created, t.generation != read.generation, !t.is(read.submission):
		return dispatch.ErrConflict
	}
	t.submission.Payload = make([]byte, size)
	return nil
}

// run makes a task due at once, and takes its lease away, whose token it returns.
func (m *model) run(id string) (lost int64, err error) {
	t := m.tasks[id]
	switch {
	case t != nil && t.ended():
		return 0, dispatch.ErrTaskEnded
	case t == nil, t.generation < m.generation:
		return 0, dispatch.ErrTaskNotFound
	}
	lost = t.lease.Lease.Token
	t.state, t.due, t.urgent, t.passed, t.lease = dispatch.TaskWaiting, m.now, true, false, dispatch.Leased{}
	return lost, nil
}

// reschedule gives a waiting task another due time; one that was to be run at once is not any more.
func (m *model) reschedule(id string, delay time.Duration) (want dispatch.EnqueueReply, err error) {
	t := m.tasks[id]
	switch {
	case t == nil, t.generation < m.generation:
		return want, dispatch.ErrTaskNotFound
	case t.state != dispatch.TaskWaiting:
		return want, dispatch.ErrNotWaiting
	}
	before, _ := m.head()
	t.due, t.urgent, t.passed = m.now+delay, false, false
	return dispatch.EnqueueReply{Moved: t.due <= before, Wait: m.headWait()}, nil
}

// cancel ends a task that waits, or whose lease it is, and says whether it is cancelled, and by this.
func (m *model) cancel(c dispatch.Cancellation) (done, ours bool, err error) {
	t := m.tasks[string(c.ID)]
	switch {
	case t == nil:
		return false, false, dispatch.ErrTaskNotFound
	case t.state == dispatch.TaskCancelled:
		return true, false, nil
	case t.ended():
		return false, false, dispatch.ErrTaskEnded
	case t.lease.Lease != c.Lease:
		return false, false, nil
	}
	m.totals.TotalCancelled++
	if c.Progress != nil {
		t.progress = *c.Progress
	}
	if c.Retention == 0 {
		m.drop(t, c.Tombstone)
		return true, true, nil
	}
	t.state, t.expires = dispatch.TaskCancelled, m.now+c.Retention
	m.entomb(t, c.Tombstone)
	return true, true, nil
}

// delete removes tasks and says of each whether it did.
func (m *model) delete(ids []string, o dispatch.DeleteOptions) []bool {
	var deleted []bool
	for _, id := range ids {
		t := m.tasks[id]
		if t == nil || o.DeadOnly && t.state != dispatch.TaskDead {
			deleted = append(deleted, false)
			continue
		}
		deleted = append(deleted, true)
		if t.ended() {
			delete(m.tasks, id)
		} else {
			m.drop(t, o.Tombstone)
		}
	}
	return deleted
}

// replay makes dead tasks wait again.
func (m *model) replay(tasks []dispatch.Replay) (want dispatch.ReplayReply) {
	seen, repeated := make(map[dispatch.TaskID]bool), false
	want.Moved, want.Wait = m.moved(func() {
		for _, r := range tasks {
			t := m.tasks[string(r.ID)]
			dead := t != nil && t.state == dispatch.TaskDead
			before := r.NewID != "" && m.tasks[string(r.NewID)] != nil && !dead && !seen[r.ID] // by an earlier run of this call
			seen[r.ID] = seen[r.ID] || dead || before
			repeated = repeated || before
			want.Replayed = append(want.Replayed, dead || before)
			if dead {
				m.renew(t, r.NewID)
			}
		}
	})
	if repeated {
		want.Moved, want.Wait = true, max(m.headWait(), 0)
	}
	return want
}

// renew makes a task wait as if it had just been stored.
func (m *model) renew(t *modelTask, newID dispatch.TaskID) {
	delete(m.tasks, string(t.submission.ID))
	if newID != "" {
		t.submission.ID, t.submission.Named, t.submission.Nonce = newID, false, 0
	}
	m.tasks[string(t.submission.ID)] = &modelTask{
		submission: t.submission, generation: m.generation, created: max(m.now, t.created+time.Millisecond),
		state: dispatch.TaskWaiting, due: m.now,
	}
}

func (m *model) purge(tombstone time.Duration) {
	m.generation++
	m.tombstone = tombstone
	for _, t := range m.tasks {
		if t.state == dispatch.TaskWaiting {
			m.drop(t, tombstone)
		}
	}
}

func (m *model) cleanup() {
	for id, t := range m.tasks {
		if t.ended() && t.expires <= m.now {
			delete(m.tasks, id)
		}
	}
}
