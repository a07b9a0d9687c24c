package redisstore

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
	"github.com/dispatchkit/dispatch/redisstore/storetest"
)

// strictPreamble makes Redis refuse a script that touches a key of another slot, declared or not.
const strictPreamble = "#!lua\n"

// epoch is when the time of test stores begins.
var epoch = time.Date(2026, time.March, 1, 12, 0, 0, 123_000_000, time.UTC)

var quiet = slog.New(slog.DiscardHandler)

// testStore is a store whose time the test moves.
type testStore struct {
	*Store
	advance func(d time.Duration)
	// another makes another client of the same data; it has hooks.
	another func(t testing.TB, hooks ...redis.Hook) *testStore
}

// backend opens stores of one kind of server, each under a prefix of its own.
type backend struct {
	name string
	// open makes a store; the client has hooks.
	open func(t testing.TB, hooks ...redis.Hook) *testStore
}

// backends are all kinds of servers. The clusters take two seconds to start, which TestMain's servers do once.
func backends(t *testing.T) []backend {
	return []backend{
		{"miniredis", openMini},
		{"redis", realBackend(t, redistest.Single, "")},
		{"strict", realBackend(t, redistest.Strict, strictPreamble)},
		{"masters", realBackend(t, redistest.Masters, "")},
	}
}

func harness(b backend) storetest.Harness {
	return storetest.Harness{
		Open: func(t testing.TB) dispatch.Store { return b.open(t) },
		Advance: func(_ testing.TB, s dispatch.Store, d time.Duration) {
			s.(*testStore).advance(d)
		},
		Check: func(ctx context.Context, s dispatch.Store, queue string) error {
			return s.(*testStore).CheckInvariants(ctx, queue)
		},
		Client: func(t testing.TB, s dispatch.Store, step func(string, func()) bool) dispatch.Store {
			return steppedClient(t, s.(*testStore), step)
		},
	}
}

// steppedClient is another client of a store, of which each command is a step. The server knows all scripts, so that no script
// is sent twice because it does not.
func steppedClient(t testing.TB, s *testStore, step func(transition string, send func()) (lost bool)) *testStore {
	for _, sc := range listed(s.scripts) {
		ok(t, s.client.ScriptLoad(t.Context(), sc.source).Err())
	}
	return s.another(t, hook(func(ctx context.Context, script string, cmd redis.Cmder, next redis.ProcessHook) (err error) {
		name := script
		if name == "" {
			name = cmd.Name()
		}
		if step(name, func() { err = next(ctx, cmd) }) && err == nil {
			err = io.EOF
		}
		cmd.SetErr(err)
		return err
	}))
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, b := range backends(t) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, harness(b))
		})
	}
}

// openMini makes a store on a simulated server of its own. Its scripts read the server's time, which the test sets.
func openMini(t testing.TB, hooks ...redis.Hook) *testStore {
	t.Helper()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	server.SetTime(epoch)
	var now atomic.Int64
	now.Store(epoch.UnixMilli())
	s := &testStore{advance: func(d time.Duration) { server.SetTime(time.UnixMilli(now.Add(d.Milliseconds()))) }}
	s.another = func(t testing.TB, hooks ...redis.Hook) *testStore {
		client := redis.NewClient(miniOptions(server))
		t.Cleanup(func() { client.Close() })
		for _, h := range hooks {
			client.AddHook(h)
		}
		return &testStore{Store: newTestStore(t, client, Options{}, ""), advance: s.advance}
	}
	s.Store = newTestStore(t, dialMini(t, server, hooks...), Options{}, "")
	return s
}

// dialMini makes a client of a simulated server, without a socket.
func dialMini(t testing.TB, server *miniredis.Miniredis, hooks ...redis.Hook) *redis.Client {
	t.Helper()
	client := redis.NewClient(miniOptions(server))
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	for _, h := range hooks {
		client.AddHook(h)
	}
	return client
}

func miniOptions(server *miniredis.Miniredis) *redis.Options {
	return &redis.Options{
		Addr:                  "127.0.0.1:6379", // never dialled
		Dialer:                func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
		ContextTimeoutEnabled: true,
		MaxRetries:            -1,
		DisableIdentity:       true,
	}
}

// realBackend opens stores on the shared server of a kind. Nobody can move the TIME of a real server, so scripts get
// theirs from the test.
func realBackend(t *testing.T, kind redistest.Backend, preamble string) func(testing.TB, ...redis.Hook) *testStore {
	return func(t testing.TB, hooks ...redis.Hook) *testStore {
		t.Helper()
		prefix := "t" + rand.Text()
		var now atomic.Int64
		now.Store(epoch.UnixMilli())
		var another func(t testing.TB, hooks ...redis.Hook) *testStore
		another = func(t testing.TB, hooks ...redis.Hook) *testStore {
			s := newTestStore(t, dialReal(t, kind, hooks...), Options{Prefix: prefix}, preamble)
			s.now = func() string { return strconv.FormatInt(now.Load(), 10) }
			return &testStore{Store: s, advance: func(d time.Duration) { now.Add(d.Milliseconds()) }, another: another}
		}
		return another(t, hooks...)
	}
}

// dialReal makes a client, as Open makes it, of the shared server of a kind.
func dialReal(t testing.TB, kind redistest.Backend, hooks ...redis.Hook) redis.UniversalClient {
	t.Helper()
	server := redistest.Shared(t, kind)
	client, err := openClient(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	for _, h := range hooks {
		client.AddHook(h)
	}
	return client
}

func newTestStore(t testing.TB, client redis.UniversalClient, o Options, preamble string) *Store {
	t.Helper()
	if o.Logger == nil {
		o.Logger = quiet
	}
	s, err := newStore(t.Context(), client, o, preamble)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRandom runs the model. Failures say their seed: DISPATCH_TEST_SEED=… repeats the run.
func TestRandom(t *testing.T) {
	t.Parallel()
	for _, b := range backends(t) {
		for _, v := range []struct {
			name string
			opts storetest.RandomOptions
		}{
			{"plain", storetest.RandomOptions{}},
			{"limits", storetest.RandomOptions{Limits: true}},
			{"repeated", storetest.RandomOptions{Repeat: true}},
			{"limits and repeated", storetest.RandomOptions{Limits: true, Repeat: true}},
			{"clients", storetest.RandomOptions{Clients: 3, Repeat: true, Limits: true, Steps: 100}},
		} {
			t.Run(b.name+"/"+v.name, func(t *testing.T) {
				t.Parallel()
				storetest.Random(t, harness(b), v.opts)
			})
		}
	}
}
