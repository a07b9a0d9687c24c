package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
)

// lossRun is a run of reply-lost, with what its steps share.
type lossRun struct {
	*Run
	losses   *scriptLosses
	desk     string // a paused queue, whose tasks stay where an operator puts them
	config   WorkerConfig
	workers  []*Process
	producer *Process
	names    map[string]int // how many there are with a prefix
	arming   int            // how many replies of a script are lost, if not more
}

// prepare starts workers and a load that keeps them busy with all they do.
func (l *lossRun) prepare(ctx context.Context) (err error) {
	if l.workers, err = l.Workers(ctx, 2, l.config); err != nil {
		return err
	}
	for _, queue := range []string{l.desk, "bin"} {
		if _, err := l.client.EnsureQueue(ctx, dispatch.Queue{Name: queue}); err != nil {
			return err
		}
		if err := l.client.PauseQueue(ctx, queue); err != nil {
			return err
		}
	}
	err = l.client.Schedule(ctx, dispatch.Entry{Name: "steady", Spec: "@every 1s", Task: Work{}.Task("cron")})
	if err != nil {
		return err
	}
	l.producer, err = l.Producer(ctx, Load{
		Queues: []string{"mail", "report", "image", "audio"}, Rate: 400, Seed: l.Rand.Uint64(), Work: 20 * time.Millisecond,
		Timeout: 20 * time.Second, FlakyShare: 0.5, SnoozeShare: 0.1, DelayShare: 0.1, Delay: time.Second, NamedShare: 0.2,
		ExtendShare: 0.1, RetainShare: 0.1, Retain: 500 * time.Millisecond,
	})
	return err
}

// finish lets everything come to its end.
func (l *lossRun) finish(ctx context.Context) error {
	if err := l.producer.Term(); err != nil {
		return err
	}
	if err := l.producer.Wait(ctx); err != nil {
		return err
	}
	for entry, err := range l.client.Entries(ctx) {
		if err != nil {
			return err
		}
		if err := l.client.DeleteEntry(ctx, entry.Name); err != nil {
			return err
		}
	}
	for _, queue := range []string{l.desk, "bin"} {
		if err := l.client.ResumeQueue(ctx, queue); err != nil {
			return err
		}
	}
	if err := l.Quiet(ctx, 20*time.Second, "due", "leased"); err != nil {
		return err
	}
	if _, err := l.client.DeleteDead(ctx, "grave", dispatch.Filter{}); err != nil {
		return err
	}
	if err := l.Quiet(ctx, 20*time.Second, "done"); err != nil { // what was retained
		return err
	}
	return l.Drain(ctx, 20*time.Second)
}

// fresh is a new name, and last the newest one with that prefix.
func (l *lossRun) fresh(prefix string) string {
	l.names[prefix]++
	return l.last(prefix)
}

func (l *lossRun) last(prefix string) string { return fmt.Sprintf("%s-%d", prefix, l.names[prefix]) }

// task puts a task on the desk.
func (l *lossRun) task(ctx context.Context) (dispatch.TaskID, error) {
	return l.client.Enqueue(ctx, Work{}.Task(l.desk))
}

// onTask is a call that does something to a new task on the desk.
func onTask(do func(l *lossRun, ctx context.Context, id dispatch.TaskID) error) func(*lossRun, context.Context) error {
	return func(l *lossRun, ctx context.Context) error {
		id, err := l.task(ctx)
		if err != nil {
			return err
		}
		return do(l, ctx, id)
	}
}

// purge fills a paused queue and empties it.
func (l *lossRun) purge(ctx context.Context) error {
	tasks := make([]dispatch.Task, 20)
	for i := range tasks {
		tasks[i] = Work{}.Task("bin")
	}
	if _, err := l.client.EnqueueMany(ctx, tasks); err != nil {
		return err
	}
	return l.client.PurgeQueue(ctx, "bin")
}

// tear takes a task out of its index by hand, and looks at the queue as the leader does, who puts it back.
func (l *lossRun) tear(ctx context.Context, id dispatch.TaskID) error {
	raw, err := l.Raw()
	if err != nil {
		return err
	}
	defer raw.Close()
	if err := raw.ZRem(ctx, key(l.desk, "due"), string(id)).Err(); err != nil {
		return err
	}
	if _, err := l.store.Look(ctx, []string{l.desk}); err != nil {
		return err
	}
	return raw.ZScore(ctx, key(l.desk, "due"), string(id)).Err()
}

// arrive adds a worker.
func (l *lossRun) arrive(ctx context.Context) error {
	w, err := l.Worker(ctx, l.config)
	if err == nil {
		l.workers = append(l.workers, w)
	}
	return err
}

// depart has the newest worker stop in order; if only two are left, one arrives first.
func (l *lossRun) depart(ctx context.Context) error {
	if len(l.workers) < 3 {
		if err := l.arrive(ctx); err != nil {
			return err
		}
	}
	w := l.workers[len(l.workers)-1]
	l.workers = l.workers[:len(l.workers)-1]
	if err := w.Term(); err != nil {
		return err
	}
	return w.Wait(ctx)
}

// crash kills the worker that leads, puts another one in its place, and returns when another term has begun. What the killed one
// left behind may run twice.
func (l *lossRun) crash(ctx context.Context) error {
	raw, err := l.Raw()
	if err != nil {
		return err
	}
	defer raw.Close()
	victim := -1
	err = Until(ctx, 10*time.Second, "a worker leads", func() (bool, error) {
		leader := raw.Get(ctx, key("~", "leader")).Val()
		victim = slices.IndexFunc(l.workers, func(w *Process) bool { return leader != "" && w.Worker() == leader })
		return victim >= 0, nil
	})
	if err != nil {
		return err
	}
	term, w := raw.Get(ctx, key("~", "term")).Val(), l.workers[victim]
	w.Kill()
	left, err := l.LeftBy(ctx, w)
	if err != nil {
		return err
	}
	l.Allow(left)
	if l.workers[victim], err = l.Worker(ctx, l.config); err != nil {
		return err
	}
	return Until(ctx, 10*time.Second, "another term begins", func() (bool, error) {
		return raw.Get(ctx, key("~", "term")).Val() != term, nil
	})
}
