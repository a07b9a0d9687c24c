package redistest

import (
	"errors"
	"strings"
	"testing"
)

// Another process may take the port between the check and the bind. PING is then answered, by the wrong server.
func TestTakenPortIsNoticed(t *testing.T) {
	t.Parallel()
	taken := Start(t)
	n, err := placeNode(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.stop()
	_, port, _ := strings.Cut(taken.Addr(), ":")
	n.addr, n.args = taken.Addr(), append(n.args, "--port", port)
	if err := n.start(); !errors.Is(err, errPortTaken) {
		t.Errorf("got %v, want errPortTaken", err)
	}
}

func TestBadArgumentShowsTheLog(t *testing.T) {
	t.Parallel()
	Require(t, Single)
	_, err := Launch(Config{Args: []string{"--no-such-directive", "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-directive") {
		t.Errorf("got %v, want what redis-server printed", err)
	}
}

func TestClusterOfTwoIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := Launch(Config{Masters: 2}); err == nil {
		t.Error("Launch accepted two masters")
	}
}

func TestPortsAreBelowTheEphemeralRange(t *testing.T) {
	t.Parallel()
	for range 20 {
		port, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		if port < portFrom || port >= portTo {
			t.Errorf("port %d", port)
		}
	}
}

func TestSharedIsStartedOnce(t *testing.T) {
	t.Parallel()
	first, second := Shared(t, Single), Shared(t, Single)
	if first != second {
		t.Error("two calls, two servers")
	}
}

// skipping stands in for the test that calls Require, and notes how it would end.
type skipping struct {
	testing.TB
	skipped, failed bool
}

func (s *skipping) Helper()               {}
func (s *skipping) Skipf(string, ...any)  { s.skipped = true; panic(s) }
func (s *skipping) Fatalf(string, ...any) { s.failed = true; panic(s) }

func TestRequireWithoutRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, tc := range []struct {
		env             string
		skipped, failed bool
	}{
		{"", true, false},
		{"all", false, true},
	} {
		t.Setenv(requireEnv, tc.env)
		s := &skipping{TB: t}
		func() {
			defer func() { recover() }()
			Require(s, Single)
		}()
		if s.skipped != tc.skipped || s.failed != tc.failed {
			t.Errorf("%s=%q: skipped %v, failed %v", requireEnv, tc.env, s.skipped, s.failed)
		}
	}
	if _, err := Launch(Config{}); err == nil {
		t.Error("Launch finds no redis-server, and does not say so")
	}
}

// launch is Start with a Config.
func launch(t *testing.T, cfg Config) *Server {
	t.Helper()
	return start(t, Single, cfg)
}

// do is Command for replies that must not be errors.
func do(t *testing.T, s *Server, args ...string) string {
	t.Helper()
	reply, err := s.Command(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return reply
}

func requirePong(t *testing.T, s *Server) {
	t.Helper()
	if got := do(t, s, "PING"); got != "PONG" {
		t.Fatalf("PING answers %q", got)
	}
}
