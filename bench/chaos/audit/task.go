package audit

import (
	"cmp"
	"math"
	"slices"
)

// task is all that a history tells of one task.
type task struct {
	key      TaskKey
	enqueues []enqueue
	attempts []*attempt // by token
	acts     []*Event   // an administrator's faults
	ends     []*Event   // by administration: of this task, or of all of its queue

	byToken map[int64]*attempt
}

// enqueue is one call that asked for the task.
type enqueue struct {
	// The call took place between the two. Without an ask, from is the beginning of time; without a definite answer, to is its
	// end, as the request may still be under way.
	from, to  int64
	ask, ack  *Event // either may be nil
	notBefore int64
}

// result is what the producer knows of it.
func (e *enqueue) result() string {
	if e.ack == nil {
		return AckUncertain
	}
	return e.ack.Result
}

// mayHaveStored says whether it may have created the task.
func (e *enqueue) mayHaveStored() bool { r := e.result(); return r == AckStored || r == AckUncertain }

// index sorts a history by tasks, in the order in which they appear.
func index(h *History) (tasks []*task, all faults) {
	byKey := make(map[TaskKey]*task)
	of := func(key TaskKey) *task {
		t := byKey[key]
		if t == nil {
			t = &task{key: key, byToken: make(map[int64]*attempt)}
			byKey[key] = t
			tasks = append(tasks, t)
		}
		return t
	}
	emptied := make(map[string][]*Event) // queues, by administration
	for i := range h.Events {
		e := &h.Events[i]
		switch {
		case e.Kind == KindNote:
		case e.Kind == KindFault && e.ID == "":
			all = append(all, e)
		case e.ID == "":
			if e.Kind == KindOutcome {
				emptied[e.Queue] = append(emptied[e.Queue], e)
			}
		default:
			of(e.Task()).add(e)
		}
	}
	for _, t := range tasks {
		t.ends = append(t.ends, emptied[t.key.Queue]...)
		slices.SortFunc(t.attempts, func(a, b *attempt) int { return cmp.Compare(a.token, b.token) })
		slices.SortStableFunc(t.enqueues, func(a, b enqueue) int { return cmp.Compare(a.from, b.from) })
	}
	return tasks, all
}

func (t *task) add(e *Event) {
	switch e.Kind {
	case KindAsk:
		t.enqueues = append(t.enqueues, enqueue{from: e.At, to: math.MaxInt64, ask: e, notBefore: e.NotBefore})
	case KindAck:
		t.answer(e)
	case KindFault:
		t.acts = append(t.acts, e)
	case KindOutcome:
		if e.Token == 0 {
			t.ends = append(t.ends, e)
			return
		}
		t.attempt(e.Token).outcome(e)
	case KindStart:
		a := t.attempt(e.Token)
		a.starts = append(a.starts, e)
	case KindEnd:
		a := t.attempt(e.Token)
		a.ends = append(a.ends, e)
	}
}

// answer adds an ack to the oldest ask of its producer that has none. Of several calls at once it is one with the same time.
func (t *task) answer(ack *Event) {
	open := func(e enqueue) bool { return e.ack == nil && e.ask.Who == ack.Who }
	i := slices.IndexFunc(t.enqueues, func(e enqueue) bool { return open(e) && e.notBefore == ack.NotBefore })
	if i < 0 {
		i = slices.IndexFunc(t.enqueues, open)
	}
	if i < 0 {
		t.enqueues = append(t.enqueues, enqueue{notBefore: ack.NotBefore})
		i = len(t.enqueues) - 1
	}
	e := &t.enqueues[i]
	e.ack, e.to = ack, ack.At
	if ack.Result == AckUncertain {
		e.to = math.MaxInt64
	}
}

func (t *task) attempt(token int64) *attempt {
	a := t.byToken[token]
	if a == nil {
		a = &attempt{token: token}
		t.byToken[token] = a
		t.attempts = append(t.attempts, a)
	}
	return a
}

// starts are all starts of all attempts.
func (t *task) starts() []*Event {
	var out []*Event
	for _, a := range t.attempts {
		out = append(out, a.starts...)
	}
	return out
}

// acknowledged are the acks that say that the task exists, or had existed.
func (t *task) acknowledged() []*Event {
	var out []*Event
	for _, e := range t.enqueues {
		if r := e.result(); r == AckStored || r == AckDuplicate {
			out = append(out, e.ack)
		}
	}
	return out
}

// renewed says whether the ID may have begun a new life between two times: it was enqueued once more, or replayed. The
// enqueue that may have been the first is none.
func (t *task) renewed(from, to int64) bool {
	first := true
	for _, e := range t.enqueues {
		if !e.mayHaveStored() {
			continue
		}
		if !first && e.from <= to && e.to >= from {
			return true
		}
		first = false
	}
	return slices.ContainsFunc(t.acts, func(act *Event) bool { return act.Fault == FaultReplay && act.At <= to })
}

// acted says whether an administrator has acted on the task between two times. An act begins with its event, and how long it
// takes nobody knows; an end is written when it is over.
func (t *task) acted(from, to int64) bool {
	return slices.ContainsFunc(t.acts, func(act *Event) bool { return act.At <= to }) ||
		slices.ContainsFunc(t.ends, func(end *Event) bool { return end.At >= from })
}
