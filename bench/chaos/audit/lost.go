package audit

import "slices"

// lost finds a task that was acknowledged and came to no end. One whose enqueue a failover may have forgotten it only counts.
//
// The store's word is the best: what it still holds is not lost, unless it was to be empty. Of what it does not hold there must
// be an accepted end, or a reason why nobody could tell of one.
func (c *checker) lost(t *task, lives [][]*attempt) {
	promised := t.promises()
	final, held := c.finals[t.key]
	waits := held && (final.State == StateDue || final.State == StateLeased)
	switch {
	case len(promised) == 0 || c.finals == nil && !c.rules.Drained:
		return
	case waits && c.rules.Drained:
		c.report.Lost++
		c.find(VerdictLost, t, promised, "it was to have ended and is %s", final.State)
		return
	}
	ended, open := 0, true
	for _, life := range lives {
		if open = !c.ended(life); !open {
			ended++
		}
	}
	if held && (open || len(lives) < len(promised) && t.byToken[final.Token] == nil) {
		ended++ // or lives: the store tells of one that is not among those, or is the last
	}
	for _, end := range t.ends {
		if end.At >= promised[0].At || len(promised) == 1 {
			ended++
		}
	}
	switch {
	case ended >= len(promised):
		return
	case slices.ContainsFunc(promised, c.forgivable):
		c.report.Forgotten++
		return
	}
	c.report.Lost++
	for _, a := range t.attempts {
		promised = append(promised, a.events()...)
	}
	c.find(VerdictLost, t, promised, "it was stored, it has not ended, and it is not there")
}

// promises are the acks of which each speaks of a life of its own. One that calls the task a duplicate speaks of one that
// others have stored, if their acks are there.
func (t *task) promises() []*Event {
	stored := slices.DeleteFunc(t.acknowledged(), func(ack *Event) bool { return ack.Result != AckStored })
	if all := t.acknowledged(); len(stored) == 0 && len(all) > 0 {
		return all[:1]
	}
	return stored
}

// ended says whether a life of a task is over, as far as one can know: an accepted outcome ends it, or its last attempt has
// come to an end of its own and whoever was to tell what the store said could not. One that was cut or put off would have come
// back.
func (c *checker) ended(life []*attempt) bool {
	for _, a := range life {
		if a.terminal() != nil {
			return true
		}
	}
	last := life[len(life)-1]
	if last.settled() != nil || len(last.starts) == 0 {
		return false
	}
	finished := slices.ContainsFunc(last.ends, func(e *Event) bool { return e.Result == EndOK || e.Result == EndFail })
	start := last.starts[0]
	return finished && (len(last.discarded) > 0 || c.faults.touched(start.owner(), start.At, forever))
}
