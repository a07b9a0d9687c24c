package main

import (
	"fmt"
	"io"
	"strings"
)

// listWidth is how many columns the list of scenarios has.
const listWidth = 100

// listScenarios prints each name, and below it what is done and what must hold.
func listScenarios(out io.Writer, scenarios []Scenario) {
	for _, sc := range scenarios {
		fmt.Fprintln(out, sc.Name)
		for _, line := range wrap(sc.Doc, listWidth-4) {
			fmt.Fprintf(out, "    %s\n", line)
		}
	}
}

// listPlants prints each bug and the scenario that must find it.
func listPlants(out io.Writer, bugs []plant) {
	for _, p := range bugs {
		fmt.Fprintf(out, "%-36s %s\n", p.name, p.scenario)
	}
}

// wrap breaks a text between words into lines of at most so many bytes. A longer word has a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last >= 0 && len(lines[last])+1+len(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
