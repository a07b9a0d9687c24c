package storetest

import (
	"time"

	"github.com/dispatchkit/dispatch"
)

// What administration does to the model.

// run makes a task due at once, and takes its lease away.
func (m *model) run(t *modelTask) {
	t.state, t.due, t.urgent, t.passed, t.lease = dispatch.TaskWaiting, m.now, true, false, dispatch.Leased{}
}

// cancel ends a task.
func (m *model) cancel(t *modelTask, c dispatch.Cancellation) {
	m.totals.TotalCancelled++
	if c.Progress != nil {
		t.progress = *c.Progress
	}
	if c.Retention == 0 {
		m.drop(t, c.Tombstone)
		return
	}
	t.state, t.expires = dispatch.TaskCancelled, m.now+c.Retention
	m.entomb(t, c.Tombstone)
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
	want.Moved, want.Wait = m.moved(func() {
		for _, r := range tasks {
			t := m.tasks[string(r.ID)]
			dead := t != nil && t.state == dispatch.TaskDead
			want.Replayed = append(want.Replayed, dead)
			if dead {
				m.renew(t, r.NewID)
			}
		}
	})
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
