package audit

// numbers finds attempts whose numbers do not follow from the outcomes before them: the first is 1, an attempt that counts adds
// one, and one that was released adds none. What became of an attempt that nobody has told of may be either. Leases whose
// worker and whose sweeper both died before they could write are not seen at all, so a gap is explained by any fault.
func (c *checker) numbers(t *task, life []*attempt) {
	least, most := 1, 1
	var before *attempt
	for _, a := range life {
		n := a.number()
		if n == 0 || len(a.starts) == 0 && a.settled() != nil && a.settled().Outcome == OutcomeReleased {
			continue // it adds nothing; its number is 1 if the record could not be read
		}
		c.sameNumber(t, a, n)
		from := int64(0)
		events := a.events()
		if before != nil {
			from, events = before.began(), append(before.events(), events...)
		}
		switch {
		case n < least:
			c.miscount(t, events, "attempt %d under token %d, and at least %d was next", n, a.token, least)
		case n > most && !c.faults.any(from, a.began()):
			c.miscount(t, events, "attempt %d under token %d, and at most %d was next", n, a.token, most)
		}
		before = a
		switch end := a.settled(); {
		case end == nil || isTerminal(end.Outcome):
			least, most = n, n+1
		case isCounted(end.Outcome):
			least, most = n+1, n+1
		default:
			least, most = n, n
		}
		if c.forgivable(a.settled()) || len(a.starts) > 0 && c.forgivable(a.starts[0]) {
			least, most = 1, n+1 // as far back as what the replica had
		}
	}
}

// sameNumber finds an attempt that has another number for its receiver than for its worker.
func (c *checker) sameNumber(t *task, a *attempt, n int) {
	for _, e := range a.events() {
		if e.Attempt > 0 && e.Attempt != n {
			c.miscount(t, a.events(), "token %d is attempt %d and attempt %d", a.token, n, e.Attempt)
			return
		}
	}
}

func (c *checker) miscount(t *task, events []*Event, format string, args ...any) {
	c.report.Miscounted++
	c.find(VerdictMiscounted, t, events, format, args...)
}

// duplicates finds starts that no accepted outcome of the attempt before explains: one that brings the task back.
func (c *checker) duplicates(t *task, life []*attempt) {
	var before *attempt
	for _, a := range life {
		for i, start := range a.starts {
			explained := before == nil
			if before != nil && i == 0 {
				end := before.settled()
				explained = end != nil && !isTerminal(end.Outcome)
			}
			if !explained {
				c.report.Duplicates++
				c.find(VerdictDuplicate, t, append(before.events(), start),
					"token %d was delivered, and nothing tells why the attempt before was not the last", a.token)
			}
			before = a
		}
	}
}
