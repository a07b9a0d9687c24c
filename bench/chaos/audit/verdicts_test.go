package audit

import "testing"

func TestEarly(t *testing.T) {
	t.Parallel()
	runCases(t, []verdictCase{
		{"by a millisecond", `
			0 p ask a at=500
			1 p ack a stored at=500
			499 w start a 1/10
			`, Rules{}, "early 1"},
		{"on time", `
			0 p ask a at=500
			1 p ack a stored at=500
			500 w start a 1/10
			`, Rules{}, ""},
		{"only the ack tells", `
			1 p ack a stored at=500
			400 w start a 1/10
			`, Rules{}, "early 1"},
		{"an uncertain call that asked for it sooner may have stored it", `
			0 p ask a at=500
			1 p ack a uncertain at=500
			2 p ask a at=900
			3 p ack a duplicate at=900
			600 w start a 1/10
			`, Rules{}, ""},
		{"the call that asked for it sooner was a duplicate", `
			0 p ask a at=500
			1 p ack a stored at=500
			2 p ask a at=100
			3 p ack a duplicate at=100
			200 w start a 1/10
			`, Rules{}, "early 1"},
		{"two calls at once of one producer, answered in other order", `
			0 p ask a at=500
			0 p ask a at=100
			1 p ack a stored at=100
			2 p ack a duplicate at=500
			200 w start a 1/10
			`, Rules{}, ""},
		{"rescheduled", `
			1 p ack a stored at=500
			2 x act reschedule a
			200 w start a 1/10
			`, Rules{}, ""},
		{"rescheduled later than that", `
			1 p ack a stored at=500
			200 w start a 1/10
			300 x act reschedule a
			`, Rules{}, "early 1"},
		{"a call that was made after it can have moved nothing", `
			0 p ask a at=500
			1 p ack a stored at=500
			200 w start a 1/10
			300 p ask a at=100
			301 p ack a uncertain at=100
			`, Rules{}, "early 1"},
		{"enqueued by somebody who keeps no ledger", "200 w start a 1/10", Rules{}, ""},
	})
}

func TestMiscounted(t *testing.T) {
	t.Parallel()
	runCases(t, []verdictCase{
		{"uneventful", life, Rules{}, ""},
		{"a lost lease did not count", `
			0 w start a 1/10
			1 x fault kill w
			900 v outcome a 1/10 lease_lost
			910 v start a 1/11
			911 v end a 1/11 ok
			912 v outcome a 1/11 discarded
			`, Rules{}, "miscounted 1"},
		{"a release counted", `
			0 w start a 1/10
			1 w end a 1/10 cut
			2 w outcome a 1/10 released
			910 v start a 2/11
			`, Rules{}, "miscounted 1"},
		{"the first is the second", "0 w start a 2/10", Rules{}, "miscounted 1"},
		{"the first to be seen, after a worker was killed that had claimed it", `
			0 x fault kill u
			100 w start a 2/10
			`, Rules{}, ""},
		{"claimed and lost before it started", `
			0 x fault kill u
			90 v outcome a 1/9 lease_lost
			100 w start a 2/10
			`, Rules{}, ""},
		{"a gap", `
			0 w start a 1/10
			1 w end a 1/10 fail
			2 w outcome a 1/10 retry
			910 v start a 3/11
			`, Rules{}, "miscounted 1"},
		{"a gap that the end of a worker explains", `
			0 w start a 1/10
			1 w end a 1/10 fail
			2 w outcome a 1/10 retry
			500 x fault kill u
			910 v start a 3/11
			`, Rules{}, ""},
		{"a gap whose fault came after it", `
			0 w start a 1/10
			1 w end a 1/10 fail
			2 w outcome a 1/10 retry
			910 v start a 3/11
			920 x fault kill u
			`, Rules{}, "miscounted 1"},
		{"a gap whose fault came before the attempt that it follows", `
			0 x fault kill u
			10 w start a 1/10
			11 w end a 1/10 fail
			12 w outcome a 1/10 retry
			910 v start a 3/11
			`, Rules{}, "miscounted 1"},
		{"begun anew though it waited for its second attempt", `
			0 p ask a
			1 p ack a stored
			10 w start a 1/10
			11 w end a 1/10 fail
			12 w outcome a 1/10 retry
			20 p ask a
			21 p ack a stored
			30 v start a 1/11
			`, Rules{}, "miscounted 1"},
		{"nobody tells what became of the attempt before: it counted", `
			0 w start a 1/10
			1 w end a 1/10 cut
			910 v start a 2/11
			`, Rules{Duplicates: 1}, ""},
		{"nobody tells what became of the attempt before: it did not", `
			0 w start a 1/10
			1 w end a 1/10 cut
			910 v start a 1/11
			`, Rules{Duplicates: 1}, ""},
		{"backwards", `
			0 w start a 1/10
			1 w end a 1/10 fail
			2 w outcome a 1/10 retry
			10 w start a 2/11
			11 w end a 2/11 fail
			20 w start a 1/12
			`, Rules{Duplicates: 1}, "miscounted 1"},
		{"backwards after a failover that may have forgotten", `
			0 w start a 1/10
			1 w end a 1/10 fail
			2 w outcome a 1/10 retry
			10 w start a 2/11
			11 w end a 2/11 fail
			12 w outcome a 2/11 retry
			20 w start a 1/12
			`, Rules{MayLose: func(e Event) bool { return e.Kind == KindOutcome }}, ""},
		{"receiver and worker differ", `
			0 w start a 1/10
			1 w end a 1/10 ok
			2 w outcome a 2/10 succeeded
			`, Rules{}, "miscounted 1"},
		{"a record that nobody could read was given back", `
			0 w start a 1/10
			1 w end a 1/10 fail
			2 w outcome a 1/10 retry
			3 u outcome a 1/11 released
			910 v start a 2/12
			`, Rules{}, ""},
		{"kept with fewer attempts than were made", life,
			Rules{Store: held(Final{State: StateDone, Token: 11, Attempts: 1})}, "miscounted 1"},
	})
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	const twice = `
		0 w start a 1/10
		1 w end a 1/10 ok
		2 x fault kill w
		900 v start a 2/11
		901 v end a 2/11 ok
		902 v outcome a 2/11 succeeded
		`
	runCases(t, []verdictCase{
		{"a retry", life, Rules{}, ""},
		{"unexplained", twice, Rules{}, "duplicate 1"},
		{"as many as allowed", twice, Rules{Duplicates: 1}, ""},
		{"any number allowed", twice, Rules{Duplicates: -1}, ""},
		{"explained by the sweeper", twice + "899 v outcome a 1/10 lease_lost", Rules{}, ""},
		{"explained only by a refusal", twice + "899 w outcome a 1/10 discarded", Rules{}, "duplicate 1"},
		{"after its end", `
			0 w start a 1/10
			1 w end a 1/10 ok
			2 w outcome a 1/10 succeeded
			10 v start a 2/11
			`, Rules{}, "duplicate 1, forged 1"},
		{"one more than allowed", twice + `
			10 w start b 1/20
			11 w end b 1/20 ok
			910 v start b 2/21
			`, Rules{Duplicates: 1}, "duplicate 2"},
	})
	if r := Check(parseHistory(t, twice), Rules{Duplicates: -1}); r.Duplicates != 1 {
		t.Errorf("%d duplicates", r.Duplicates)
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	keys := &Snap{Keys: []string{"{q}:meta", "{q}:names", "{q}:claimed:w", "{~}:queues", "{~}:worker:w"}}
	runCases(t, []verdictCase{
		{"a key that should not be", "", Rules{Drained: true, Store: keys}, "leftover 1"},
		{"a key that may be", "", Rules{Drained: true, Store: keys, Leftover: []string{"{*}:names"}}, ""},
		{"a key of another queue may be", "", Rules{Drained: true, Store: keys, Leftover: []string{"{p}:names"}}, "leftover 1"},
		{"not drained", "", Rules{Store: keys}, ""},
		{"broken", "", Rules{Store: &Snap{Broken: []string{"x", "y"}}}, "broken 2"},
	})
}
