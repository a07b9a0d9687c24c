package audit

import "testing"

func TestForged(t *testing.T) {
	t.Parallel()
	window := func(e Event) bool { return e.At < epoch+30_000 }
	runCases(t, []verdictCase{
		{"uneventful", life, Rules{}, ""},
		{"a stale success was taken", `
			0 w start a 1/10
			1 x fault stop w
			900 v outcome a 1/10 lease_lost
			910 v start a 2/11
			920 x fault cont w
			921 w end a 1/10 ok
			922 w outcome a 1/10 succeeded
			930 v end a 2/11 ok
			931 v outcome a 2/11 discarded
			`, Rules{Duplicates: 1}, "forged 2"}, // the token, and the attempt after the end
		{"a stale success was refused", `
			0 w start a 1/10
			1 x fault stop w
			900 v outcome a 1/10 lease_lost
			910 v start a 2/11
			920 x fault cont w
			921 w end a 1/10 ok
			922 w outcome a 1/10 discarded
			930 v end a 2/11 ok
			931 v outcome a 2/11 succeeded
			`, Rules{}, ""},
		{"two ends", `
			0 w start a 1/10
			10 w outcome a 1/10 succeeded
			20 v outcome a 2/11 dead
			`, Rules{}, "forged 1"},
		{"two ends, in the window of a failover that may have forgotten the first", `
			0 w start a 1/10
			10 w end a 1/10 ok
			10 w outcome a 1/10 succeeded
			40 v start a 1/11
			50 v outcome a 1/11 succeeded
			`, Rules{Duplicates: 1, MayLose: window}, ""},
		{"attempted after its end", `
			0 w start a 1/10
			9 w end a 1/10 ok
			10 w outcome a 1/10 succeeded
			40 v start a 2/11
			`, Rules{Duplicates: 1}, "forged 1"},
		{"attempted after its end, whose line comes later", `
			0 w start a 1/10
			9 w end a 1/10 ok
			40 v start a 2/11
			50 w outcome a 1/10 succeeded
			`, Rules{Duplicates: 1}, "forged 1"},
		{"the lines of its end and of the start before come in other order", `
			10 v outcome a 2/11 succeeded
			15 w outcome a 1/10 retry
			16 w start a 1/10 lease=0
			17 v start a 2/11
			`, Rules{}, ""},
		{"one settle was told of twice by two sweepers", `
			0 w start a 1/10
			1 x fault kill w
			900 v outcome a 1/10 lease_lost
			901 u outcome a 1/10 lease_lost
			`, Rules{}, "forged 1"},
		{"one settle before and one after a failover", `
			0 w start a 1/10
			9 w end a 1/10 fail
			10 w outcome a 1/10 retry
			900 u outcome a 1/10 lease_lost
			`, Rules{MayLose: window}, ""},
		{"a token delivered twice", `
			0 w start a 1/10
			1 w start a 1/10
			`, Rules{Duplicates: 1}, "forged 1"},
		{"a token of two tasks", `
			0 w start a 1/10
			1 w start b 1/10
			`, Rules{}, "forged 1"},
		{"an outcome that the later attempt does not know of", `
			0 w start a 1/10
			1 w end a 1/10 fail
			2 w outcome a 1/10 retry
			10 v start a 2/11
			11 v end a 2/11 fail
			12 v outcome a 1/11 retry
			`, Rules{}, "forged 1, miscounted 1"},
		{"released, and the same attempt again", `
			0 w start a 1/10
			1 w end a 1/10 cut
			2 w outcome a 1/10 released
			10 v start a 1/11
			11 v end a 1/11 ok
			12 v outcome a 1/11 succeeded
			`, Rules{}, ""},
		{"refused and delivered", `
			0 p ask a
			1 p ack a refused
			10 w start a 1/10
			`, Rules{}, "forged 1"},
		{"refused once and stored once", `
			0 p ask a
			1 p ack a refused
			2 p ask a
			3 p ack a stored
			10 w start a 1/10
			`, Rules{}, ""},
		{"leased after it was cancelled", `
			0 p ask a
			1 p ack a stored
			5 x outcome a - cancelled
			11 w start a 1/@10
			`, Rules{}, "forged 1"},
		{"leased after a call to cancel it of which nobody knows what it did", `
			0 p ask a
			1 p ack a stored
			5 x outcome a - cancelled result=uncertain
			11 w start a 1/@10
			`, Rules{}, ""},
		{"leased just before it was cancelled, and started after that", `
			0 p ask a
			1 p ack a stored
			5 x outcome a - cancelled
			11 w start a 1/@4
			12 w end a 1/@4 cut
			13 w outcome a 1/@4 cancelled
			`, Rules{}, ""},
		{"deleted and enqueued again", `
			0 p ask a
			1 p ack a stored
			5 x outcome a - deleted
			6 p ask a
			7 p ack a stored
			11 w start a 1/@10
			12 w outcome a 1/@10 succeeded
			`, Rules{}, ""},
		{"replayed after it had died", `
			1 p ack a stored
			10 w start a 1/10
			11 w end a 1/10 fail
			12 w outcome a 1/10 dead
			20 x act replay a
			30 w start a 1/11
			31 w end a 1/11 ok
			32 w outcome a 1/11 succeeded
			`, Rules{}, ""},
		{"a duplicate is no second life", `
			0 p ask a
			1 p ack a stored
			2 p ask a
			3 p ack a duplicate
			10 w start a 1/10
			11 w end a 1/10 ok
			12 w outcome a 1/10 succeeded
			30 w start a 1/11
			`, Rules{Duplicates: 1}, "forged 1"},
		{"an enqueue that was answered before it ran is no second life", `
			0 p ask a
			1 p ack a stored
			2 o ask a
			3 o ack a stored
			10 w start a 1/10
			11 w end a 1/10 ok
			12 w outcome a 1/10 succeeded
			30 w start a 1/11
			`, Rules{Duplicates: 1}, "forged 1"},
		{"a second life that does not begin with the first attempt", `
			0 p ask a
			1 p ack a stored
			10 w start a 1/10
			11 w end a 1/10 ok
			12 w outcome a 1/10 succeeded
			20 p ask a
			21 p ack a stored
			30 w start a 2/11
			`, Rules{Duplicates: 1}, "forged 1"},
		{"two ends of the same attempt", `
			0 w start a 1/10
			10 w outcome a 1/10 succeeded
			20 v outcome a 1/11 dead
			`, Rules{}, "forged 1"},
		{"kept under another token than the accepted one", life,
			Rules{Store: held(Final{State: StateDone, Token: 10, Attempts: 2})}, "forged 1"},
		{"kept as it ended", life, Rules{Store: held(Final{State: StateDone, Token: 11, Attempts: 2})}, ""},
		{"kept as something else", life, Rules{Store: held(Final{State: StateDead, Token: 11, Attempts: 2})}, "forged 1"},
		{"ended and leased", life, Rules{Store: held(Final{State: StateLeased, Token: 12})}, "forged 1"},
		{"ended and only its name kept", life, Rules{Store: held(Final{State: StateTombstone})}, ""},
	})
}
