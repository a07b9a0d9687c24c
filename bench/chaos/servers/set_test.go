package servers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch/internal/redistest"
)

const patience = 20 * time.Second

// launch starts a set for a test, or skips the test where Redis is missing.
func launch(t *testing.T, start func(Config) (*Set, error), cfg Config) *Set {
	t.Helper()
	redistest.Require(t, redistest.Masters)
	begun := time.Now()
	s, err := start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	t.Logf("%d nodes started in %v", len(s.Nodes), since(begun))
	return s
}

func since(begun time.Time) time.Duration { return time.Since(begun).Round(time.Millisecond) }

// dial makes a client for the addresses of a URL of a set.
func dial(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	addrs := strings.Split(strings.TrimSuffix(strings.TrimPrefix(url, "redis://"), "/0"), ",")
	c := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs})
	t.Cleanup(func() { c.Close() })
	return c
}

// soon is a context for what must happen.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func requireReady(t *testing.T, s *Set) {
	t.Helper()
	begun := time.Now()
	if err := s.WaitReady(soon(t)); err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %v", since(begun))
}

// set writes, and tries again for a while: a client that was cut off finds its way back.
func set(t *testing.T, c redis.UniversalClient, key, value string) {
	t.Helper()
	ctx := soon(t)
	if err := await(ctx, func() error { return c.Set(ctx, key, value, 0).Err() }); err != nil {
		t.Fatalf("SET %s: %v", key, err)
	}
}

func requireValue(t *testing.T, c redis.UniversalClient, key, want string) {
	t.Helper()
	ctx := soon(t)
	var got string
	if err := await(ctx, func() (err error) {
		if got, err = c.Get(ctx, key).Result(); err == redis.Nil {
			err = nil
		}
		return err
	}); err != nil || got != want {
		t.Fatalf("%s is %q, %v; want %q", key, got, err, want)
	}
}

func requireRole(t *testing.T, n *Node, want string) {
	t.Helper()
	if role, err := n.Command("ROLE"); err != nil || !strings.HasPrefix(role, want) {
		t.Fatalf("%s is %.20q, %v; want %s", n.Direct(), role, err, want)
	}
}

func TestSingle(t *testing.T) {
	t.Parallel()
	s := launch(t, Single, Config{AOF: true, Args: []string{"--maxmemory", "64mb"}})
	c, direct, n := dial(t, s.URL()), dial(t, s.DirectURL()), s.Primary()
	set(t, c, "k", "v")
	requireValue(t, direct, "k", "v")
	if got := n.Proxy().Stats(); got.Dials == 0 || got.Requests == 0 {
		t.Errorf("the client went past the proxy: %+v", got)
	}
	if limit, err := n.Command("CONFIG", "GET", "maxmemory"); limit != "maxmemory\n67108864" || err != nil {
		t.Errorf("extra arguments did not arrive: %q, %v", limit, err)
	}
	n.Kill()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.WaitReady(ctx); err == nil {
		t.Error("a set is ready whose only node was killed")
	}
	if err := n.Restart(); err != nil {
		t.Fatal(err)
	}
	requireReady(t, s)
	requireValue(t, c, "k", "v")
	if master, err := s.MasterOf("k"); master != n || err != nil {
		t.Errorf("the master is %v, %v", master, err)
	}
	if s.Replica() != nil || s.Promote(nil) == nil || s.Promote(n) == nil {
		t.Error("a single server has a replica")
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	s := launch(t, Single, Config{})
	c := dial(t, s.URL())
	set(t, c, "k", "v")
	if err := s.Primary().Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	one := redis.NewClient(&redis.Options{Addr: s.Primary().Addr(), ContextTimeoutEnabled: true})
	defer one.Close()
	if err := one.Ping(ctx).Err(); err == nil {
		t.Error("a paused server answers")
	}
	if err := s.Primary().Resume(); err != nil {
		t.Fatal(err)
	}
	requireReady(t, s)
	requireValue(t, c, "k", "v")
}

// The primary hands over while it is there, and everybody follows: clients by the same address, the old primary as a replica.
func TestPromote(t *testing.T) {
	t.Parallel()
	s := launch(t, Replicated, Config{})
	c, url := dial(t, s.URL()), s.URL()
	for i := range 3 {
		key := fmt.Sprint("k", i)
		old, next := s.Primary(), s.Replica()
		set(t, c, key, "v")
		requireReady(t, s)
		if err := s.Promote(next); err != nil {
			t.Fatal(err)
		}
		if s.Primary() != next || s.Replica() != old || s.URL() != url || s.DirectURL() != "redis://"+next.Direct()+"/0" {
			t.Fatalf("after Promote: primary %s at %s", s.Primary().Direct(), s.URL())
		}
		requireReady(t, s)
		requireRole(t, next, "master")
		requireRole(t, old, "slave")
		requireValue(t, c, key, "v")
	}
}

func TestPromoteAfterAKill(t *testing.T) {
	t.Parallel()
	s := launch(t, Replicated, Config{})
	c := dial(t, s.URL())
	set(t, c, "k", "v")
	requireReady(t, s)
	old := s.Primary()
	begun := time.Now()
	old.Kill()
	if err := s.Promote(s.Replica()); err != nil {
		t.Fatal(err)
	}
	requireValue(t, c, "k", "v")
	set(t, c, "k", "w")
	t.Logf("written again %v after the kill", since(begun))
	requireReady(t, s)
	if err := old.Restart(); err != nil {
		t.Fatal(err)
	}
	requireReady(t, s)
	requireRole(t, old, "slave")
	if got, err := old.Command("GET", "k"); got != "w" || err != nil {
		t.Errorf("the old primary has %q, %v", got, err)
	}
}

// A replica that is paused does not get what is acknowledged meanwhile, and so it is lost with the primary. What fits into the
// buffers of the connection arrives when it goes on: more than that is written.
func TestReplicaLags(t *testing.T) {
	t.Parallel()
	s := launch(t, Replicated, Config{})
	c := dial(t, s.URL())
	set(t, c, "before", "v")
	requireReady(t, s)
	replica := s.Replica()
	if err := replica.Pause(); err != nil {
		t.Fatal(err)
	}
	value := strings.Repeat("x", 1<<20)
	for i := range 32 {
		set(t, c, fmt.Sprint("big", i), value)
	}
	set(t, c, "late", "v")
	s.Primary().Kill()
	if err := replica.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := s.Promote(replica); err != nil {
		t.Fatal(err)
	}
	requireValue(t, c, "before", "v")
	requireValue(t, c, "late", "")
}

// A primary that was thought dead wakes up, and does not go on as one.
func TestPausedPrimaryComesBackAsReplica(t *testing.T) {
	t.Parallel()
	s := launch(t, Replicated, Config{})
	c := dial(t, s.URL())
	old := s.Primary()
	if err := old.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := s.Promote(s.Replica()); err != nil {
		t.Fatal(err)
	}
	set(t, c, "k", "v")
	if err := old.Resume(); err != nil {
		t.Fatal(err)
	}
	requireReady(t, s)
	requireRole(t, old, "slave")
}
