package redistest

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSingle(t *testing.T) {
	t.Parallel()
	s := Start(t, "--maxmemory", "64mb")
	requirePong(t, s)
	if want := "redis://" + s.Addr() + "/0"; s.URL() != want {
		t.Errorf("URL is %q, want %q", s.URL(), want)
	}
	if got := do(t, s, "CONFIG", "GET", "maxmemory"); got != "maxmemory\n67108864" {
		t.Errorf("extra arguments did not arrive: %q", got)
	}
}

func TestCommandReplies(t *testing.T) {
	t.Parallel()
	s := Shared(t, Single)
	for _, tc := range []struct{ name, script, want string }{
		{"status", "return redis.status_reply('FINE')", "FINE"},
		{"integer", "return 42", "42"},
		{"bulk with line ends", "return 'a\\r\\nb'", "a\r\nb"},
		{"nil", "return false", ""},
		{"nested array", "return {1, {'x', 'y'}, 2}", "1\nx\ny\n2"},
		{"empty array", "return {}", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := do(t, s, "EVAL", tc.script, "0"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	var refused replyError
	if _, err := s.Command("NOSUCHCOMMAND"); !errors.As(err, &refused) {
		t.Errorf("got %v, want the server's error", err)
	}
}

func TestStrictCluster(t *testing.T) {
	t.Parallel()
	s := Shared(t, Strict)
	if _, err := s.Command("MGET", "{a}x", "{b}x"); err == nil || !strings.HasPrefix(err.Error(), "CROSSSLOT") {
		t.Errorf("keys of two slots: got %v, want CROSSSLOT", err)
	}
	if got := do(t, s, "SET", "{a}x", "1"); got != "OK" {
		t.Errorf("SET answers %q", got)
	}
}

func TestMastersKnowAllSlots(t *testing.T) {
	t.Parallel()
	s := Shared(t, Masters)
	if len(s.Addrs) != 3 || len(s.PIDs()) != 3 {
		t.Fatalf("got %d addresses and %d processes, want 3", len(s.Addrs), len(s.PIDs()))
	}
	// Slot by slot each key has one owner, and the other two nodes name it.
	for _, key := range []string{"{a}", "{b}", "{c}", "{d}", "{e}"} {
		owners := 0
		for i := range s.Addrs {
			_, err := s.Node(i).Command("SET", key, "1")
			switch {
			case err == nil:
				owners++
			case !strings.HasPrefix(err.Error(), "MOVED"):
				t.Errorf("SET %s on node %d: %v", key, i, err)
			}
		}
		if owners != 1 {
			t.Errorf("%s has %d owners", key, owners)
		}
	}
}

// A master that comes back finds its place, and the cluster serves all slots again.
func TestMastersRestart(t *testing.T) {
	t.Parallel()
	s := StartMasters(t, 3)
	s.Node(1).Kill()
	requirePong(t, s)
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := awaitCluster(s.Addrs, len(s.Addrs)); err != nil {
		t.Error(err)
	}
}

func TestFormCluster(t *testing.T) {
	t.Parallel()
	var members []*Server
	for range 6 {
		members = append(members, launch(t, Config{Member: true, Args: []string{"--repl-diskless-sync-delay", "0"}}))
	}
	if err := FormCluster(members, 1); err != nil {
		t.Fatal(err)
	}
	for i, m := range members {
		if got, want := strings.HasPrefix(do(t, m, "ROLE"), "master"), i < 3; got != want {
			t.Errorf("node %d is a master: %v, want %v", i, got, want)
		}
	}
	if _, err := Launch(Config{Member: true, Masters: 3}); err == nil {
		t.Error("a member with masters is started")
	}
}

func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		aof  bool
		want string
	}{
		{"without AOF the data is gone", false, ""},
		{"with AOF the data stays", true, "v"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := launch(t, Config{AOF: tc.aof})
			addr, pids := s.Addr(), s.PIDs()
			do(t, s, "SET", "k", "v")
			s.Kill()
			if _, err := s.Command("PING"); err == nil {
				t.Error("a killed server answers")
			}
			if err := s.Pause(); err == nil {
				t.Error("a killed server can be paused")
			}
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
			if s.Addr() != addr || slices.Equal(s.PIDs(), pids) {
				t.Errorf("restarted at %s as %v, was %s as %v", s.Addr(), s.PIDs(), addr, pids)
			}
			if got := do(t, s, "GET", "k"); got != tc.want {
				t.Errorf("GET after restart: %q, want %q", got, tc.want)
			}
			// The second restart ends a running server in order first.
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
			requirePong(t, s)
		})
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	s := Start(t)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := s.Command("PING")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("a paused server answers: %v", err)
	case <-time.After(100 * time.Millisecond): // a running server answers a thousand times faster
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Errorf("the command sent during the pause: %v", err)
	}
}

func TestRestartEndsAPausedServer(t *testing.T) {
	t.Parallel()
	s := Start(t)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	requirePong(t, s)
}

func TestStopRemovesEverything(t *testing.T) {
	t.Parallel()
	s := launch(t, Config{})
	dir := s.nodes[0].dir
	s.Stop()
	s.Stop()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
	if err := s.Restart(); err == nil {
		t.Error("a stopped server restarts")
	}
}
