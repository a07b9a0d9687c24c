package audit

// overlaps finds attempts that ran while another one of the same task did, without a reason that lies in a fault.
func (c *checker) overlaps(t *task) {
	for i, a := range t.attempts {
		for _, b := range t.attempts[i+1:] {
			if len(a.starts) == 0 || len(b.starts) == 0 || !c.overlap(t, a, b) {
				continue
			}
			c.report.Overlaps++
			c.find(VerdictOverlap, t, append(a.events(), b.events()...),
				"the attempt under token %d ran while that under token %d did, whose lease had not ended", b.token, a.token)
		}
	}
}

// overlap says whether two attempts ran at once and should not have. The lease of the older token must have been taken away
// for the newer one to begin; so the older one decides: its lease was over, or something happened to its worker, or an
// administrator took the lease.
func (c *checker) overlap(t *task, older, newer *attempt) bool {
	a, b := older.starts[0], newer.starts[0]
	if a.At >= newer.finished() || b.At >= older.finished() || a.Lease <= 0 {
		return false
	}
	from, both := claimed(a), max(a.At, b.At)
	// An attempt that begins after the one that replaced it must have been held up, whenever its lease ended.
	if a.At <= b.At && b.At >= from+a.Lease-millisecond {
		return false
	}
	// A receiver may not see that the sender has given up, and works on; the sender has told.
	if end := older.settled(); a.Worker != "" && end != nil && end.Outcome != OutcomeLeaseLost {
		return false
	}
	return !c.faults.touched(a.owner(), from, both) && !t.acted(from, both) && !c.forgivable(a)
}

// millisecond is the precision of the ends of leases, in µs.
const millisecond = 1000

// finished is when an attempt was over; the end of time if nobody says.
func (a *attempt) finished() int64 {
	over := int64(forever)
	for _, end := range a.ends {
		over = min(over, end.At)
	}
	return over
}
