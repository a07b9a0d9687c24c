package dispatch

import (
	"context"
	"errors"
	"sync"

	"github.com/dispatchkit/dispatch/cluster"
)

var errWorkerDied = errors.New("the worker died or was cut off")

// grave is a worker's death: the same worker may die more than once.
type grave struct {
	id       cluster.WorkerID
	lastSeen int64
}

// reap marks workers dead that are not heard of any more and settles their leases as lost, every SweepInterval. The rows
// stay until all leases are settled, so a leader that dies on the way is followed by one that begins anew.
func (t *term) reap(ctx context.Context) {
	buried := make(map[grave]bool)
	for list := true; ctx.Err() == nil; {
		if list || t.d.hasPeers() {
			dead, err := t.dead(ctx, list)
			if err != nil {
				t.failed(ctx, "reap", err)
				list = true // some may have been marked
			} else {
				t.d.log.recovered("reap")
				list = t.buryAll(ctx, dead, !list, buried) // again, if something was left
			}
		}
		t.d.pause(ctx, soonerThan(t.d.opts.SweepInterval))
	}
}

// dead returns workers that are dead: those that it has just marked, and if all says so those marked before.
func (t *term) dead(ctx context.Context, all bool) ([]*cluster.Worker, error) {
	var dead []*cluster.Worker
	if t.d.steady() {
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
	dead = dead[:0]
	for _, w := range workers {
		if w.State == cluster.StateDead {
			dead = append(dead, w)
		}
	}
	return dead, nil
}

// buryAll gives away what dead workers hold, and says whether some of it is left. They are fresh if nobody can have done
// so before.
func (t *term) buryAll(ctx context.Context, dead []*cluster.Worker, fresh bool, buried map[grave]bool) (left bool) {
	for _, w := range dead {
		g := grave{w.ID, w.LastSeen.UnixMilli()}
		if buried[g] || w.ID == t.d.worker { // this process registers again by itself
			continue
		}
		n, err := t.bury(ctx, w.ID)
		if err != nil {
			t.failed(ctx, "reap", err)
			left = true
			continue
		}
		buried[g] = true
		if n > 0 || fresh {
			t.d.log.Warn("dispatch: a worker is dead; its tasks are given to others", "dead_worker", w.ID,
				"hostname", w.Hostname, "last_seen", w.LastSeen, "tasks", n)
		}
		select {
		case t.died <- struct{}{}:
		default:
		}
	}
	return left
}

// bury settles all leases of a dead worker. Every queue with a lease is noted, so queues that are not need no look.
func (t *term) bury(ctx context.Context, id cluster.WorkerID) (tasks int, err error) {
	hints, err := t.d.store.Hints(ctx, maxSchedule)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex // guards tasks and err
	each(ctx, hints, func(h Hint) {
		n, e := t.buryQueue(ctx, id, h.Queue)
		mu.Lock()
		tasks += n
		err = errors.Join(err, e)
		mu.Unlock()
	})
	return tasks, err
}

// buryQueue settles a dead worker's leases of one queue.
func (t *term) buryQueue(ctx context.Context, id cluster.WorkerID, queue string) (tasks int, err error) {
	d := t.d
	for cursor := uint64(0); ; {
		leases, next, err := d.store.HeldLeases(ctx, queue, id, cursor)
		if err != nil {
			return tasks, err
		}
		if len(leases) > 0 {
			if alive, err := d.isAlive(ctx, id); alive || err != nil {
				return tasks, err // it has come back, and its leases are its own again
			}
			settings, err := d.settingsOf(ctx, queue, true)
			if err != nil {
				return tasks, err
			}
			for len(leases) > 0 {
				part := leases[:min(len(leases), sweepBatch)]
				leases = leases[len(part):]
				if !d.loseLeases(queue, part, settings, errWorkerDied) {
					return tasks, ctx.Err()
				}
				tasks += len(part)
			}
		}
		if cursor = next; cursor == 0 {
			return tasks, nil
		}
	}
}

func (d *Dispatcher) isAlive(ctx context.Context, id cluster.WorkerID) (bool, error) {
	w, err := d.registry.GetWorker(ctx, id)
	if errors.Is(err, ErrWorkerNotFound) {
		return false, nil
	}
	return err == nil && w.State != cluster.StateDead, err
}
