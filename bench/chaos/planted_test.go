package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A plant whose text has changed in the product would plant nothing.
func TestPlantsFindTheirPlace(t *testing.T) {
	root, err := rootModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plants {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.file)))
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		mutant, err := p.mutate(string(text))
		if err != nil {
			t.Error(err)
		} else if mutant == string(text) {
			t.Errorf("%s changes nothing", p.name)
		}
		if !slices.ContainsFunc(catalogue(), func(sc Scenario) bool { return sc.Name == p.scenario }) {
			t.Errorf("%s: there is no scenario %q", p.name, p.scenario)
		}
	}
}

// Only a scenario that came to a verdict can have found a bug.
func TestPlantsAreJudged(t *testing.T) {
	for _, c := range []struct {
		name string
		red  *Row
		err  error
		want string
	}{
		{"red", &Row{Why: []string{"lost"}, Kept: "there"}, nil, plantFound},
		{"green", &Row{Pass: true}, nil, plantMissed},
		{"not set up, or given up", &Row{Void: true, Why: []string{"no server"}}, nil, plantError},
		{"not built", nil, errors.New("it does not build"), plantError},
	} {
		var row plantRow
		if row.judge(c.red, c.err); row.Verdict != c.want {
			t.Errorf("%s: %s, want %s", c.name, row.Verdict, c.want)
		}
		if explained := len(row.Why) > 0; explained != (c.want != plantMissed) {
			t.Errorf("%s: why is %q", c.name, row.Why)
		}
	}
}

func TestPlantsArePrintedShortly(t *testing.T) {
	var out bytes.Buffer
	row := plantRow{Plant: "p", Scenario: "s", Verdict: plantFound, Why: []string{"a\nb", "c", "d"}, Kept: "there"}
	row.print(&out, false)
	_, below, _ := strings.Cut(out.String(), "\n")
	if want := "    a\n    b\n    c\n    and 1 more\n    kept: there\n"; below != want {
		t.Errorf("%q, want %q", below, want)
	}
	out.Reset()
	row.print(&out, true)
	const want = `{"plant":"p","scenario":"s","verdict":"found","seed":0,"why":["a\nb","c","d"],"kept":"there","seconds":0}` + "\n"
	if out.String() != want {
		t.Errorf("%s, want %s", out.String(), want)
	}
}
