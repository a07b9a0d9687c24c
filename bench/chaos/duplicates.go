package main

import (
	"cmp"
	"slices"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// duplicates counts attempts that a receiver saw although it had seen one before that did not ask for another: one whose worker died
// or lost its lease, of which nobody knows the end, or which had succeeded before a failover forgot that. Repetitions that a failure
// or a release has asked for are none. The checker takes less for a duplicate, as it also takes a lost lease for an explanation.
func duplicates(h *audit.History) int {
	type attempt struct {
		token   int64
		outcome string
	}
	started := map[audit.TaskKey][]*attempt{}
	byToken := map[audit.TaskKey]map[int64]*attempt{}
	of := func(e *audit.Event) *attempt {
		tokens := byToken[e.Task()]
		if tokens == nil {
			tokens = map[int64]*attempt{}
			byToken[e.Task()] = tokens
		}
		if tokens[e.Token] == nil {
			tokens[e.Token] = &attempt{token: e.Token}
		}
		return tokens[e.Token]
	}
	for i := range h.Events {
		switch e := &h.Events[i]; {
		case e.Kind == audit.KindStart:
			started[e.Task()] = append(started[e.Task()], of(e))
		case e.Kind == audit.KindOutcome && e.Token > 0 && e.Outcome != audit.OutcomeDiscarded:
			of(e).outcome = e.Outcome
		}
	}
	n := 0
	for _, attempts := range started {
		slices.SortFunc(attempts, func(a, b *attempt) int { return cmp.Compare(a.token, b.token) })
		for _, before := range attempts[:len(attempts)-1] {
			switch before.outcome {
			case "", audit.OutcomeLeaseLost, audit.OutcomeSucceeded:
				n++
			}
		}
	}
	return n
}
