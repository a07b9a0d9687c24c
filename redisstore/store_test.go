package redisstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// infoHook answers INFO.
func infoHook(answer map[string]string) hook {
	return func(ctx context.Context, _ string, cmd redis.Cmder, next redis.ProcessHook) error {
		if text, ok := cmd.(*redis.StringCmd); ok && cmd.Name() == "info" {
			section, _ := cmd.Args()[1].(string)
			text.SetVal("# " + section + "\r\n" + answer[section] + "\r\n")
			return nil
		}
		return next(ctx, cmd)
	}
}

// newWith makes a store, and returns what it warned of.
func newWith(t *testing.T, client redis.UniversalClient) (warnings string, err error) {
	t.Helper()
	var log bytes.Buffer
	_, err = New(client, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	return log.String(), err
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := New(nil, Options{})
	var field *dispatch.FieldError
	if !errors.As(err, &field) || field.Field != "client" {
		t.Errorf("nil client: got %v", err)
	}
	for version, good := range map[string]bool{
		"2.8.19": false, "5.0.14": false, "6.0.20": false, "6.1.240": false, "6.2.0": true, "7.0.15": true, "10.1": true,
		"": true, "unknown": true, "255.255.255": true,
	} {
		client := dialMini(t, miniredis.NewMiniRedis(), infoHook(map[string]string{"server": "redis_version:" + version}))
		_, err := newWith(t, client)
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), version) {
			t.Errorf("version %q: got %v", version, err)
		}
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	server := miniredis.NewMiniRedis()
	client := dialMini(t, server)
	for range 2 {
		if warnings, err := newWith(t, client); err != nil || warnings != "" {
			t.Fatalf("got %v, %s", err, warnings)
		}
	}
	if got, err := server.Get("dispatch:{~}:schema"); err != nil || got != "1" {
		t.Errorf("schema is %q, %v", got, err)
	}
	ok(t, server.Set("dispatch:{~}:schema", "2"))
	_, err := newWith(t, client)
	if err == nil || !strings.Contains(err.Error(), "schema version 2; this program knows version 1") {
		t.Errorf("got %v", err)
	}
	ok(t, server.Set("dispatch:{~}:schema", "1"))
	if _, err := newWith(t, client); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestNewWarns(t *testing.T) {
	t.Parallel()
	mini := func(change func(*redis.Options), hooks ...redis.Hook) *redis.Client {
		server := miniredis.NewMiniRedis()
		o := miniOptions(server)
		change(o)
		client := redis.NewClient(o)
		t.Cleanup(func() {
			client.Close()
			server.Close()
		})
		for _, h := range hooks {
			client.AddHook(h)
		}
		return client
	}
	evicting := infoHook(map[string]string{"memory": "maxmemory_policy:allkeys-lru"})
	careful := infoHook(map[string]string{"memory": "maxmemory_policy:noeviction"})
	for _, tc := range []struct {
		name   string
		client redis.UniversalClient
		want   string
	}{
		{"all is well", mini(func(*redis.Options) {}, careful), ""},
		{"eviction", mini(func(*redis.Options) {}, evicting), "may evict keys"},
		{"context", mini(func(o *redis.Options) { o.ContextTimeoutEnabled = false }), "calls may outlast their context"},
	} {
		warnings, err := newWith(t, tc.client)
		ok(t, err)
		if !strings.Contains(warnings, tc.want) || tc.want == "" && warnings != "" {
			t.Errorf("%s: warned of %q", tc.name, warnings)
		}
	}

	// A cluster client as go-redis makes it by default.
	server := redistest.Shared(t, redistest.Strict)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: server.Addrs})
	t.Cleanup(func() { client.Close() })
	warnings, err := newWith(t, client)
	ok(t, err)
	for _, want := range []string{"learns late of a failover", "calls may outlast their context"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("cluster client: warned of %q", warnings)
		}
	}
}

func TestEvictionOfARealServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	client, err := openClient(t.Context(), server.URL())
	ok(t, err)
	defer client.Close()
	if warnings, err := newWith(t, client); err != nil || !strings.Contains(warnings, "maxmemory_policy=allkeys-lru") {
		t.Errorf("warned of %q, %v", warnings, err)
	}
}

func TestCloseLeavesAForeignClientOpen(t *testing.T) {
	t.Parallel()
	client := dialMini(t, miniredis.NewMiniRedis())
	s := newTestStore(t, client, Options{}, "")
	ok(t, s.Close())
	ok(t, client.Ping(t.Context()).Err())
	ok(t, s.Close())
}

// A server that is restarting is waited for.
func TestNewWaitsForTheServer(t *testing.T) {
	t.Parallel()
	f := newFaults()
	loading := fault{err: said("LOADING Redis is loading the dataset in memory")}
	f.plan("ping", loading, fault{err: io.EOF}, loading)
	f.plan("setnx", loading)
	f.plan("get", loading)
	if _, err := newWith(t, dialMini(t, miniredis.NewMiniRedis(), f.hook())); err != nil {
		t.Error(err)
	}
	if f.sent("ping") != 4 {
		t.Errorf("%d pings", f.sent("ping"))
	}
}

// Production reads the server's clock. Every other test of a real server gives scripts their time.
func TestTimeOfTheServer(t *testing.T) {
	t.Parallel()
	for _, b := range []struct {
		kind     redistest.Backend
		preamble string
	}{{redistest.Single, ""}, {redistest.Strict, strictPreamble}, {redistest.Masters, ""}} {
		t.Run(string(b.kind), func(t *testing.T) {
			t.Parallel()
			s := &testStore{Store: newTestStore(t, dialReal(t, b.kind), Options{Prefix: "time"}, b.preamble)}
			defer s.DeleteQueue(context.WithoutCancel(t.Context()), mail)
			ctx := t.Context()
			workOnEverything(t, s)

			before := time.Now().Add(-time.Millisecond)
			_, err := s.CreateQueue(ctx, dispatch.Queue{Name: mail, Rate: 0.01, Burst: 2})
			ok(t, err)
			later := task("later")
			later.Delay = time.Hour
			if r := enqueue(t, s, task("a"), task("b"), task("c"), later); r.Wait != 0 {
				t.Errorf("wait %v", r.Wait)
			}
			r := claim(t, s, bob, 1, 10)
			if len(r.Leased) != 2 || r.Block != dispatch.BlockedByRate || r.Wait < 90*time.Second || r.Wait > 100*time.Second {
				t.Errorf("leased %s, block %q, wait %v", ids(r.Leased), r.Block, r.Wait)
			}
			for _, l := range r.Leased {
				if l.At.Before(before) || l.At.After(time.Now().Add(time.Millisecond)) || l.Lease.Token/1000 != l.At.UnixMilli() {
					t.Errorf("leased at %v under token %d", l.At, l.Lease.Token)
				}
			}
			if r := claim(t, s, bob, 2, 10); len(r.Leased) != 0 || r.Block != dispatch.BlockedByRate {
				t.Errorf("leased %s, block %q", ids(r.Leased), r.Block)
			}
			info, err := s.Task(ctx, mail, r.Leased[0].Task.ID)
			ok(t, err)
			if left := info.LeaseEnd.Sub(r.Leased[0].At); left != lease {
				t.Errorf("the lease lasts %v", left)
			}
			sound(t, s, mail)
		})
	}
}
