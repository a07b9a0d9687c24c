package redisstore

import (
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
)

// operators are what is done to a queue with traffic, by one actor each.
func (run *traffic) operators(purges bool) []func(*actor) {
	all := []func(*actor){(*actor).pauses, (*actor).limits, (*actor).edits, (*actor).cancels, (*actor).runs, (*actor).reschedules,
		(*actor).replays, (*actor).deletes, (*actor).lists, (*actor).cleans, (*actor).sweeps}
	if purges {
		all = append(all, (*actor).purges)
	}
	return all
}

// someTask is a task that was there, when it was asked.
func (a *actor) someTask() dispatch.TaskID {
	live := a.ledger.live()
	if len(live) == 0 {
		return "none"
	}
	return live[a.IntN(len(live))]
}

func (a *actor) pauses() {
	a.ok("pause", a.s.SetState(a.ctx, mail, []dispatch.QueueState{dispatch.QueuePaused, dispatch.QueueRunning}[a.IntN(2)]))
	a.ok("resume", a.s.SetState(a.ctx, mail, dispatch.QueueRunning))
}

func (a *actor) limits() {
	q, err := a.s.Queue(a.ctx, mail)
	if !a.ok("queue", err) {
		return
	}
	q.MaxConcurrent, q.Rate, q.Weight = a.IntN(20), []float64{0, 1000, 1e6}[a.IntN(3)], 1+a.IntN(9)
	_, err = a.s.ReplaceQueue(a.ctx, *q)
	a.ok("replace queue", err)
	_, err = a.s.CreateQueue(a.ctx, dispatch.Queue{Name: mail})
	a.ok("create queue", err)
}

func (a *actor) edits() {
	err := a.s.EditTask(a.ctx, mail, a.someTask(), func(t *dispatch.Task) error {
		t.Payload = append(t.Payload, 'x')
		return nil
	})
	a.ok("edit", err, dispatch.ErrTaskNotFound, dispatch.ErrNotWaiting, dispatch.ErrConflict)
}

// cancels ends a task that waits or runs. What is cancelled stays, so that who cancels it again is told so.
func (a *actor) cancels() {
	c := dispatch.Cancellation{ID: a.someTask(), Retention: 24 * time.Hour, Tombstone: time.Hour}
	if held, err := a.s.Lease(a.ctx, mail, c.ID); a.ok("lease", err) && held != nil {
		c.Lease = held.Lease
	}
	cancelled, err := a.s.CancelTask(a.ctx, mail, c)
	if a.ok("cancel", err, dispatch.ErrTaskNotFound, dispatch.ErrTaskEnded) && cancelled {
		a.ledger.cancel(c.ID)
	}
}

func (a *actor) runs() {
	_, err := a.s.RunTask(a.ctx, mail, a.someTask())
	a.ok("run", err, dispatch.ErrTaskNotFound, dispatch.ErrTaskEnded)
}

func (a *actor) reschedules() {
	_, err := a.s.RescheduleTask(a.ctx, mail, dispatch.Task{ID: a.someTask(), Delay: a.after()})
	a.ok("reschedule", err, dispatch.ErrTaskNotFound, dispatch.ErrNotWaiting)
}

// replays brings dead tasks back, under their own IDs or new ones. Under its own ID a task stays known whatever the answer.
func (a *actor) replays() {
	page, _, err := a.s.Tasks(a.ctx, mail, dispatch.TaskDead, "")
	if !a.ok("dead tasks", err) || len(page) == 0 {
		return
	}
	var tasks []dispatch.Replay
	for i := range 1 + a.IntN(3) {
		r := dispatch.Replay{ID: page[a.IntN(len(page))].ID}
		if a.IntN(2) == 0 {
			r.NewID = dispatch.TaskID(fmt.Sprintf("r%x-%d", a.Uint64(), i))
			a.ledger.begin(r.NewID)
		}
		tasks = append(tasks, r)
	}
	// Those without a NewID keep a call from being repeated after a lost answer, so they go alone.
	for _, r := range tasks {
		reply, err := a.s.ReplayTasks(a.ctx, mail, []dispatch.Replay{r})
		if r.NewID == "" {
			a.ok("replay", err, dispatch.ErrUncertain)
		} else if a.ok("replay", err) && reply.Replayed[0] {
			a.ledger.end(r.ID, "a replay")
			a.ledger.store(r.NewID, false)
		}
	}
}

func (a *actor) deletes() {
	ids := []dispatch.TaskID{a.someTask(), a.someTask(), "none"}
	o := dispatch.DeleteOptions{Tombstone: time.Hour, DeadOnly: a.IntN(2) == 0}
	deleted, err := a.s.DeleteTasks(a.ctx, mail, ids, o)
	if !a.ok("delete", err) {
		return
	}
	for i, id := range ids {
		if deleted[i] {
			a.ledger.end(id, "a deletion")
		}
	}
}

// lists reads all there is. What is listed was sent by somebody.
func (a *actor) lists() {
	for state, ids := range a.list(a.s) {
		for _, id := range ids {
			a.ledger.mu.Lock()
			if !a.ledger.begun[id] {
				a.ledger.wrong("task %s is %s and nobody has sent it", id, state)
			}
			a.ledger.mu.Unlock()
		}
	}
	_, err := a.s.Counts(a.ctx, mail)
	a.ok("counts", err)
	_, err = a.s.Look(a.ctx, []string{mail})
	a.ok("look", err)
	_, err = a.s.Rest(a.ctx, []dispatch.Hint{{Queue: mail, Wait: -1}})
	a.ok("rest", err)
}

func (a *actor) cleans() {
	_, err := a.s.Cleanup(a.ctx, mail, 50)
	a.ok("cleanup", err)
}

// sweeps has the time go on and settles what is over, as the leader does, with the lease that it has read.
func (a *actor) sweeps() {
	a.s.advance(4 * time.Second)
	over, _, err := a.s.ExpiredLeases(a.ctx, mail, 10)
	if !a.ok("expired", err) || len(over) == 0 {
		return
	}
	a.seq++
	r := dispatch.SettleRequest{Queue: mail, Worker: "w-sweeper", Seq: a.seq}
	for _, l := range over {
		r.Items = append(r.Items, dispatch.Settlement{ID: l.Task.ID, Lease: l.Lease, Outcome: dispatch.Retry, After: time.Second})
	}
	a.send(r)
}

func (a *actor) purges() {
	if a.IntN(4) == 0 {
		a.ok("purge", a.s.PurgeQueue(a.ctx, mail, time.Hour))
	}
}
