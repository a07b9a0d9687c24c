package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestListsAreNarrow(t *testing.T) {
	var scenarios, bugs bytes.Buffer
	listScenarios(&scenarios, catalogue())
	listPlants(&bugs, plants)
	for line := range strings.Lines(scenarios.String() + bugs.String()) {
		if len(line) > listWidth+1 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	words := strings.Join(strings.Fields(scenarios.String()), " ")
	for _, sc := range catalogue() {
		if !strings.Contains(words, sc.Name+" "+sc.Doc) {
			t.Errorf("%s is not listed with what it does", sc.Name)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"ab cd ef", "ab cd|ef"},
		{"ab  cde", "ab|cde"},
		{"abcdefgh ij", "abcdefgh|ij"},
	} {
		if got := strings.Join(wrap(c.text, 5), "|"); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
