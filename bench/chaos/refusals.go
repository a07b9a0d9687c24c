package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dispatchkit/dispatch/bench/chaos/servers"
)

// refusals are the errors that servers have answered, by their first word, since they were started.
type refusals map[string]int

// refusalsOf adds up what some nodes have answered. Those that do not run have answered nothing.
func refusalsOf(nodes ...*servers.Node) refusals {
	all := refusals{}
	for _, n := range nodes {
		text, err := n.Command("INFO", "errorstats")
		if err != nil {
			continue
		}
		for line := range strings.Lines(text) {
			word, count, ok := strings.Cut(strings.TrimPrefix(line, "errorstat_"), ":count=")
			if n, err := strconv.Atoi(strings.TrimSpace(count)); ok && err == nil {
				all[word] += n
			}
		}
	}
	return all
}

// since is how many more there are of some kinds together.
func (all refusals) since(before refusals, words ...string) int {
	n := 0
	for _, w := range words {
		n += all[w] - before[w]
	}
	return n
}

// require is an error unless one of each kind was answered more: otherwise the product was never put to the test.
func (all refusals) require(before refusals, words ...string) error {
	for _, w := range words {
		if all.since(before, w) <= 0 {
			return fmt.Errorf("no server has answered %s, so that nothing is shown: %v, before %v", w, all, before)
		}
	}
	return nil
}
