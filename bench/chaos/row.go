package main

import (
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// Row is what came of one run of a scenario. Counts below 0 were not taken.
type Row struct {
	Scenario   string `json:"scenario"`
	Seed       uint64 `json:"seed"`
	Enqueued   int    `json:"enqueued"`
	Delivered  int    `json:"delivered"`
	Lost       int    `json:"lost"`
	Forgotten  int    `json:"forgotten"` // acknowledged and gone, as Bound.MayLose allows: not among Lost
	Forged     int    `json:"forged"`
	Early      int    `json:"early"`
	Overlaps   int    `json:"overlaps"`
	Miscounted int    `json:"miscounted"`
	Leftover   int    `json:"leftover"`
	Broken     int    `json:"broken"`
	// Duplicates are starts that no outcome asked for, and DuplicatesBound how many of them there may be; below 0 is any number.
	Duplicates      int `json:"duplicates"`
	DuplicatesBound int `json:"duplicates_bound"`
	// Recovery is how long service took to be normal after the fault, and RecoveryBound how long it may take, in seconds. Both
	// are 0 when it was not measured.
	Recovery      float64 `json:"recovery_s"`
	RecoveryBound float64 `json:"recovery_bound_s"`
	Pass          bool    `json:"pass"`
	// Void says that the row is no verdict: the scenario could not be set up, or was given up when its time was over.
	Void bool `json:"void,omitempty"`
	// Why says what is wrong, a line each.
	Why     []string `json:"why,omitempty"`
	Seconds float64  `json:"seconds"`
	// Kept is the directory of what a failed run has left.
	Kept string `json:"kept,omitempty"`
}

// judge fills a row from what the checker has found.
func (w *Row) judge(report audit.Report, duplicates int) {
	w.Enqueued, w.Delivered = report.Enqueued, report.Delivered
	w.Lost, w.Forgotten, w.Forged, w.Early = report.Lost, report.Forgotten, report.Forged, report.Early
	w.Overlaps, w.Miscounted, w.Duplicates = report.Overlaps, report.Miscounted, duplicates
	w.Leftover, w.Broken = report.Leftover, report.Broken
	for _, f := range report.Findings {
		w.fail(f.String())
	}
	if w.DuplicatesBound >= 0 && w.Duplicates > w.DuplicatesBound {
		w.fail("more duplicates than the bound")
	}
	if w.RecoveryBound > 0 && w.Recovery > w.RecoveryBound {
		w.fail("recovery took longer than the bound")
	}
}

// fail notes what is wrong.
func (w *Row) fail(why string) {
	w.Pass = false
	w.Why = append(w.Why, why)
}

// verdict is a word for what came of the run.
func (w *Row) verdict() string {
	switch {
	case w.Void:
		return "ERROR"
	case w.Pass:
		return "pass"
	}
	return "FAIL"
}

// measured notes how long recovery took, if it was measured.
func (w *Row) measured(took, bound time.Duration) {
	w.Recovery, w.RecoveryBound = took.Seconds(), bound.Seconds()
}
