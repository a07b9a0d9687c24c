package storetest

import (
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
)

// pass lets time go by: mostly a little, sometimes so much that leases end.
func (r *random) pass() {
	d := r.millis(4 * time.Second)
	if r.IntN(6) == 0 {
		d = r.millis(3 * time.Minute)
	}
	r.did("advance %v", d)
	r.advance(d)
	r.model.now += d
}

// settleSome sends outcomes of leases, current and stale ones.
func (r *random) settleSome() {
	if len(r.given) == 0 {
		return
	}
	var items []dispatch.Settlement
	for range 1 + r.IntN(4) {
		items = append(items, r.outcomeOf(r.someLease()))
	}
	request := dispatch.SettleRequest{Queue: queue, Worker: pick(r, workers), Items: items}
	if r.IntN(5) > 0 {
		request.Seq = r.nextSeq("settle", queue, request.Worker)
	}
	r.sendSettle(request)
	for request.Seq > 0 && r.often() {
		r.repeatSettle(r.settles[len(r.settles)-1])
	}
}

// someLease is a current lease most of the time.
func (r *random) someLease() dispatch.Leased {
	if running := r.model.running(); len(running) > 0 && r.IntN(4) > 0 {
		return r.model.tasks[pick(r, running)].lease
	}
	return pick(r, r.given)
}

// running are the IDs of the tasks under a lease, in an order that the seed decides.
func (m *model) running() []string {
	var ids []string
	for id, t := range m.tasks {
		if t.state == dispatch.TaskRunning {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (r *random) outcomeOf(l dispatch.Leased) dispatch.Settlement {
	s := ended(l, pick(r, allOutcomes), r.millis(time.Minute))
	if l.Named && (s.Outcome == dispatch.Succeeded || s.Outcome == dispatch.Dead) {
		s.Tombstone = r.millis(time.Minute)
	}
	s.GivenBack = r.IntN(2) == 0
	if r.IntN(2) == 0 {
		p := progress(l.At, 1+r.IntN(3))
		s.Progress = &p
	}
	return s
}

func (r *random) sendSettle(request dispatch.SettleRequest) {
	for _, s := range request.Items {
		r.did("settle %s #%d: %s %s after %v tombstone %v", request.Worker, request.Seq, s.ID, s.Outcome, s.After, s.Tombstone)
	}
	want := r.model.settle(request.Items)
	got := r.settleAs(request)
	equal(r.env, "applied", got.Applied, want.Applied)
	equal(r.env, "dropped", got.Dropped, want.Dropped)
	equal(r.env, "moved", got.Moved, want.Moved)
	if want.Moved {
		equal(r.env, "wait", got.Wait, want.Wait)
	}
	if request.Seq > 0 {
		r.settles = append(r.settles, sentSettle{request: request, applied: want.Applied, at: r.model.now})
	}
}

func (r *random) repeatSettle(s sentSettle) {
	r.did("repeat settle %s #%d", s.request.Worker, s.request.Seq)
	equal(r.env, "applied again", r.settleAs(s.request).Applied, s.applied)
}

// repeatOld sends something again that was sent before, as a network does that holds a request up: what the store must
// answer the same, or what must do nothing by now.
func (r *random) repeatOld() {
	switch w := pick(r, workers); r.IntN(4) {
	case 0:
		if len(r.last) > 0 {
			r.submitBatch(r.last)
		}
	case 1:
		if c := r.claims[w]; c != nil && r.model.now-c.at < remembered {
			r.repeatClaim(c)
		}
	case 2:
		c := r.claims[w]
		if c == nil || r.model.now-c.at >= remembered || !r.model.exists {
			return
		}
		late := c.request
		late.Seq--
		r.did("late claim %s #%d", w, late.Seq)
		equal(r.env, "leased by a late claim", len(r.send(late).Leased), 0)
	case 3:
		// Only a worker's last settle is remembered.
		for i := len(r.settles) - 1; i >= 0; i-- {
			if s := r.settles[i]; s.request.Worker == w {
				if r.model.now-s.at < remembered {
					r.repeatSettle(s)
				}
				return
			}
		}
	}
}

func (r *random) extendSome() {
	if len(r.given) == 0 {
		return
	}
	l, d := r.someLease(), r.millis(2*time.Minute)
	r.did("extend %s by %v", l.Task.ID, d)
	t := r.model.current(l.Task.ID, l.Lease)
	equal(r.env, "extended", r.extend(d, l), []bool{t != nil})
	if t != nil {
		t.leaseEnd = r.model.now + d
	}
}

// sweepSome settles leases that are over, as the sweep does: with what it read.
func (r *random) sweepSome() {
	limit := 1 + r.IntN(4)
	over, next := r.expired(limit)
	want := r.model.expired()
	r.did("sweep %d of %d", len(over), len(want))
	equal(r.env, "expired", len(over), min(limit, len(want)))
	if r.Failed() {
		return
	}
	for i, l := range over {
		t := r.model.current(l.Task.ID, l.Lease)
		if t == nil || t.leaseEnd != want[i].leaseEnd {
			r.Fatalf("lease of %s is reported as over: %+v", l.Task.ID, t)
		}
		r.sameProgress("progress", l.Progress, t.progress)
	}
	if len(want) > limit {
		equal(r.env, "next", next, 0)
	}
	var items []dispatch.Settlement
	for _, l := range over {
		items = append(items, ended(l, dispatch.Retry, r.millis(10*time.Second)))
	}
	if len(items) > 0 {
		r.sendSettle(dispatch.SettleRequest{Queue: queue, Worker: "w-sweeper", Seq: r.nextSeq("settle", queue, "w-sweeper"), Items: items})
	}
}

// someTask is the ID of a task in whatever state, and what the model knows of it: nothing when there is no task at all.
func (r *random) someTask() (id string, t *modelTask) {
	var ids []string
	for id := range r.model.tasks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	id = "none"
	if len(ids) > 0 {
		id = pick(r, ids)
	}
	return id, r.model.tasks[id]
}

func (r *random) editSome() {
	id, t := r.someTask()
	size := r.IntN(3)
	r.did("edit task %s to %d bytes", id, size)
	err := r.store.EditTask(r.ctx, queue, dispatch.TaskID(id), func(t *dispatch.Task) error {
		t.Payload = make([]byte, size)
		return nil
	})
	switch {
	case t == nil:
		r.fails("edit", err, dispatch.ErrTaskNotFound)
	case t.state != dispatch.TaskWaiting:
		r.fails("edit", err, dispatch.ErrNotWaiting)
	default:
		r.ok(err)
		t.submission.Payload = make([]byte, size)
	}
}

func (r *random) runSome() {
	id, t := r.someTask()
	r.did("run %s", id)
	lost, err := r.store.RunTask(r.ctx, queue, dispatch.TaskID(id))
	switch {
	case t != nil && t.state != dispatch.TaskWaiting && t.state != dispatch.TaskRunning:
		r.fails("run", err, dispatch.ErrTaskEnded)
	case t == nil, t.generation < r.model.generation:
		r.fails("run", err, dispatch.ErrTaskNotFound)
	default:
		r.ok(err)
		equal(r.env, "lost", lost, t.lease.Lease.Token)
		r.model.run(t)
	}
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
	cancelled, err := r.store.CancelTask(r.ctx, queue, c)
	switch {
	case t == nil:
		r.fails("cancel", err, dispatch.ErrTaskNotFound)
	case t.state == dispatch.TaskSucceeded, t.state == dispatch.TaskDead:
		r.fails("cancel", err, dispatch.ErrTaskEnded)
	case t.state == dispatch.TaskCancelled:
		equal(r.env, "cancelled before", cancelled, true)
	default:
		r.ok(err)
		current := t.state == dispatch.TaskWaiting && c.Lease == dispatch.Lease{} || t.state == dispatch.TaskRunning && t.lease.Lease == c.Lease
		equal(r.env, "cancelled", cancelled, current)
		if current {
			r.model.cancel(t, c)
		}
	}
}

func (r *random) purgeAll() {
	if !r.model.exists {
		return
	}
	tombstone := r.millis(time.Minute)
	r.did("purge tombstone %v", tombstone)
	r.purge(tombstone)
	r.model.purge(tombstone)
}

func (r *random) pause() {
	if !r.model.exists {
		return
	}
	r.model.q.Paused = !r.model.q.Paused && r.IntN(2) == 0
	r.did("paused %v", r.model.q.Paused)
	r.ok(r.store.SetState(r.ctx, queue, pausedOr(r.model.q.Paused)))
}

func (r *random) cleanupAll() {
	r.did("cleanup")
	r.clean(1 + r.IntN(5))
	r.model.cleanup()
}

func (r *random) deleteAll() {
	r.did("delete queue")
	err := r.store.DeleteQueue(r.ctx, queue)
	if r.model.exists {
		r.ok(err)
	} else {
		r.fails("delete queue", err, dispatch.ErrQueueNotFound)
	}
	r.model.reset()
	r.advance(time.Millisecond) // tokens rise with time when the queue is gone that counted them
	r.model.now += time.Millisecond
}

func (r *random) changeLimits() {
	if !r.model.exists {
		return
	}
	r.change(func(q *dispatch.Queue) {
		q.Rate = pick(r, []float64{0, -1, 0.1, 0.5, 5, 300})
		q.Burst = pick(r, []int{0, 1, 3})
		q.MaxConcurrent = pick(r, []int{0, -1, 1, 3, 8})
		r.did("limits rate %v burst %d concurrent %d", q.Rate, q.Burst, q.MaxConcurrent)
		r.model.change(*q)
	})
}

// compare looks at everything.
func (r *random) compare() {
	r.Helper()
	r.ok(r.h.Check(r.ctx, r.store, queue))
	counts, err := r.store.Counts(r.ctx, queue)
	if !r.model.exists {
		r.fails("counts", err, dispatch.ErrQueueNotFound)
		return
	}
	r.ok(err)
	equal(r.env, "counts", counts, r.model.counts())
	seen := make(map[string]bool)
	for _, state := range allStates {
		for _, t := range r.list(state) {
			seen[string(t.ID)] = true
			r.compareTask(t)
		}
	}
	equal(r.env, "tasks listed", len(seen), len(r.model.tasks))
	w := pick(r, workers)
	held := leasedIDs(r.held(w))
	slices.Sort(held)
	equal(r.env, "held by "+string(w), held, r.model.held(w))
	next, leaseEnd := r.model.waits()
	if r.model.q.Paused && r.model.urgent() == 0 {
		next = -1
	}
	hints, err := r.store.Look(r.ctx, []string{queue})
	r.ok(err)
	if wait := soonest(next, leaseEnd); wait < 0 {
		equal(r.env, "looked", len(hints), 0)
	} else {
		equal(r.env, "looked", hints, []dispatch.Hint{hint(queue, wait)})
	}
}

// soonest is the shorter of two waits, of which one below zero is none.
func soonest(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

func (r *random) compareTask(got *dispatch.TaskInfo) {
	r.Helper()
	id := string(got.ID)
	t := r.model.tasks[id]
	if t == nil {
		r.Errorf("task %s is %s and should not be there", id, got.State)
		return
	}
	equal(r.env, "state of "+id, got.State, t.state)
	r.at("creation of "+id, got.CreatedAt, r.start.Add(t.created))
	r.sameProgress("progress of "+id, got.Progress, t.progress)
	switch t.state {
	case dispatch.TaskWaiting:
		r.at("due of "+id, got.Due, r.start.Add(t.due))
	case dispatch.TaskRunning:
		r.at("lease end of "+id, got.LeaseEnd, r.start.Add(t.leaseEnd))
		equal(r.env, "token of "+id, got.Token, t.lease.Lease.Token)
		equal(r.env, "worker of "+id, got.LeasedBy, t.lease.Worker)
	default:
		r.at("expiry of "+id, got.ExpiresAt, r.start.Add(t.expires))
	}
}
