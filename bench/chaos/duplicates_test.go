package main

import (
	"testing"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

func TestDuplicates(t *testing.T) {
	start := func(token int64) audit.Event {
		return audit.Event{Kind: audit.KindStart, Queue: "q", ID: "t", Token: token}
	}
	outcome := func(token int64, word string) audit.Event {
		return audit.Event{Kind: audit.KindOutcome, Queue: "q", ID: "t", Token: token, Outcome: word}
	}
	for name, c := range map[string]struct {
		events []audit.Event
		want   int
	}{
		"once":                 {[]audit.Event{start(1), outcome(1, audit.OutcomeSucceeded)}, 0},
		"retried and released": {[]audit.Event{start(1), outcome(1, audit.OutcomeRetry), start(2), outcome(2, audit.OutcomeReleased), start(3)}, 0},
		"lease lost":           {[]audit.Event{start(1), outcome(1, audit.OutcomeLeaseLost), start(2)}, 1},
		"never told":           {[]audit.Event{start(1), start(2), outcome(1, audit.OutcomeDiscarded)}, 1},
		"forgotten":            {[]audit.Event{start(1), outcome(1, audit.OutcomeSucceeded), start(2)}, 1},
		"lost before it began": {[]audit.Event{outcome(1, audit.OutcomeLeaseLost), start(2)}, 0},
		"out of order":         {[]audit.Event{outcome(2, audit.OutcomeSucceeded), start(2), outcome(1, audit.OutcomeRetry), start(1)}, 0},
	} {
		if got := duplicates(&audit.History{Events: c.events}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
