package main

import (
	"strings"
	"testing"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// attempts makes a ledger of attempts that were leased at from, in ms, and started and ended at the others.
func attempts(spans ...[3]int64) ledgerView {
	h := new(audit.History)
	for i, s := range spans {
		token := s[0]*1000 + int64(i)
		h.Events = append(h.Events,
			audit.Event{Kind: audit.KindStart, At: s[1] * 1000, Who: "w", Queue: "q", ID: "t", Token: token},
			audit.Event{Kind: audit.KindEnd, At: s[2] * 1000, Who: "w", Queue: "q", ID: "t", Token: token})
	}
	return ledgerView{h}
}

func TestLimitsAreJudged(t *testing.T) {
	places := func(n int) limitLog { return limitLog{{concurrent: n}} }
	rate := func(perSecond float64, burst int) limitLog { return limitLog{{perSecond: perSecond, burst: burst}} }
	for name, c := range map[string]struct {
		log    limitLog
		ledger ledgerView
		want   string // a part of the error
	}{
		"two of two":        {places(2), attempts([3]int64{10, 11, 30}, [3]int64{10, 12, 20}, [3]int64{21, 22, 40}), ""},
		"three of two":      {places(2), attempts([3]int64{10, 11, 30}, [3]int64{10, 12, 30}, [3]int64{21, 22, 40}), "3 attempts of queue q ran at once"},
		"started late":      {places(1), attempts([3]int64{10, 11, 30}, [3]int64{40, 41, 50}), ""},
		"lowered meanwhile": {limitLog{{concurrent: 2}, {from: 15_000, to: 16_000, concurrent: 1}}, attempts([3]int64{10, 11, 30}, [3]int64{10, 20, 30}), ""},
		"lowered before": {limitLog{{concurrent: 2}, {from: 15_000, to: 16_000, concurrent: 1}}, attempts([3]int64{10, 11, 30}, [3]int64{18, 20, 30}),
			"1 were allowed"},
		"a burst":            {rate(100, 3), attempts([3]int64{10, 11, 12}, [3]int64{10, 11, 12}, [3]int64{10, 11, 12}), ""},
		"more than a burst":  {rate(100, 2), attempts([3]int64{10, 11, 12}, [3]int64{10, 11, 12}, [3]int64{10, 11, 12}), "3 attempts of queue q were leased"},
		"at its rate":        {rate(100, 1), attempts([3]int64{10, 11, 12}, [3]int64{20, 21, 22}, [3]int64{30, 31, 32}), ""},
		"faster than that":   {rate(100, 1), attempts([3]int64{10, 11, 12}, [3]int64{18, 21, 22}), "2 attempts"},
		"started in a bunch": {rate(100, 1), attempts([3]int64{10, 31, 32}, [3]int64{20, 31, 32}, [3]int64{30, 31, 32}), ""},
		"raised meanwhile": {limitLog{{perSecond: 100, burst: 1}, {from: 12_000, to: 13_000, perSecond: 1000, burst: 1}},
			attempts([3]int64{10, 11, 12}, [3]int64{14, 15, 16}), ""},
	} {
		_, err := c.log.judge("q", c.ledger)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestAKilledAttemptIsOver(t *testing.T) {
	l := attempts([3]int64{10, 11, 90}, [3]int64{40, 41, 50})
	l.Events = append(l.Events[:1], l.Events[2:]...) // the first has no end
	if _, err := (limitLog{{concurrent: 1}}).judge("q", l); err == nil {
		t.Error("an attempt without an end was over")
	}
	l.Events = append(l.Events, audit.Event{Kind: audit.KindFault, Fault: faultKill, Target: "w", At: 20_000})
	if _, err := (limitLog{{concurrent: 1}}).judge("q", l); err != nil {
		t.Error(err)
	}
}
