package main

import (
	"os"
	"path/filepath"
	"slices"
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
