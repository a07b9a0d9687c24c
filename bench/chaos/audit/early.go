package audit

import (
	"math"
	"slices"
)

const forever = math.MaxInt64

// early finds attempts that started before the task was due by any of the enqueues that may have stored it. A task that an
// administrator has acted on has the due time that he gave it.
func (c *checker) early(t *task) {
	for _, start := range t.starts() {
		earliest, asked := int64(forever), (*Event)(nil)
		for i := range t.enqueues {
			e := &t.enqueues[i]
			if e.mayHaveStored() && e.from <= start.At && e.notBefore < earliest {
				earliest, asked = e.notBefore, e.ask
				if asked == nil {
					asked = e.ack
				}
			}
		}
		moved := slices.ContainsFunc(t.acts, func(act *Event) bool { return act.At <= start.At })
		if asked != nil && start.At < earliest && !moved {
			c.report.Early++
			c.find(VerdictEarly, t, []*Event{asked, start}, "it started %d µs before it was due", earliest-start.At)
		}
	}
}
