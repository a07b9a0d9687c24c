package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// runPlanted plants the bugs one by one, and says of each whether its scenario found it. The code is 1 when that cannot be said of all.
func runPlanted(ctx context.Context, bugs []plant, s settings, out, complaints io.Writer) int {
	root, err := rootModule(ctx)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(complaints, err)
		return 2
	}
	missed := 0
	for i, p := range bugs {
		row := p.try(ctx, root, s)
		if ctx.Err() != nil {
			fmt.Fprintf(complaints, "interrupted in %s; %d planted bugs not tried\n", p.name, len(bugs)-i-1)
			return 1
		}
		row.print(out, s.asJSON)
		if row.Verdict != plantFound {
			missed++
		}
	}
	if missed > 0 {
		fmt.Fprintf(complaints, "%d of %d failed; seed %d\n", missed, len(bugs), s.seed)
		return 1
	}
	return 0
}

// The verdicts on a planted bug.
const (
	plantFound  = "found"
	plantMissed = "NOT FOUND"
	plantError  = "ERROR" // nothing is known: the program was not built, or its scenario came to no verdict
)

// plantRow is what came of one planted bug.
type plantRow struct {
	Plant    string   `json:"plant"`
	Scenario string   `json:"scenario"`
	Verdict  string   `json:"verdict"`
	Seed     uint64   `json:"seed"`
	Why      []string `json:"why,omitempty"`  // what the scenario found, or why there is no verdict
	Kept     string   `json:"kept,omitempty"` // the directory of what the red run has left, if -keep says where
	Seconds  float64  `json:"seconds"`
}

// try builds the program with the bug and runs its scenario. All that both leave is in one directory, which is removed.
func (p plant) try(ctx context.Context, root string, s settings) plantRow {
	row, begun := plantRow{Plant: p.name, Scenario: p.scenario, Seed: s.seed}, time.Now()
	dir, err := os.MkdirTemp("", "chaos-planted-")
	if err != nil {
		row.judge(nil, err)
		return row
	}
	defer os.RemoveAll(dir)
	runtime.LockOSThread() // what it starts ends with this thread: see orderly
	defer runtime.UnlockOSThread()
	row.judge(p.grow(ctx, root, dir, s))
	if strings.HasPrefix(row.Kept, dir) {
		row.Kept = ""
	}
	row.Seconds = time.Since(begun).Seconds()
	return row
}

// judge takes in the row of the scenario, or why there is none.
func (w *plantRow) judge(red *Row, err error) {
	switch {
	case err != nil:
		w.Verdict, w.Why = plantError, []string{err.Error()}
		return
	case red.Void:
		w.Verdict = plantError
	case red.Pass:
		w.Verdict = plantMissed
	default:
		w.Verdict = plantFound
	}
	w.Why, w.Kept = red.Why, red.Kept
}

func (w *plantRow) print(out io.Writer, asJSON bool) {
	if asJSON {
		line, err := json.Marshal(w)
		if err != nil {
			panic(err) // it has no reason to fail
		}
		fmt.Fprintf(out, "%s\n", line)
		return
	}
	fmt.Fprintf(out, "%-36s %-24s %s\n", w.Plant, w.Scenario, w.Verdict)
	var lines []string
	for _, why := range w.Why {
		lines = append(lines, strings.Split(strings.TrimSpace(why), "\n")...)
	}
	explain(out, lines, 3, w.Kept)
}

// grow builds the program with the bug and returns the row of its scenario.
func (p plant) grow(ctx context.Context, root, dir string, s settings) (*Row, error) {
	binary, err := p.build(ctx, root, dir)
	if err != nil {
		return nil, err
	}
	args := []string{"-run", "^" + regexp.QuoteMeta(p.scenario) + "$", "-json", "-keep", s.keep, "-seed", strconv.FormatUint(s.seed, 10)}
	if s.quick {
		args = append(args, "-quick")
	} else {
		args = append(args, "-for", s.length.String())
	}
	run := orderly(ctx, dir, syscall.SIGTERM, binary, args...)
	var said strings.Builder
	run.Stderr = &said
	text, err := run.Output()
	if err != nil && run.ProcessState == nil {
		return nil, err
	}
	row := new(Row)
	if err := json.Unmarshal(text, row); err != nil {
		return nil, fmt.Errorf("the run has no row: %w: %s", err, said.String())
	}
	return row, nil
}
