package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestTableHasEachNumberBelowItsName(t *testing.T) {
	var out bytes.Buffer
	p := &reporter{out: &out}
	p.print(Row{Scenario: "s", Enqueued: 1, Delivered: 2, Lost: 3, Forgotten: 4, Forged: 5, Early: 6, Pass: true})
	head, row, _ := strings.Cut(out.String(), "\n")
	for name, want := range map[string]string{"enqueued": "1", "delivered": "2", "lost": "3", "forgotten": "4", "forged": "5", "early": "6"} {
		column := slices.Index(strings.Fields(head), name)
		if column < 0 || strings.Fields(row)[column] != want {
			t.Errorf("no %s below %q:\n%s", want, name, out.String())
		}
	}
}

func TestRowsWithoutAVerdictAreTold(t *testing.T) {
	for want, w := range map[string]Row{"pass": {Pass: true}, "FAIL": {}, "ERROR": {Void: true}} {
		var out bytes.Buffer
		p := &reporter{out: &out}
		p.print(w)
		if !strings.HasSuffix(out.String(), " "+want+"\n") || (p.failed > 0) == w.Pass {
			t.Errorf("%d failed, want %s:\n%s", p.failed, want, out.String())
		}
	}
}
