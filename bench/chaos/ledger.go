package main

import "github.com/dispatchkit/dispatch/bench/chaos/audit"

// ledgerView is what a scenario looks up in the ledger to judge what the checker does not know of.
type ledgerView struct{ *audit.History }

// Ledger is what the ledger holds by now. What a process has done whose Wait has not returned may still be missing.
func (r *Run) Ledger() (ledgerView, error) {
	h, err := audit.Read(r.ledgerDir())
	return ledgerView{h}, err
}

// starts are the starts of each task, in the order of their times.
func (l ledgerView) starts() map[audit.TaskKey][]audit.Event {
	return l.byTask(func(e audit.Event) bool { return e.Kind == audit.KindStart })
}

// byTask are the events that match, by task and in the order of their times.
func (l ledgerView) byTask(match func(audit.Event) bool) map[audit.TaskKey][]audit.Event {
	out := map[audit.TaskKey][]audit.Event{}
	for _, e := range l.Events {
		if e.ID != "" && match(e) {
			out[e.Task()] = append(out[e.Task()], e)
		}
	}
	return out
}

// kills are when processes were killed.
func (l ledgerView) kills() map[string]int64 {
	at := map[string]int64{}
	for _, e := range l.Events {
		if e.Kind == audit.KindFault && e.Fault == faultKill {
			at[e.Target] = e.At
		}
	}
	return at
}
