package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

const (
	// spreadInterval is how often the plan is made anew from what is known of backlogs.
	spreadInterval = 5 * time.Second
	// maxSpread bounds the queues with a backlog that one plan spreads, and is counted for.
	maxSpread = 50
	// backlogPerHome is how many times a home's concurrency of tasks may be ready before the queue gets another home.
	backlogPerHome = 4
)

// plan publishes who looks at which queue first, whenever workers come or go, or a backlog grows or is gone.
func (t *term) plan(ctx context.Context) {
	if t.number == 0 {
		return // without an elector everybody makes a plan of their own
	}
	var live, last *cluster.Plan
	began, listedAt := t.d.opts.Clock.Now(), time.Time{}
	for list := true; ctx.Err() == nil; {
		if now := t.d.opts.Clock.Now(); list || now.Sub(listedAt) >= planInterval {
			workers, err := t.d.registry.ListWorkers(ctx)
			if err != nil {
				t.failed(ctx, "plan", err)
				t.d.pause(ctx, soonerThan(spreadInterval))
				continue
			}
			listedAt = now
			live, list = t.d.planOf(workers)
			list = list || now.Sub(began) < planInterval // who fell silent together with the last leader
		}
		next := &cluster.Plan{Term: t.number, Workers: live.Workers, Spread: t.spread(ctx, live)}
		if last == nil || !next.Same(last) {
			if last != nil {
				next.Revision = last.Revision + 1
			}
			if t.publish(ctx, next) {
				last = next
			}
		}
		if t.d.pauseOr(ctx, soonerThan(spreadInterval), t.d.workersHeard) {
			list = true
		}
	}
}

// publish stores a plan for all, and says whether it could.
func (t *term) publish(ctx context.Context, plan *cluster.Plan) bool {
	if err := t.d.store.PublishPlan(ctx, plan); err != nil {
		t.failed(ctx, "plan", err)
		return false
	}
	t.d.log.recovered("plan")
	if t.d.adopt(plan) {
		t.d.readNotes(ctx, 0)
	}
	return true
}

// spread gives queues whose backlog is more than their home can soon work off further homes. Only queues that were noted
// as due for a while are counted.
func (t *term) spread(ctx context.Context, live *cluster.Plan) map[string]int {
	if len(live.Workers) < 2 {
		return nil
	}
	concurrency := 0
	for _, w := range live.Workers {
		concurrency += max(w.Concurrency, 1)
	}
	perHome := backlogPerHome * max(concurrency/len(live.Workers), 1)
	var overdue []Hint
	notes, _ := t.d.lastNotes()
	for _, h := range notes {
		if -h.Wait >= forgottenAfter && len(overdue) < maxSpread {
			overdue = append(overdue, h)
		}
	}
	var mu sync.Mutex // guards homes
	homes := make(map[string]int)
	each(ctx, overdue, func(h Hint) {
		counts, err := t.d.store.Counts(ctx, h.Queue)
		if err != nil {
			if !errors.Is(err, ErrQueueNotFound) {
				t.failed(ctx, "plan", err)
			}
			return
		}
		if n := homesFor(counts.Ready, int64(perHome), len(live.Workers)); n > 1 {
			mu.Lock()
			homes[h.Queue] = n
			mu.Unlock()
		}
	})
	return homes
}

// homesFor is how many homes a backlog asks for: a power of two, so that it does not change with every task, and no more
// than there are workers.
func homesFor(ready, perHome int64, workers int) int {
	n := 1
	for n < workers && ready > perHome*int64(n) {
		n *= 2
	}
	return min(n, workers)
}
