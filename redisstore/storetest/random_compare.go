package storetest

import (
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
)

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
