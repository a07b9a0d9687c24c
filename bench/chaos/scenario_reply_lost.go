package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/faultproxy"
)

func replyLost() Scenario {
	return Scenario{
		Name: "reply-lost",
		Doc: "the connection is lost after a script ran and before its reply arrives, for every script in turn: every call still succeeds, " +
			"and everything is done once",
		Bound: Bound{Recovery: 3 * time.Second, Duplicates: (*Run).Allowed, Unexplained: (*Run).Allowed},
		Run:   runReplyLost,
	}
}

// lossStep is one script whose reply is lost, and what makes somebody call it. Calls that workers make by themselves have no
// call of their own.
type lossStep struct {
	script string
	call   func(l *lossRun, ctx context.Context) error
}

// lossSteps are all scripts, in an order in which each finds what it needs.
var lossSteps = []lossStep{
	{"queue_create", func(l *lossRun, ctx context.Context) error {
		_, err := l.client.EnsureQueue(ctx, dispatch.Queue{Name: l.fresh("made")})
		return err
	}},
	{"queue_state", func(l *lossRun, ctx context.Context) error { return l.client.PauseQueue(ctx, l.desk) }},
	{"queue_replace", func(l *lossRun, ctx context.Context) error {
		return l.client.UpdateQueue(ctx, l.desk, func(q *dispatch.Queue) error { q.Weight = 1 + l.Rand.IntN(9); return nil })
	}},
	{"enqueue", func(l *lossRun, ctx context.Context) error { _, err := l.task(ctx); return err }},
	{"announce", func(l *lossRun, ctx context.Context) error {
		_, err := l.client.Enqueue(ctx, Work{}.Task(l.fresh("told")))
		return err
	}},
	{"inspect", onTask(func(l *lossRun, ctx context.Context, id dispatch.TaskID) error {
		_, err := l.client.Task(ctx, l.desk, id)
		return err
	})},
	{"edit", onTask(func(l *lossRun, ctx context.Context, id dispatch.TaskID) error {
		return l.client.EditTask(ctx, l.desk, id, func(t *dispatch.Task) error {
			t.Metadata = map[string]string{"edited": "yes"}
			return nil
		})
	})},
	{"reschedule", onTask(func(l *lossRun, ctx context.Context, id dispatch.TaskID) error {
		return l.client.RescheduleTask(ctx, l.desk, id, time.Now().Add(time.Second))
	})},
	{"run_task", onTask(func(l *lossRun, ctx context.Context, id dispatch.TaskID) error {
		return l.client.RunTask(ctx, l.desk, id)
	})},
	{"cancel", onTask(func(l *lossRun, ctx context.Context, id dispatch.TaskID) error {
		return l.client.CancelTask(ctx, l.desk, id)
	})},
	{"delete", onTask(func(l *lossRun, ctx context.Context, id dispatch.TaskID) error {
		return except(l.client.DeleteTask(ctx, l.desk, id), dispatch.ErrTaskNotFound)
	})},
	{"repair", onTask((*lossRun).tear)},
	{"counts", func(l *lossRun, ctx context.Context) error { _, err := l.client.Counts(ctx, l.desk); return err }},
	{"await", func(l *lossRun, ctx context.Context) error {
		task := Work{For: 50 * time.Millisecond}.Task("mail")
		task.Retention = 10 * time.Second
		id, err := l.client.Enqueue(ctx, task)
		if err != nil {
			return err
		}
		_, err = l.client.Wait(ctx, "mail", id)
		return err
	}},
	{"replay", func(l *lossRun, ctx context.Context) error {
		id, err := l.client.Enqueue(ctx, Work{Fatal: true}.Task("grave"))
		if err != nil {
			return err
		}
		if _, err := l.client.Wait(ctx, "grave", id); err != nil {
			return err
		}
		_, err = l.client.ReplayTasks(ctx, "grave", []dispatch.TaskID{id}, dispatch.ReplayOptions{})
		return except(err, dispatch.ErrUncertain)
	}},
	{"purge", (*lossRun).purge}, {"purge_slice", (*lossRun).purge},
	{"cron_put", func(l *lossRun, ctx context.Context) error {
		return l.client.Schedule(ctx, dispatch.Entry{Name: l.fresh("tick"), Spec: "@every 1s", Task: Work{}.Task("cron")})
	}},
	{"cron_pause", func(l *lossRun, ctx context.Context) error { return l.client.PauseEntry(ctx, l.last("tick")) }},
	{"cron_delete", func(l *lossRun, ctx context.Context) error {
		return except(l.client.DeleteEntry(ctx, l.last("tick")), dispatch.ErrEntryNotFound) // not documented, and as with DeleteTask
	}},
	{"worker_read", func(l *lossRun, ctx context.Context) error { _, err := l.store.ListWorkers(ctx); return err }},
	{"worker_register", (*lossRun).arrive},
	{"worker_remove", (*lossRun).depart},
	{"claim", nil}, {"settle", nil}, {"extend", nil}, {"leases", nil}, {"hints", nil}, {"rest", nil}, {"look", nil}, {"cleanup", nil},
	{"cron_due", nil}, {"cron_advance", nil}, {"worker_beat", nil}, {"worker_reap", nil}, {"plan_publish", nil}, {"term_begin", (*lossRun).crash},
	{"worker_sweep", func(l *lossRun, ctx context.Context) error {
		_, err := l.store.DeleteStaleWorkers(ctx, 2*lossStale) // of those that have crashed, once they are known to be dead
		return err
	}},
}

// except drops an error that the product documents for calls whose answer was lost.
func except(err, documented error) error {
	if errors.Is(err, documented) {
		return nil
	}
	return err
}

// lossStale is after which silence workers are dead in this scenario.
const lossStale = 2 * time.Second

// runReplyLost arms the losses of the calls that processes make by themselves at once, as each has to wait for its time, and the
// others one after the other.
func runReplyLost(ctx context.Context, r *Run) error {
	l := &lossRun{
		Run: r, losses: newScriptLosses(), desk: "desk", names: map[string]int{}, arming: Pick(r, 1, 5),
		config: WorkerConfig{
			Heartbeat: 400 * time.Millisecond, Stale: lossStale, Reconcile: 500 * time.Millisecond, Cleanup: 500 * time.Millisecond,
			Retention: 0, RetentionFailed: 30 * time.Second, LeaderTTL: time.Second,
		},
	}
	r.Fault("reply-lost", r.Set.Primary().Addr())
	r.Set.Primary().Proxy().Lose(faultproxy.Loss{Reply: true, Match: l.losses.match}) // from the start: it learns the scripts by it
	if err := l.prepare(ctx); err != nil {
		return err
	}
	for _, step := range lossSteps {
		if step.call == nil {
			l.losses.arm(step.script, l.many(step.script))
		}
	}
	for _, step := range lossSteps {
		if step.call == nil {
			continue
		}
		if err := l.lose(ctx, step); err != nil {
			return err
		}
	}
	for _, step := range lossSteps {
		err := Until(ctx, 15*time.Second, "replies of "+step.script+" are lost", func() (bool, error) {
			return l.losses.pending(step.script) == 0, nil
		})
		if err != nil {
			return err
		}
		r.Note("%s: %d replies lost", step.script, l.losses.disarm(step.script))
	}
	r.Set.Primary().Proxy().Lose(faultproxy.Loss{})
	if err := r.Recovered(ctx); err != nil {
		return err
	}
	return l.finish(ctx)
}

// many is how many replies of a script are lost.
func (l *lossRun) many(script string) int {
	switch script {
	case "worker_sweep":
		return 1 // it takes long to find something
	case "claim", "settle":
		return 100 * l.arming
	case "extend":
		return 5 * l.arming
	}
	return l.arming
}

// lose arms the loss of a script's reply and has it called until it was lost.
func (l *lossRun) lose(ctx context.Context, step lossStep) error {
	for range l.many(step.script) {
		begun := time.Now()
		l.losses.arm(step.script, 1)
		err := Until(ctx, 15*time.Second, "a reply of "+step.script+" is lost", func() (bool, error) {
			if err := step.call(l, ctx); err != nil {
				return false, fmt.Errorf("%s: %w", step.script, err)
			}
			return l.losses.pending(step.script) == 0, nil
		})
		if err != nil {
			return err
		}
		l.Note("a reply of %s was lost, in %v", step.script, time.Since(begun).Round(time.Millisecond))
	}
	return nil
}
