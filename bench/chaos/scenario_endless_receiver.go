package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

func endlessReceiver() Scenario {
	return Scenario{
		Name: "endless-receiver",
		Doc: "tasks go to receivers that never answer, send a byte a second, answer when the deadline has passed, or close half-way, more " +
			"of them than their queue may have places: each has as many attempts as it may and dies, and other queues hardly wait",
		Run: runEndlessReceiver,
	}
}

// The receivers that do not come to an end. All their tasks are in one queue, as it is a queue that leaves places to others.
var endless = map[string]func(*receiver, http.ResponseWriter, *http.Request) string{
	"never": answerNever, "late": answerLate(endlessTimeout + 1500*time.Millisecond),
	"drip-head": dripHead, "drip-body": dripBody, "closes": closeInHead,
}

const (
	endlessQueue    = "endless"
	endlessTimeout  = 2500 * time.Millisecond
	endlessAttempts = 3
	// hardly is how long tasks of other queues may wait at the most: less than those that hang keep their places.
	hardly = 1500 * time.Millisecond
)

func runEndlessReceiver(ctx context.Context, r *Run) error {
	config := WorkerConfig{AllowPrivate: true, Places: 6}
	if _, err := r.Workers(ctx, 2, config); err != nil {
		return err
	}
	// Three of each, as workers take a receiver for dead after ten attempts in a row without an answer, and then hold others back.
	each := Pick(r, 3, 12)
	for how, answer := range endless {
		rc, err := r.Receiver("receiver-"+how, config.Lease(endlessTimeout), answer)
		if err != nil {
			return err
		}
		var tasks []dispatch.Task
		for range each {
			t := rc.task(endlessQueue)
			t.Retry = &dispatch.RetryConfig{MaxAttempts: endlessAttempts, MinBackoff: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond}
			tasks = append(tasks, t)
		}
		if _, err := r.client.EnqueueMany(ctx, tasks); err != nil {
			return err
		}
	}
	if err := r.othersGoOn(ctx, config.Lease(endlessTimeout)); err != nil {
		return err
	}
	if err := r.Drain(ctx, Pick(r, 20*time.Second, 5*time.Minute)); err != nil {
		return err
	}
	h, err := r.History()
	if err != nil {
		return err
	}
	return errors.Join(attemptsOfEndless(h, each*len(endless)), r.waits(h))
}

// task is one for the receiver.
func (rc *receiver) task(queue string) dispatch.Task {
	return dispatch.Task{Queue: queue, URL: rc.url, Timeout: endlessTimeout, Retry: &quickRetry}
}

// othersGoOn enqueues tasks for a receiver and for handlers that are well while those of the others hang. One receiver closes in the
// middle of the body: its word stands, as the status was there.
func (r *Run) othersGoOn(ctx context.Context, lease time.Duration) error {
	well, err := r.Receiver("receiver-well", lease, answerWell)
	if err != nil {
		return err
	}
	brief, err := r.Receiver("receiver-brief", lease, closeInBody)
	if err != nil {
		return err
	}
	for range Pick(r, 100, 1000) {
		for _, t := range []dispatch.Task{well.task("well"), brief.task("brief"), Work{For: time.Millisecond}.Task("handled")} {
			if _, err := r.client.Enqueue(ctx, t); err != nil {
				return err
			}
		}
		if !Sleep(ctx, time.Duration(20+r.Rand.IntN(60))*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// attemptsOfEndless checks that each task of the endless receivers has reached its receiver as often as it may, that all of these
// attempts were counted, and that it has died.
func attemptsOfEndless(h *audit.History, tasks int) error {
	type attempt struct {
		task  audit.TaskKey
		token int64
	}
	arrived, ends, died := map[audit.TaskKey]int{}, map[attempt]string{}, 0
	for _, e := range h.Events {
		switch {
		case e.Queue != endlessQueue:
		case e.Kind == audit.KindStart:
			arrived[e.Task()]++
			ends[attempt{e.Task(), e.Token}] = ""
		case e.Kind == audit.KindOutcome:
			ends[attempt{e.Task(), e.Token}] = e.Outcome
			if e.Outcome == audit.OutcomeDead {
				died++
			}
		}
	}
	if died != tasks {
		return fmt.Errorf("%d tasks have died, not %d", died, tasks)
	}
	counted := map[audit.TaskKey]int{}
	for a, end := range ends { // what was claimed and given back without a request counts for nothing
		if end == audit.OutcomeRetry || end == audit.OutcomeDead {
			counted[a.task]++
		}
	}
	for task, n := range arrived {
		if n != endlessAttempts || counted[task] != n {
			return fmt.Errorf("task %s has arrived %d times, and %d attempts were counted, not %d", task.ID, n, counted[task], endlessAttempts)
		}
	}
	return nil
}

// waits checks how long the tasks of the other queues have waited for their first attempt.
func (r *Run) waits(h *audit.History) error {
	stored, longest := map[audit.TaskKey]int64{}, time.Duration(0)
	for _, e := range h.Events {
		switch {
		case e.Queue == endlessQueue:
		case e.Kind == audit.KindAck:
			stored[e.Task()] = e.At
		case e.Kind == audit.KindStart && stored[e.Task()] > 0 && e.Attempt == 1:
			longest = max(longest, time.Duration(e.At-stored[e.Task()])*time.Microsecond)
		}
	}
	r.Note("tasks of other queues have waited for %v at the most", longest)
	if longest > hardly {
		return fmt.Errorf("a task of another queue has waited for %v, more than %v", longest, hardly)
	}
	return nil
}
