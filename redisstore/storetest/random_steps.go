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
	w, free := r.worker()
	if !free {
		return
	}
	request := dispatch.SettleRequest{Queue: queue, Worker: w, Items: items}
	if r.IntN(5) > 0 {
		request.Seq = r.nextSeq("settle", queue, request.Worker)
	}
	r.sendSettle(request)
	for request.Seq > 0 && r.often() {
		r.repeatSettle(r.settles[len(r.settles)-1])
	}
}

// someLease is a current lease most of the time, and sometimes one whose task has another by now.
func (r *random) someLease() dispatch.Leased {
	running := r.model.running()
	if len(running) == 0 {
		return pick(r, r.given)
	}
	id := pick(r, running)
	switch r.IntN(8) {
	case 0:
		return pick(r, r.given)
	case 1:
		for _, l := range r.given {
			if string(l.Task.ID) == id {
				return l // the first that it ever had
			}
		}
	}
	return r.model.tasks[id].lease
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
	r.busy[request.Worker] = true
	defer delete(r.busy, request.Worker)
	var want dispatch.SettleReply
	got := sent(r, by("settle", func(again bool) {
		if again && request.Seq > 0 && slices.Contains(want.Applied, true) { // the store remembers it
			want.Moved, want.Wait = true, r.model.headWait()
			return
		}
		want = r.model.settle(request.Items)
	}), func() dispatch.SettleReply { return r.settleAs(request) })
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
	r.busy[s.request.Worker] = true
	defer delete(r.busy, s.request.Worker)
	got := sent(r, by("settle", func(bool) {}), func() dispatch.SettleReply { return r.settleAs(s.request) })
	equal(r.env, "applied again", got.Applied, s.applied)
}

// repeatOld sends something again that was sent before, as a network does that holds a request up: what the store must
// answer the same, or what must do nothing by now.
func (r *random) repeatOld() {
	w, free := r.worker()
	if !free {
		return
	}
	switch r.IntN(4) {
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
		r.aside(func() { equal(r.env, "leased by a late claim", len(r.send(late).Leased), 0) })
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
	var current bool
	got := sent(r, by("extend", func(bool) {
		t := r.model.current(l.Task.ID, l.Lease)
		if current = t != nil; current {
			t.leaseEnd = r.model.now + d
		}
	}), func() []bool { return r.extend(d, l) })
	equal(r.env, "extended", got, []bool{current})
}

// sweepSome settles leases that are over, as the sweep does: with what it read.
func (r *random) sweepSome() {
	const sweeper = "w-sweeper"
	if r.busy[sweeper] {
		return
	}
	limit := 1 + r.IntN(4)
	var want []modelTask // as they were then
	var next time.Duration
	over := sent(r, by("leases", func(bool) {
		want = nil
		for _, t := range r.model.expired() {
			want = append(want, *t)
		}
	}), func() []dispatch.Leased {
		over, n := r.expired(limit)
		next = n
		return over
	})
	r.did("sweep %d of %d", len(over), len(want))
	equal(r.env, "expired", len(over), min(limit, len(want)))
	if r.Failed() {
		return
	}
	for i, l := range over {
		at := slices.IndexFunc(want, func(t modelTask) bool { return t.lease.Lease == l.Lease })
		if at < 0 || want[at].leaseEnd != want[i].leaseEnd {
			r.Fatalf("lease of %s is reported as over, and not %+v", l.Task.ID, want)
		}
		t := want[at]
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
		r.sendSettle(dispatch.SettleRequest{Queue: queue, Worker: sweeper, Seq: r.nextSeq("settle", queue, sweeper), Items: items})
	}
}
