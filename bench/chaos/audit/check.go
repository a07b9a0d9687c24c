package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Check compares a history with the rules. All processes must have ended: a worker writes an outcome after the store has it, so
// that a history read too soon lacks the last ones.
func Check(h *History, r Rules) Report {
	tasks, all := index(h)
	c := &checker{rules: r, faults: all, finals: r.Finals, kept: make(map[string]int)}
	if c.finals == nil && r.Store != nil {
		c.finals = r.Store.Finals
		if c.finals == nil {
			c.finals = make(map[TaskKey]Final) // it was looked at, and empty
		}
	}
	c.sharedTokens(tasks)
	for _, t := range tasks {
		if len(t.acknowledged()) > 0 {
			c.report.Enqueued++
		}
		if len(t.starts()) > 0 {
			c.report.Delivered++
		}
		lives := t.lives()
		c.lost(t, lives)
		c.early(t)
		c.forged(t, lives)
		c.overlaps(t)
		for _, life := range lives {
			c.numbers(t, life)
			c.duplicates(t, life)
		}
	}
	c.store()
	return c.conclude()
}

// checker is one run of Check.
type checker struct {
	rules  Rules
	faults faults
	finals map[TaskKey]Final // nil: nobody looked
	report Report
	found  []Finding
	kept   map[string]int // findings kept, by verdict
}

const (
	maxFindings = 20   // of a verdict in a report
	maxKept     = 1000 // of a verdict while they are gathered, of which the oldest stay
)

// find adds a finding, unless there are more than enough of its verdict. It does not count it.
func (c *checker) find(verdict string, t *task, events []*Event, format string, args ...any) {
	if c.kept[verdict]++; c.kept[verdict] > maxKept {
		return
	}
	f := Finding{Verdict: verdict, Text: fmt.Sprintf(format, args...)}
	if t != nil {
		f.Queue, f.ID = t.key.Queue, t.key.ID
	}
	for _, e := range events {
		if e != nil {
			f.Events = append(f.Events, *e)
		}
	}
	slices.SortStableFunc(f.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	c.found = append(c.found, f)
}

// forgivable says whether a failover may have lost what an event tells of.
func (c *checker) forgivable(e *Event) bool {
	return e != nil && c.rules.MayLose != nil && c.rules.MayLose(*e)
}

// conclude puts the findings in order and leaves out those that the rules allow.
func (c *checker) conclude() Report {
	allowed := func(verdict string, count, limit int) {
		if limit < 0 || count <= limit {
			c.found = slices.DeleteFunc(c.found, func(f Finding) bool { return f.Verdict == verdict })
		}
	}
	allowed(VerdictDuplicate, c.report.Duplicates, c.rules.Duplicates)
	allowed(VerdictOverlap, c.report.Overlaps, c.rules.Overlaps)
	slices.SortStableFunc(c.found, func(a, b Finding) int { return cmp.Compare(a.at(), b.at()) })
	taken := make(map[string]int)
	for _, f := range c.found {
		if taken[f.Verdict]++; taken[f.Verdict] <= maxFindings {
			c.report.Findings = append(c.report.Findings, f)
		}
	}
	return c.report
}

// at is when what a finding tells of began; those about keys come last.
func (f *Finding) at() int64 {
	if len(f.Events) == 0 {
		return math.MaxInt64
	}
	return f.Events[0].At
}
