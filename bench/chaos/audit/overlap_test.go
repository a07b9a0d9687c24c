package audit

import "testing"

func TestOverlap(t *testing.T) {
	t.Parallel()
	// lost is a lease that the sweeper has taken after 100 ms, though it is of a second.
	const lost = `
		10 w start a 1/10
		100 v outcome a 1/10 lease_lost
		110 v start a 2/11
		200 w end a 1/10 ok
		201 w outcome a 1/10 discarded
		210 v end a 2/11 ok
		211 v outcome a 2/11 succeeded
		`
	runCases(t, []verdictCase{
		{"one after the other", life, Rules{}, ""},
		{"a lease taken from a healthy worker", lost, Rules{}, "overlap 1"},
		{"allowed", lost, Rules{Overlaps: 1}, ""},
		{"any number allowed", lost, Rules{Overlaps: -1}, ""},
		{"the worker was frozen", "50 x fault stop w" + lost, Rules{}, ""},
		{"all workers were cut off", "50 x fault blackhole *" + lost, Rules{}, ""},
		{"another worker was frozen", "50 x fault stop v" + lost, Rules{}, "overlap 1"},
		{"the worker was frozen, and all right again before", `
			1 x fault stop w
			5 x fault cont w
			` + lost, Rules{}, "overlap 1"},
		{"the worker was cut off since before", "1 x fault blackhole w" + lost, Rules{}, ""},
		{"a server was killed", "50 x fault kill redis-0" + lost, Rules{}, "overlap 1"},
		{"an administrator ran the task", "50 x act run a" + lost, Rules{Duplicates: -1}, ""},
		{"in the window of a failover that may have forgotten the lease", lost,
			Rules{MayLose: func(e Event) bool { return e.Kind == KindStart }}, ""},
		{"the lease had ended", `
			10 w start a 1/10
			1011 v outcome a 1/10 lease_lost
			1012 v start a 2/11
			1100 w end a 1/10 ok
			1200 v end a 2/11 ok
			`, Rules{}, ""},
		{"the lease had ended, because it began before the attempt", `
			500 w start a 1/@10
			1011 v outcome a 1/@10 lease_lost
			1012 v start a 2/@1011
			1100 w end a 1/@10 ok
			1200 v end a 2/@1011 ok
			`, Rules{}, ""},
		{"a handler that never ends", `
			10 w start a 1/10
			500 v outcome a 1/10 lease_lost
			510 v start a 2/11
			`, Rules{}, "overlap 1"},
		{"a worker killed while it ran", `
			10 w start a 1/10
			20 x fault kill w
			500 v outcome a 1/10 lease_lost
			510 v start a 2/11
			`, Rules{}, ""},
		{"a worker killed after the other attempt had begun", `
			10 w start a 1/10
			500 v outcome a 1/10 lease_lost
			510 v start a 2/11
			520 x fault kill w
			`, Rules{}, "overlap 1"},
		{"a lease of which nobody knows the length", `
			10 w start a 1/10 lease=0
			500 v outcome a 1/10 lease_lost
			510 v start a 2/11
			`, Rules{}, ""},
		{"frozen between its claim and its start", `
			20 x fault stop w
			100 v outcome a 1/@10 lease_lost
			110 v start a 2/@110
			200 x fault cont w
			201 w start a 1/@10
			202 w end a 1/@10 cut
			300 v end a 2/@110 ok
			`, Rules{}, ""},
		{"started late, without anything having happened", `
			100 v outcome a 1/@10 lease_lost
			110 v start a 2/@110
			201 w start a 1/@10
			202 w end a 1/@10 cut
			300 v end a 2/@110 ok
			`, Rules{}, "overlap 1"},
		{"started late, after its lease was over", `
			1100 v outcome a 1/@10 lease_lost
			1110 v start a 2/@1110
			1201 w start a 1/@10
			1202 w end a 1/@10 cut
			1300 v end a 2/@1110 ok
			`, Rules{}, "overlap 1"},
		{"started late, when the other one was over", `
			100 v outcome a 1/@10 lease_lost
			110 v start a 2/@110
			150 v end a 2/@110 ok
			201 w start a 1/@10
			202 w end a 1/@10 cut
			`, Rules{}, ""},
		{"started late, with a lease of which nobody knows the length", `
			100 v outcome a 1/@10 lease_lost
			110 v start a 2/@110
			201 w start a 1/@10 lease=0
			202 w end a 1/@10 cut
			300 v end a 2/@110 ok
			`, Rules{}, ""},
		{"a handler whose worker has settled before it ended", `
			10 w start a 1/10
			100 w outcome a 1/10 retry
			110 v start a 2/11
			200 w end a 1/10 ok
			210 v end a 2/11 ok
			`, Rules{}, "overlap 1"},
		{"a receiver that works on after the worker has given up", `
			10 r start a 1/10 worker=*
			100 w outcome a 1/10 retry
			110 r start a 2/11 worker=*
			200 r end a 1/10 ok
			210 r end a 2/11 ok
			211 w outcome a 2/11 succeeded
			`, Rules{}, ""},
		{"a receiver that gets a second request although the first was not given up", `
			10 r start a 1/10 worker=*
			100 w outcome a 1/10 lease_lost
			110 r start a 2/11 worker=*
			200 r end a 1/10 ok
			210 r end a 2/11 ok
			211 w outcome a 2/11 succeeded
			`, Rules{}, "overlap 1"},
	})
}
