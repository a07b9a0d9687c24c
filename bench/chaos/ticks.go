package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// ticks is a cron entry that fires every second, in a queue of its own, and what is expected of it: each second makes one task,
// however many fire it.
type ticks struct {
	run   *Run
	entry string
	from  time.Time // ticks after it
}

// Ticks schedules an entry that fires every second, from the next one on.
func (r *Run) Ticks(ctx context.Context, entry string) (*ticks, error) {
	err := r.client.Schedule(ctx, dispatch.Entry{Name: entry, Spec: "@every 1s", Task: Work{}.Task(entry)})
	if err != nil {
		return nil, err
	}
	e, err := r.client.Entry(ctx, entry)
	if err != nil {
		return nil, err
	}
	return &ticks{run: r, entry: entry, from: e.Since}, nil
}

// end waits until all ticks of the past are dealt with, for at most limit, and removes the entry. Each of these ticks goes into the
// ledger as a task that was promised, and not before its time: so the checker finds those that are missing or early.
func (t *ticks) end(ctx context.Context, limit time.Duration) error {
	upTo := time.Now()
	err := Until(ctx, limit, "all ticks are dealt with", func() (bool, error) {
		e, err := t.run.client.Entry(ctx, t.entry)
		return err == nil && e.Since.After(upTo), nil // what fails is asked for again
	})
	if err != nil {
		return err
	}
	for tick := t.from.Truncate(time.Second).Add(time.Second); !tick.After(upTo); tick = tick.Add(time.Second) {
		t.run.Promise(t.entry, t.id(tick), tick)
	}
	return t.run.client.DeleteEntry(ctx, t.entry)
}

// Finish ends the entry when its ticks are dealt with, has everything drain, and says how late the latest tick was; a tick that was
// fired as two tasks is an error. It is the end of a scenario.
func (t *ticks) Finish(ctx context.Context, dealt, drained time.Duration) (late time.Duration, err error) {
	if err := t.end(ctx, dealt); err != nil {
		return 0, err
	}
	if err := t.run.Drain(ctx, drained); err != nil {
		return 0, err
	}
	h, err := t.run.History()
	if err != nil {
		return 0, err
	}
	late, err = t.judge(h)
	t.run.Note("ticks were late by at most %v", late)
	return late, err
}

// id is that of the task of a tick, as the product documents it.
func (t *ticks) id(tick time.Time) string { return fmt.Sprintf("%s-%d", t.entry, tick.Unix()) }

// Promise writes that a task has to be delivered which nobody has asked for: that of a tick, at its time.
func (r *Run) Promise(queue, id string, at time.Time) {
	us := at.UnixMicro()
	r.Log.Append(audit.Event{Kind: audit.KindAck, At: us, Queue: queue, ID: id, Named: true, NotBefore: us, Result: audit.AckStored})
}

// judge finds ticks that made several tasks; what starts twice is the checker's. Late is how long after its tick the latest of all
// first starts came.
func (t *ticks) judge(h *audit.History) (late time.Duration, err error) {
	tasks := map[int64]map[string]int{} // by second: starts by ID
	var amiss []error
	for _, e := range h.Events {
		if e.Kind != audit.KindStart || e.Queue != t.entry {
			continue
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(e.ID, t.entry+"-"), "-")
		second, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("task %s of entry %s names no second", e.ID, t.entry)
		}
		if tasks[second] == nil {
			tasks[second] = map[string]int{}
		}
		tasks[second][e.ID]++
		switch n := tasks[second][e.ID]; {
		case n == 1 && len(tasks[second]) == 2:
			amiss = append(amiss, fmt.Errorf("tick %d of entry %s was fired as two tasks", second, t.entry))
		case n == 1:
			late = max(late, time.Duration(e.At)*time.Microsecond-time.Duration(second)*time.Second)
		}
	}
	return late, errors.Join(amiss[:min(len(amiss), 5)]...)
}
