package main

import (
	"context"
	"os"
	"testing"

	"github.com/dispatchkit/dispatch/internal/redistest"
)

// A scenario that was never begun has shown nothing.
func TestWhatCannotBeSetUpIsNoVerdict(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	sc := Scenario{Name: "nowhere", Servers: "no such", Bound: Bound{Recovery: 1}, Run: func(context.Context, *Run) error { return nil }}
	row, err := play(t.Context(), sc, settings{quick: true, keep: t.TempDir()})
	if err != nil || !row.Void || row.Pass || len(row.Why) != 1 || row.Kept == "" {
		t.Errorf("%+v, %v", row, err)
	}
	requireEmpty(t, os.TempDir())
}

// Nor has one that was interrupted.
func TestAnInterruptedScenarioHasNoRow(t *testing.T) {
	redistest.Require(t, redistest.Single)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	sc := Scenario{Name: "cut-short", Run: func(ctx context.Context, r *Run) error {
		interrupt()
		<-ctx.Done()
		return context.Cause(ctx)
	}}
	if row, err := play(ctx, sc, settings{quick: true, keep: t.TempDir()}); err == nil {
		t.Errorf("a row: %+v", row)
	}
	requireEmpty(t, os.TempDir())
}
