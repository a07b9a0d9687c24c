package dispatch

import (
	"context"
	"errors"
	"sync"

	"github.com/dispatchkit/dispatch/cluster"
)

// relistAfter is how many passes of reap go by before all dead workers are looked at again, whoever has marked them.
const relistAfter = 6

var (
	errWorkerDied = errors.New("the worker died or was cut off")
	errNotSettled = errors.New("dispatch: lost leases could not be settled")
)

// death is one of a worker: the same worker may die more than once.
type death struct {
	id       cluster.WorkerID
	lastSeen int64
}

// reap marks workers dead that are not heard of any more and settles their leases as lost, every SweepInterval. Their
// rows stay, so what a leader leaves undone another one does, who begins anew.
func (t *term) reap(ctx context.Context) {
	settled := make(map[death]bool) // false: known, and not all of its leases are settled
	for pass, list := 0, true; ctx.Err() == nil; pass++ {
		dead, err := t.markDead(ctx, list || pass%relistAfter == 0)
		list = err != nil // some may have been marked all the same
		if err == nil {
			t.d.log.recovered("reap")
			list, err = t.settleDead(ctx, dead, settled)
		}
		if err != nil {
			t.failed(ctx, "reap", err)
		}
		t.d.pause(ctx, soonerThan(t.d.opts.SweepInterval))
	}
}

// markDead marks silent workers dead, if there were others at the last listing. It returns them or, if all says so, all
// dead ones. Only reap calls it.
func (t *term) markDead(ctx context.Context, all bool) ([]*cluster.Worker, error) {
	var dead []*cluster.Worker
	if t.others && t.d.steady() {
		var err error
		if dead, err = t.d.registry.ReapDeadWorkers(ctx, t.d.opts.StaleJobThreshold); err != nil {
			return nil, err
		}
	}
	if !all {
		return dead, nil
	}
	workers, err := t.d.registry.ListWorkers(ctx)
	if err != nil {
		return nil, err
	}
	dead, t.others = nil, false
	for _, w := range workers {
		if w.State == cluster.StateDead {
			dead = append(dead, w)
		} else if w.ID != t.d.worker {
			t.others = true
		}
	}
	return dead, nil
}

// settleDead gives away what dead workers hold, unless that was done, and says whether to list the dead again soon:
// because something is left, or because another leader may have marked some at the same time.
func (t *term) settleDead(ctx context.Context, dead []*cluster.Worker, settled map[death]bool) (again bool, err error) {
	var ids []cluster.WorkerID
	news := false
	for _, w := range dead {
		over, known := settled[death{w.ID, w.LastSeen.UnixMilli()}]
		if w.ID == t.d.worker || over { // this process registers again by itself
			continue
		}
		ids = append(ids, w.ID)
		settled[death{w.ID, w.LastSeen.UnixMilli()}] = false
		news = news || !known
	}
	if len(ids) == 0 {
		return false, nil
	}
	tasks, err := t.settleHeld(ctx, ids)
	if news || tasks > 0 {
		t.d.log.Warn("dispatch: workers are dead; their tasks are given to others", "dead_workers", ids, "tasks", tasks)
	}
	if news { // once: one queue that fails, again and again, is not to keep verify from all others
		select {
		case t.died <- struct{}{}:
		default:
		}
	}
	if err != nil {
		return true, err
	}
	for _, w := range dead {
		settled[death{w.ID, w.LastSeen.UnixMilli()}] = true
	}
	return true, nil
}

// settleHeld settles all leases of dead workers. A queue with a lease is noted, unless its note was lost with one of
// these workers in its last seconds: then its leases end by themselves.
func (t *term) settleHeld(ctx context.Context, ids []cluster.WorkerID) (tasks int, err error) {
	hints, err := t.d.store.Hints(ctx, maxSchedule)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex // guards tasks and err
	each(ctx, hints, func(h Hint) {
		n, e := t.settleHeldIn(ctx, h.Queue, ids)
		mu.Lock()
		tasks += n
		err = errors.Join(err, e)
		mu.Unlock()
	})
	return tasks, errors.Join(err, ctx.Err())
}

// settleHeldIn settles dead workers' leases of one queue.
func (t *term) settleHeldIn(ctx context.Context, queue string, ids []cluster.WorkerID) (tasks int, err error) {
	d := t.d
	for cursor := uint64(0); ; {
		leases, next, err := d.store.HeldLeases(ctx, queue, ids, cursor)
		if err != nil {
			return tasks, err
		}
		if leases, err = t.stillDead(ctx, leases); err != nil {
			return tasks, err
		}
		settings, err := d.settingsOf(ctx, queue, len(leases) > 0)
		if isNotFound(err) {
			return tasks, nil // deleted meanwhile
		}
		if err != nil {
			return tasks, err
		}
		for len(leases) > 0 {
			part := leases[:min(len(leases), sweepBatch)]
			leases = leases[len(part):]
			if !d.loseLeases(queue, part, settings, errWorkerDied) {
				return tasks, errNotSettled
			}
			tasks += len(part)
		}
		if cursor = next; cursor == 0 {
			return tasks, nil
		}
	}
}

// stillDead drops the leases of workers that have come back: they are their own again.
func (t *term) stillDead(ctx context.Context, leases []Leased) (dead []Leased, err error) {
	alive := make(map[cluster.WorkerID]bool)
	for _, l := range leases {
		lives, known := alive[l.Worker]
		if !known {
			w, err := t.d.registry.GetWorker(ctx, l.Worker)
			if err != nil && !errors.Is(err, ErrWorkerNotFound) {
				return nil, err
			}
			lives = err == nil && w.State != cluster.StateDead
			alive[l.Worker] = lives
		}
		if !lives {
			dead = append(dead, l)
		}
	}
	return dead, nil
}
