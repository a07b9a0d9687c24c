package audit

import (
	"math"
	"slices"
)

// attempt is all that a history tells of one lease.
type attempt struct {
	token     int64
	starts    []*Event
	ends      []*Event
	accepted  []*Event // outcomes that the store has taken
	discarded []*Event
}

func (a *attempt) outcome(e *Event) {
	if e.Outcome == OutcomeDiscarded {
		a.discarded = append(a.discarded, e)
		return
	}
	a.accepted = append(a.accepted, e)
}

func isTerminal(outcome string) bool {
	switch outcome {
	case OutcomeSucceeded, OutcomeDead, OutcomeCancelled, OutcomeDropped, OutcomeDeleted:
		return true
	}
	return false
}

func isCounted(outcome string) bool {
	return outcome == OutcomeRetry || outcome == OutcomeLeaseLost || isTerminal(outcome)
}

// settled is the outcome that was accepted; one that ends the task, if there are several. Nil is not known.
func (a *attempt) settled() *Event {
	if i := slices.IndexFunc(a.accepted, func(e *Event) bool { return isTerminal(e.Outcome) }); i >= 0 {
		return a.accepted[i]
	}
	if len(a.accepted) > 0 {
		return a.accepted[0]
	}
	return nil
}

// terminal is the accepted outcome that ends the task; nil if there is none.
func (a *attempt) terminal() *Event {
	if e := a.settled(); e != nil && isTerminal(e.Outcome) {
		return e
	}
	return nil
}

// events are all that tell of the attempt.
func (a *attempt) events() []*Event {
	return slices.Concat(a.starts, a.ends, a.accepted, a.discarded)
}

// number is the attempt's, as who tells of it first has it; 0 if nobody says.
func (a *attempt) number() int {
	for _, e := range a.events() {
		if e.Attempt > 0 {
			return e.Attempt
		}
	}
	return 0
}

// began is when the attempt was seen first.
func (a *attempt) began() int64 {
	at := int64(math.MaxInt64)
	for _, e := range a.events() {
		at = min(at, e.At)
	}
	return at
}

// claimed is when the lease of a start began. A token is at least the time of its claim in µs, and no more than what is given
// out in that millisecond above it; one that cannot be a time, as in a made-up history, says nothing.
func claimed(start *Event) int64 {
	const longest = 24 * 3600 * 1e6
	if start.Token <= start.At+tokenSlack && start.Token > start.At-longest {
		return min(start.Token, start.At)
	}
	return start.At
}

// tokenSlack is how far a token may be above the time of its claim, in µs.
const tokenSlack = 1000

// lives splits the attempts of a task where its ID may have begun anew.
func (t *task) lives() [][]*attempt {
	var out [][]*attempt
	from := 0
	for i := 1; i < len(t.attempts); i++ {
		p, q := t.attempts[i-1], t.attempts[i]
		over := p.settled() == nil || p.terminal() != nil || t.acted(p.began(), q.began())
		if q.number() <= 1 && over && t.renewed(p.began(), q.began()) {
			out = append(out, t.attempts[from:i])
			from = i
		}
	}
	if len(t.attempts) > 0 {
		out = append(out, t.attempts[from:])
	}
	return out
}
