package audit

import "slices"

// forged finds writes that took effect without being entitled to it.
func (c *checker) forged(t *task, lives [][]*attempt) {
	c.refusedAndDelivered(t)
	for _, a := range t.attempts {
		c.oneLease(t, a)
	}
	for _, life := range lives {
		c.afterEnd(t, life)
		c.overtaken(t, life)
	}
	c.afterAdministration(t)
	if len(lives) > 0 {
		c.contradicted(t, lives[len(lives)-1])
	}
}

func (c *checker) forge(t *task, events []*Event, format string, args ...any) {
	c.report.Forged++
	c.find(VerdictForged, t, events, format, args...)
}

// refusedAndDelivered finds a task that no enqueue can have stored.
func (c *checker) refusedAndDelivered(t *task) {
	var refused []*Event
	for i := range t.enqueues {
		if t.enqueues[i].result() != AckRefused {
			return
		}
		refused = append(refused, t.enqueues[i].ack)
	}
	if starts := t.starts(); len(refused) > 0 && len(starts) > 0 {
		c.forge(t, append(refused, starts...), "its enqueue was refused, and it was delivered")
	}
}

// oneLease finds a token that was delivered twice, or settled twice.
func (c *checker) oneLease(t *task, a *attempt) {
	if len(a.starts) > 1 {
		c.forge(t, a.starts, "token %d was delivered %d times", a.token, len(a.starts))
	}
	if sure := c.sure(a.accepted); len(a.accepted) > 1 && len(sure) == len(a.accepted) {
		c.forge(t, sure, "token %d was settled %d times", a.token, len(sure))
	}
}

// sharedTokens finds tokens under which two tasks of a queue were leased.
func (c *checker) sharedTokens(tasks []*task) {
	type lease struct {
		queue string
		token int64
	}
	holders := make(map[lease]*attempt)
	for _, t := range tasks {
		for _, a := range t.attempts {
			key := lease{t.key.Queue, a.token}
			if other := holders[key]; other != nil {
				c.forge(t, append(other.events(), a.events()...), "token %d is that of another task as well", a.token)
			}
			holders[key] = a
		}
	}
}

// sure leaves out what a failover may have forgotten.
func (c *checker) sure(events []*Event) []*Event {
	return slices.DeleteFunc(slices.Clone(events), c.forgivable)
}

// afterEnd finds what happened under later tokens after an accepted end: a start, or another end.
func (c *checker) afterEnd(t *task, life []*attempt) {
	for i, a := range life {
		end := a.terminal()
		if end == nil || c.forgivable(end) {
			continue
		}
		for _, b := range life[i+1:] {
			switch second := b.terminal(); {
			case second != nil:
				c.forge(t, []*Event{end, second}, "it ended twice, under tokens %d and %d", a.token, b.token)
			case len(b.starts) > 0:
				c.forge(t, append([]*Event{end}, b.starts...), "it ended under token %d and was attempted under token %d", a.token, b.token)
			default:
				continue
			}
			return // one finding for what one write has caused
		}
	}
}

// overtaken finds an outcome that was accepted although the attempts after it do not know of it. What ends a task is afterEnd's.
func (c *checker) overtaken(t *task, life []*attempt) {
	for i, a := range life {
		first := a.settled()
		if first == nil || !isCounted(first.Outcome) || isTerminal(first.Outcome) || c.forgivable(first) {
			continue
		}
		for _, b := range life[i+1:] {
			second := b.settled()
			if second == nil || second.Attempt == 0 || first.Attempt == 0 || second.Attempt > first.Attempt {
				continue
			}
			if second.Outcome == OutcomeReleased && len(b.starts) == 0 {
				continue // its number is that of a record that could not be read
			}
			c.forge(t, []*Event{first, second}, "attempt %d was settled under token %d, and attempt %d under the later token %d",
				first.Attempt, a.token, second.Attempt, b.token)
			return
		}
	}
}

// afterAdministration finds an attempt whose lease was given out after the call that ended the task had returned.
func (c *checker) afterAdministration(t *task) {
	for _, end := range t.ends {
		if end.ID == "" || end.Result == AckUncertain || c.forgivable(end) {
			continue // it may not have happened, or not to this task: what a queue is given meanwhile stays
		}
		for _, start := range t.starts() {
			if from := claimed(start); from > end.At+tokenSlack && from == start.Token && !t.renewed(0, start.At) {
				c.forge(t, []*Event{end, start}, "it was %s and leased after that", end.Outcome)
				return
			}
		}
	}
}

// contradicted finds a final state that is not what the last accepted end has left.
func (c *checker) contradicted(t *task, life []*attempt) {
	final, held := c.finals[t.key]
	i := slices.IndexFunc(life, func(a *attempt) bool { return a.terminal() != nil })
	if !held || i < 0 {
		return
	}
	end := life[i].terminal()
	if c.forgivable(end) || t.renewed(life[i].began(), forever) {
		return
	}
	events := []*Event{end}
	left := map[string]string{OutcomeSucceeded: StateDone, OutcomeDead: StateDead, OutcomeCancelled: StateCancelled}[end.Outcome]
	switch final.State {
	case StateDue, StateLeased:
		c.forge(t, events, "it was %s and is %s", end.Outcome, final.State)
	case StateDone, StateDead, StateCancelled:
		switch {
		case final.State != left:
			c.forge(t, events, "it was %s and is kept as %s", end.Outcome, final.State)
		case final.State == StateCancelled || final.Token == 0:
		case final.Token != end.Token:
			c.forge(t, events, "it was %s under token %d, and what is kept is that of token %d", end.Outcome, end.Token, final.Token)
		case end.Attempt > 0 && final.Attempts != end.Attempt:
			c.report.Miscounted++
			c.find(VerdictMiscounted, t, events, "it ended with attempt %d, and %d are kept", end.Attempt, final.Attempts)
		}
	}
}
