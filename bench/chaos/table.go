package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// reporter prints rows as they come: as a table, or a line of JSON each.
type reporter struct {
	out    io.Writer
	asJSON bool
	rows   int
	failed int
}

const (
	headFormat = "%-28s %8s %9s %5s %9s %6s %5s %12s %15s %7s  %s\n"
	rowFormat  = "%-28s %8d %9d %5d %9d %6d %5d %12s %15s %7.1f  %s\n"
)

func (p *reporter) print(w Row) {
	p.rows++
	if !w.Pass {
		p.failed++
	}
	if p.asJSON {
		line, err := json.Marshal(w)
		if err != nil {
			panic(err) // it has no reason to fail
		}
		fmt.Fprintf(p.out, "%s\n", line)
		return
	}
	if p.rows == 1 {
		fmt.Fprintf(p.out, headFormat, "scenario", "enqueued", "delivered", "lost", "forgotten", "forged", "early",
			"duplicates", "recovery", "seconds", "")
	}
	fmt.Fprintf(p.out, rowFormat, w.Scenario, w.Enqueued, w.Delivered, w.Lost, w.Forgotten, w.Forged, w.Early,
		w.duplicates(), w.recovery(), w.Seconds, w.verdict())
	explain(p.out, w.Why, 10, w.Kept)
}

// explain prints below a row what is wrong, at most so much of it, and where the rest is.
func explain(out io.Writer, why []string, most int, kept string) {
	for i, line := range why {
		if i == most {
			fmt.Fprintf(out, "    and %d more\n", len(why)-most)
			break
		}
		fmt.Fprintf(out, "    %s\n", line)
	}
	if kept != "" {
		fmt.Fprintf(out, "    kept: %s\n", kept)
	}
}

// duplicates is the number and the bound.
func (w *Row) duplicates() string {
	if w.DuplicatesBound < 0 {
		return fmt.Sprintf("%d (any)", w.Duplicates)
	}
	return fmt.Sprintf("%d (%d)", w.Duplicates, w.DuplicatesBound)
}

// recovery is the time and the bound.
func (w *Row) recovery() string {
	if w.RecoveryBound == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2fs (%gs)", w.Recovery, w.RecoveryBound)
}
