package main

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The example checks itself what it shows.
func TestRun(t *testing.T) {
	run(t.Context(), "redis://"+miniredis.RunT(t).Addr())
}
