package e2e

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/dispatchkit/dispatch/internal/redistest"
)

// TestMain runs the tests, or is a worker process when a test says so.
func TestMain(m *testing.M) {
	if config, ok := os.LookupEnv(childEnv); ok {
		os.Exit(runChild(config))
	}
	redis.SetLogger(quiet{}) // what the client says of the faults is no news here
	goleak.VerifyTestMain(redistest.Wrap(m))
}

// long says whether the tests that measure over time take their full time.
var long = os.Getenv("DISPATCH_TEST_LONG") == "1"

// eventually polls until ok holds, and fails the test after limit.
func eventually(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	if !within(limit, ok) {
		t.Fatalf("after %v still not: %s", limit, what)
	}
}

// within polls until ok holds and says whether it did before limit was over.
func within(limit time.Duration, ok func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); ; <-tick.C {
		if ok() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// lasts spends the time for which a fault is to last.
func lasts(d time.Duration) { <-time.After(d) }

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
