package audit

import "testing"

func TestLost(t *testing.T) {
	t.Parallel()
	drained := Rules{Drained: true, Store: empty}
	acked := func(e Event) bool { return e.Kind == KindAck }
	runCases(t, []verdictCase{
		{"ended", life, drained, ""},
		{"never delivered", "1 p ack a stored", drained, "lost 1"},
		{"never delivered, and the store was not asked to be empty", "1 p ack a stored", Rules{Store: empty}, "lost 1"},
		{"never delivered, and nobody looked", "1 p ack a stored", Rules{}, ""},
		{"never delivered, and drained", "1 p ack a stored", Rules{Drained: true}, "lost 1"},
		{"still waits", "1 p ack a stored", Rules{Store: held(Final{State: StateDue})}, ""},
		{"still waits in a drained store", "1 p ack a stored", Rules{Drained: true, Store: held(Final{State: StateLeased})}, "lost 1"},
		{"still waits in a drained store, in the window", "1 p ack a stored",
			Rules{Drained: true, MayLose: acked, Store: held(Final{State: StateDue})}, "lost 1"},
		{"in the window of a failover", "1 p ack a stored", Rules{Drained: true, Store: empty, MayLose: acked}, ""},
		{"dead and kept, and nobody has told", "1 p ack a stored", Rules{Drained: true, Store: held(Final{State: StateDead})}, ""},
		{"only its tombstone tells of its end", "1 p ack a stored", Rules{Drained: true, Store: held(Final{State: StateTombstone})}, ""},
		{"gone after a retry", `
			1 p ack a stored
			10 w start a 1/10
			20 w end a 1/10 fail
			21 w outcome a 1/10 retry
			`, drained, "lost 1"},
		{"gone after a kill", `
			1 p ack a stored
			10 w start a 1/10
			15 x fault kill w
			`, drained, "lost 1"},
		{"gone after a lease that was lost", `
			1 p ack a stored
			10 w start a 1/10
			15 x fault kill w
			900 v outcome a 1/10 lease_lost
			`, drained, "lost 1"},
		{"gone after a handler that was cut", `
			1 p ack a stored
			10 w start a 1/10
			15 x fault term w
			16 w end a 1/10 cut
			`, drained, "lost 1"},
		{"gone after a success that a healthy worker has not told of", `
			1 p ack a stored
			10 w start a 1/10
			15 w end a 1/10 ok
			`, drained, "lost 1"},
		{"killed after the success and before it could tell", `
			1 p ack a stored
			10 w start a 1/10
			15 w end a 1/10 ok
			16 x fault kill w
			`, drained, ""},
		{"killed after a failure that may have been the last, and before it could tell", `
			1 p ack a stored
			10 w start a 1/10
			15 w end a 1/10 fail
			16 x fault kill w
			`, drained, ""},
		{"killed after it was put off", `
			1 p ack a stored
			10 w start a 1/10
			15 w end a 1/10 snooze
			16 x fault kill w
			`, drained, "lost 1"},
		{"another worker was killed", `
			1 p ack a stored
			10 w start a 1/10
			15 w end a 1/10 ok
			16 x fault kill v
			`, drained, "lost 1"},
		{"the answer to the settle was lost for good", `
			1 p ack a stored
			10 w start a 1/10
			15 w end a 1/10 ok
			900 w outcome a 1/10 discarded
			`, drained, ""},
		{"a stale success, and the retry is gone", `
			1 p ack a stored
			10 w start a 1/10
			11 x fault stop w
			900 v outcome a 1/10 lease_lost
			901 x fault cont w
			902 w end a 1/10 ok
			903 w outcome a 1/10 discarded
			`, drained, "lost 1"},
		{"uncertain and not stored", `
			0 p ask a
			1 p ack a uncertain
			`, drained, ""},
		{"no answer, and not stored", "0 p ask a", drained, ""},
		{"refused", `
			0 p ask a
			1 p ack a refused
			`, drained, ""},
		{"uncertain, and stored as the second call says", `
			0 p ask a
			1 p ack a uncertain
			2 p ask a
			3 p ack a duplicate
			`, drained, "lost 1"},
		{"uncertain, stored, and ended", `
			0 p ask a
			1 p ack a uncertain
			2 p ask a
			3 p ack a duplicate
			10 w start a 1/10
			15 w end a 1/10 ok
			16 w outcome a 1/10 succeeded
			`, drained, ""},
		{"a duplicate before the one that stored it has its answer", `
			0 p ask a
			0 o ask a
			1 o ack a duplicate
			2 p ack a stored
			10 w start a 1/10
			15 w end a 1/10 ok
			16 w outcome a 1/10 succeeded
			`, drained, ""},
		{"cancelled while it waited", `
			1 p ack a stored
			5 x outcome a - cancelled
			`, drained, ""},
		{"its queue was purged", `
			1 p ack a stored
			5 x outcome - - dropped
			`, drained, ""},
		{"named again after its end, and lost the second time", `
			0 p ask a
			1 p ack a stored
			10 w start a 1/10
			15 w end a 1/10 ok
			16 w outcome a 1/10 succeeded
			20 p ask a
			21 p ack a stored
			`, drained, "lost 1"},
		{"named again after it was lost", `
			0 p ask a
			1 p ack a stored
			20 p ask a
			21 p ack a stored
			30 w start a 1/10
			35 w end a 1/10 ok
			36 w outcome a 1/10 succeeded
			`, drained, "lost 1"},
		{"named again after it was lost, and kept", `
			0 p ask a
			1 p ack a stored
			20 p ask a
			21 p ack a stored
			30 w start a 1/10
			35 w end a 1/10 ok
			36 w outcome a 1/10 succeeded
			`, Rules{Drained: true, Store: held(Final{State: StateDone, Token: 10, Attempts: 1})}, "lost 1"},
		{"deleted after a retry, and named again", `
			0 p ask a
			1 p ack a stored
			10 w start a 1/10
			11 w end a 1/10 fail
			12 w outcome a 1/10 retry
			13 x outcome a - deleted
			20 p ask a
			21 p ack a stored
			30 w start a 1/11
			35 w end a 1/11 ok
			36 w outcome a 1/11 succeeded
			`, drained, ""},
		{"named again, and twice ended", `
			0 p ask a
			1 p ack a stored
			10 w start a 1/10
			15 w end a 1/10 ok
			16 w outcome a 1/10 succeeded
			20 p ask a
			21 p ack a stored
			30 w start a 1/11
			35 w end a 1/11 ok
			36 w outcome a 1/11 succeeded
			`, drained, ""},
		{"named again, and still kept", `
			0 p ask a
			1 p ack a stored
			10 w start a 1/10
			15 w end a 1/10 ok
			16 w outcome a 1/10 succeeded
			20 p ask a
			21 p ack a stored
			`, Rules{Drained: true, Store: held(Final{State: StateDead})}, ""},
		{"a success told of by the receiver, and a worker killed that it does not know", `
			1 p ack a stored
			10 r start a 1/10 worker=*
			15 r end a 1/10 ok
			16 x fault kill w
			`, drained, ""},
	})
}

func TestExcusedLossesAreCounted(t *testing.T) {
	t.Parallel()
	before := func(e Event) bool { return e.Kind == KindAck && e.ID != "d" }
	const twoGone = `
		1 p ack b stored
		2 p ack c stored
		`
	for _, c := range []struct {
		name, ledger    string
		rules           Rules
		forgotten, lost int
	}{
		{"two gone in the window, one ended in it", life + twoGone, Rules{Drained: true, Store: empty, MayLose: before}, 2, 0},
		{"one gone after it", life + twoGone + "20 p ack d stored", Rules{Drained: true, Store: empty, MayLose: before}, 2, 1},
		{"gone without a window", life + twoGone, Rules{Drained: true, Store: empty}, 0, 2},
		{"there all the same", "1 p ack a stored", Rules{Store: held(Final{State: StateDue}), MayLose: before}, 0, 0},
		{"there, and it was to have ended", "1 p ack a stored", Rules{Drained: true, Store: held(Final{State: StateDue}), MayLose: before}, 0, 1},
		{"nobody looked", "1 p ack a stored", Rules{MayLose: before}, 0, 0},
	} {
		r := Check(parseHistory(t, c.ledger), c.rules)
		if r.Forgotten != c.forgotten || r.Lost != c.lost {
			t.Errorf("%s: %d forgotten and %d lost, want %d and %d", c.name, r.Forgotten, r.Lost, c.forgotten, c.lost)
		}
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	r := Check(parseHistory(t, life+`
		2 p ack b stored
		3 p ack c duplicate
		4 p ack d uncertain
		60 w1 start d 1/30
		61 w1 outcome d 1/30 succeeded
		`), Rules{Store: held(Final{})})
	if r.Enqueued != 3 || r.Delivered != 2 || r.Lost != 2 {
		t.Errorf("%+v", r)
	}
}
