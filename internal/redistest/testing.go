package redistest

import (
	"os"
	"testing"
)

// Backend names one kind of server that a test can ask for.
type Backend string

// The back ends, in the order of what they cost: 20 ms, then 2 s for each cluster.
const (
	Single  Backend = "redis"   // one plain server
	Strict  Backend = "strict"  // a cluster of one node
	Masters Backend = "masters" // a cluster of three masters
)

// config is what Launch needs for b.
func (b Backend) config() Config {
	switch b {
	case Strict:
		return Config{Masters: 1}
	case Masters:
		return Config{Masters: 3}
	}
	return Config{}
}

// requireEnv makes a missing redis-server an error. CI sets it, so that no suite passes because it did not run.
const requireEnv = "DISPATCH_TEST_REQUIRE"

// Require skips the test when Redis is not installed, or fails it when DISPATCH_TEST_REQUIRE=all.
func Require(t testing.TB, backend Backend) {
	t.Helper()
	err := Installed()
	switch {
	case err == nil:
	case os.Getenv(requireEnv) == "all":
		t.Fatalf("back end %q: %v, and %s=all demands it", backend, err, requireEnv)
	default:
		t.Skipf("back end %q did not run: %v (%s=all makes that a failure)", backend, err, requireEnv)
	}
}

// Start gives the test a plain server of its own. extraArgs are added to the command line of redis-server.
func Start(t testing.TB, extraArgs ...string) *Server {
	t.Helper()
	return start(t, Single, Config{Args: extraArgs})
}

// StartStrictCluster gives the test a cluster of one node of its own. It takes two seconds; see [Shared].
func StartStrictCluster(t testing.TB) *Server {
	t.Helper()
	return start(t, Strict, Config{Masters: 1})
}

// StartMasters gives the test a cluster of n masters of its own, n at least 3. It takes two seconds; see [Shared].
func StartMasters(t testing.TB, n int) *Server {
	t.Helper()
	return start(t, Masters, Config{Masters: n})
}

func start(t testing.TB, backend Backend, cfg Config) *Server {
	t.Helper()
	Require(t, backend)
	s, err := Launch(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}
