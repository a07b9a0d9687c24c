package main

import (
	"context"
	"errors"
)

// figure is one thing that is measured, of Dispatch and of whoever else can do it.
type figure struct {
	name, unit, suite string
	n, quick          int     // tasks in a full and in a quick run
	entries           []entry // the first is Dispatch
}

// entry is one contestant's way of getting a figure.
type entry struct {
	peer string // as in -json: "" is Dispatch; asynq, asynq-best, river, bullmq, limit
	how  string // for the table; of several entries of one peer the best median counts
	run  func(ctx context.Context, env *env, n int) (float64, error)
}

// errSkipped, wrapped with the reason, leaves an entry out visibly: the table and stderr say so.
var errSkipped = errors.New("skipped")

// peers are asked for their entries of each figure; each answers nil where it has none. Their files register them.
var peers []func(figureName string) []entry

// withPeers completes the figures with the entries of all peers.
func withPeers(figures []figure) []figure {
	for i := range figures {
		for _, of := range peers {
			figures[i].entries = append(figures[i].entries, of(figures[i].name)...)
		}
	}
	return figures
}
