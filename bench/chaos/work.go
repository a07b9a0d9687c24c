package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// taskKind is the kind of all tasks that Go handlers run. What one does is in its payload: see Work.
const taskKind = "work"

// Work is what the handler of a task does, in this order. The zero value succeeds at once.
type Work struct {
	// Gate waits for Process.Open, whatever becomes of the lease.
	Gate bool `json:",omitempty"`
	// For is how long it works. It stops when its context ends, and fails with the reason.
	For time.Duration `json:",omitempty"`
	// Stubborn works on although its context has ended.
	Stubborn bool `json:",omitempty"`
	// Extend asks for as much more time before it ends, also when it is late; the ledger has a note of the answer.
	Extend time.Duration `json:",omitempty"`
	// Result leaves the token of the attempt as the result of the task, which is kept if the task is.
	Result bool `json:",omitempty"`
	// Flaky fails at the first attempt, Snooze puts itself off once on every process that it comes to, Fatal is never to be
	// tried again, Fail fails always.
	Flaky, Snooze, Fatal, Fail bool `json:",omitempty"`
}

// onto gives a task this work, and the kind of those who do it.
func (w Work) onto(t dispatch.Task) dispatch.Task {
	payload, err := json.Marshal(w)
	if err != nil {
		panic(err) // it has no reason to fail
	}
	t.Kind, t.Payload = taskKind, payload
	return t
}

// Task is a task that does this work, in a queue; Timeout 2 s and quick retries.
func (w Work) Task(queue string) dispatch.Task {
	return w.onto(dispatch.Task{Queue: queue, Timeout: 2 * time.Second, Retry: &quickRetry})
}

// ended is how a handler has ended, in the ledger's words.
func ended(err, cause error) string {
	switch {
	case err == nil:
		return audit.EndOK
	case errors.Is(err, errSnoozed):
		return audit.EndSnooze
	case cause != nil:
		return audit.EndCut
	}
	return audit.EndFail
}

var errSnoozed = errors.New("snoozed")

// do does the work of one attempt. snoozed says whether the task is to be put off now.
func (w Work) do(ctx context.Context, gate <-chan struct{}, snoozed func() bool, note func(string)) error {
	if w.Gate {
		<-gate
	}
	if w.For > 0 {
		timer := time.NewTimer(w.For)
		defer timer.Stop()
		stop := ctx.Done()
		if w.Stubborn {
			stop = nil
		}
		select {
		case <-timer.C:
		case <-stop:
			return context.Cause(ctx)
		}
	}
	if w.Extend > 0 {
		note(fmt.Sprint("extend: ", dispatch.Extend(context.WithoutCancel(ctx), w.Extend)))
	}
	attempt, _ := dispatch.AttemptFrom(ctx)
	if w.Result {
		fmt.Fprint(dispatch.ResultWriter(ctx), attempt.Token)
	}
	switch {
	case w.Fatal:
		return dispatch.SkipRetry(errors.New("fatal"))
	case w.Snooze && snoozed():
		return fmt.Errorf("%w: %w", errSnoozed, dispatch.Snooze(10*time.Millisecond))
	case w.Fail, w.Flaky && attempt.Number == 1:
		return errors.New("as the task asks for")
	}
	return nil
}
