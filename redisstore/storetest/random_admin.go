package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
)

// someTask is the ID of a task in whatever state, and what the model knows of it: nothing when there is no task at all. While
// a call is on its way it is often the one that this is about.
func (r *random) someTask() (id string, t *modelTask) {
	if r.nested && r.focus != "" && r.IntN(2) == 0 {
		return r.focus, r.model.tasks[r.focus]
	}
	var ids []string
	for id := range r.model.tasks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	id = "none"
	if len(ids) > 0 {
		id = pick(r, ids)
	}
	if !r.nested {
		r.focus = id
	}
	return id, r.model.tasks[id]
}

// same compares an error with the model's.
func (r *random) same(what string, got, want error) {
	r.Helper()
	if !errors.Is(got, want) || want == nil && got != nil {
		r.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

func (r *random) editSome() {
	id, _ := r.someTask()
	size := r.IntN(3)
	r.did("edit task %s to %d bytes", id, size)
	var read *modelTask // what the call goes by
	var want error
	c := &call{steps: []step{
		{transition: "inspect", model: func(bool) { read, want = r.model.read(id) }},
		{transition: "edit", model: func(again bool) {
			if read != nil && !(again && want == nil) { // the store knows by its number what was done
				want = r.model.edit(id, read, size)
			}
		}},
	}}
	err := sent(r, c, func() error {
		return r.store.EditTask(r.ctx, queue, dispatch.TaskID(id), func(t *dispatch.Task) error {
			t.Payload = make([]byte, size)
			return nil
		})
	})
	r.same("edit", err, want)
}

func (r *random) runSome() {
	id, _ := r.someTask()
	r.did("run %s", id)
	var want error
	var token, lost int64
	err := sent(r, by("run_task", func(again bool) {
		if !again || want != nil {
			token, want = r.model.run(id)
		}
	}), func() (err error) {
		lost, err = r.store.RunTask(r.ctx, queue, dispatch.TaskID(id))
		return err
	})
	r.same("run", err, want)
	equal(r.env, "lost", lost, token)
}

func (r *random) rescheduleSome() {
	id, _ := r.someTask()
	delay := r.millis(20 * time.Second)
	r.did("reschedule %s to %v", id, delay)
	var want, err error
	var reply dispatch.EnqueueReply
	got := sent(r, by("reschedule", func(again bool) {
		if again && want == nil {
			reply.Moved, reply.Wait = true, r.model.headWait()
			return
		}
		reply, want = r.model.reschedule(id, delay)
	}), func() (got dispatch.EnqueueReply) {
		got, err = r.store.RescheduleTask(r.ctx, queue, dispatch.Task{ID: dispatch.TaskID(id), Delay: delay})
		return got
	})
	r.same("reschedule", err, want)
	equal(r.env, "rescheduled", got, reply)
}

// cancelSome cancels a task, sometimes with a lease that is not its own.
func (r *random) cancelSome() {
	id, t := r.someTask()
	c := dispatch.Cancellation{ID: dispatch.TaskID(id), Retention: r.millis(time.Minute), Tombstone: r.millis(time.Minute)}
	if len(r.given) > 0 && r.IntN(4) == 0 {
		c.Lease = pick(r, r.given).Lease
	} else if t != nil && t.state == dispatch.TaskRunning {
		c.Lease = t.lease.Lease
		p := progress(r.start.Add(r.model.now), 1)
		c.Progress = &p
	}
	r.did("cancel %s retention %v tombstone %v lease %q", id, c.Retention, c.Tombstone, c.Lease.Fence)
	var want, err error
	var done, ours bool // ours: by this call
	got := sent(r, by("cancel", func(again bool) {
		if !again || !ours {
			done, ours, want = r.model.cancel(c)
		}
	}), func() (cancelled bool) {
		cancelled, err = r.store.CancelTask(r.ctx, queue, c)
		return cancelled
	})
	r.same("cancel", err, want)
	equal(r.env, "cancelled", got, done)
}

func (r *random) purgeAll() {
	if !r.model.exists {
		return
	}
	tombstone := r.millis(time.Minute)
	r.did("purge tombstone %v", tombstone)
	c := by("purge", func(again bool) {
		if !again {
			r.model.purge(tombstone)
		}
	})
	c.alone = true // slices follow
	sent(r, c, func() any {
		r.purge(tombstone)
		return nil
	})
}

func (r *random) pause() {
	if !r.model.exists {
		return
	}
	paused := !r.model.q.Paused && r.IntN(2) == 0
	r.did("paused %v", paused)
	r.ok(sent(r, by("queue_state", func(bool) { r.model.q.Paused = paused }), func() error {
		return r.store.SetState(r.ctx, queue, pausedOr(paused))
	}))
}

func (r *random) cleanupAll() {
	r.did("cleanup")
	c := by("cleanup", func(bool) { r.model.cleanup() })
	c.alone = true // it goes in parts
	sent(r, c, func() any {
		r.clean(1 + r.IntN(5))
		return nil
	})
}

func (r *random) deleteAll() {
	r.did("delete queue")
	existed, gone := false, false
	c := &call{alone: true, steps: []step{ // the name is listed until the end
		{transition: "hmget", model: func(bool) {
			if !gone { // it looks again in the end
				existed = r.model.exists
			}
		}},
		{transition: "unlink", model: func(bool) {
			gone = true
			r.model.reset()
		}},
	}}
	err := sent(r, c, func() error { return r.store.DeleteQueue(r.ctx, queue) })
	var want error
	if !existed {
		want = dispatch.ErrQueueNotFound
	}
	r.same("delete queue", err, want)
	r.advance(time.Millisecond) // tokens rise with time when the queue is gone that counted them
	r.model.now += time.Millisecond
}

func (r *random) changeLimits() {
	if !r.model.exists {
		return
	}
	q, err := r.plain.Queue(r.ctx, queue)
	r.ok(err)
	q.Rate = pick(r, []float64{0, -1, 0.1, 0.5, 5, 300})
	q.Burst = pick(r, []int{0, 1, 3})
	q.MaxConcurrent = pick(r, []int{0, -1, 1, 3, 8})
	r.did("limits rate %v burst %d concurrent %d", q.Rate, q.Burst, q.MaxConcurrent)
	read, want := r.model.changes, false
	got := sent(r, by("queue_replace", func(again bool) {
		if again && want {
			return
		}
		if want = r.model.changes == read; want {
			r.model.change(*q)
		}
	}), func() (replaced bool) {
		replaced, err = r.store.ReplaceQueue(r.ctx, *q)
		return replaced
	})
	r.ok(err)
	equal(r.env, "replaced", got, want)
}
