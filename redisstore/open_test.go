package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

func asField(err error, field **dispatch.FieldError) bool { return errors.As(err, field) }

func TestOpenClient(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		url   string
		addrs []string // of a cluster when there are several
		user  string
		db    int
		tls   bool
	}{
		{url: "redis://localhost", addrs: []string{"localhost:6379"}},
		{url: "redis://localhost:7000/3", addrs: []string{"localhost:7000"}, db: 3},
		{url: "redis://u:se%20cret@h:1", addrs: []string{"h:1"}, user: "u"},
		{url: "rediss://h", addrs: []string{"h:6379"}, tls: true},
		{url: "redis://[::1]:7000", addrs: []string{"[::1]:7000"}},
		{url: "redis://[::1]", addrs: []string{"[::1]:6379"}},
		{url: "redis://a,b:2,c", addrs: []string{"a:6379", "b:2", "c:6379"}},
		{url: "rediss://u:p@a,b/?dial_timeout=1s", addrs: []string{"a:6379", "b:6379"}, user: "u", tls: true},
	} {
		t.Run(tc.url, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // nothing is dialled
			client, err := openClient(ctx, tc.url)
			ok(t, err)
			defer client.Close()
			switch c := client.(type) {
			case *redis.Client:
				o := c.Options()
				if len(tc.addrs) != 1 || o.Addr != tc.addrs[0] || o.Username != tc.user || o.DB != tc.db || (o.TLSConfig != nil) != tc.tls {
					t.Errorf("client of %s, user %q, db %d, tls %v", o.Addr, o.Username, o.DB, o.TLSConfig != nil)
				}
				if !o.ContextTimeoutEnabled || o.MaxRetries > 0 || o.ReadTimeout != ioTimeout || o.DialTimeout != dialTimeout {
					t.Errorf("client is not tuned: %+v", o)
				}
			case *redis.ClusterClient:
				o := c.Options()
				if strings.Join(o.Addrs, " ") != strings.Join(tc.addrs, " ") || o.Username != tc.user || (o.TLSConfig != nil) != tc.tls {
					t.Errorf("cluster of %v, user %q, tls %v", o.Addrs, o.Username, o.TLSConfig != nil)
				}
				if !o.ContextTimeoutEnabled || o.MaxRetries > 0 || o.ClusterStateReloadInterval != time.Second || o.ReadTimeout != ioTimeout ||
					o.MaxRedirects != maxRedirects {
					t.Errorf("client is not tuned: %+v", o)
				}
			default:
				t.Errorf("client is a %T", client)
			}
		})
	}
}

func TestOpenSentinel(t *testing.T) {
	t.Parallel()
	client, err := openClient(t.Context(), "redis://a:1,b:2?master_name=m")
	ok(t, err)
	defer client.Close()
	c, isClient := client.(*redis.Client)
	if !isClient || c.Options().Addr != "FailoverClient" || !c.Options().ContextTimeoutEnabled || c.Options().MaxRetries > 0 {
		t.Errorf("client is a %T", client)
	}
}

// An error says what is wrong, and never shows a password.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for url, problem := range map[string]string{
		"":                                "",
		"localhost:6379":                  "",
		"http://u:hunter2@h":              "",
		"redis://":                        "host 1",
		"redis://u:hunter2@":              "host 1",
		"redis://u:hunter2@a,":            "host 2",
		"redis://u:hunter2@a,,b":          "host 2",
		"redis://u:hunter2@:6379":         "host 1",
		"redis://::1":                     "host 1",
		"redis://u:hunter2%zz@h":          "",
		"redis://u:hunter2@h:port":        "",
		"redis://u:hunter2@h/nodb":        "",
		"redis://u:hunter2@h?nothing=1":   "",
		"redis://u:hunter2@a,b?nothing=1": "",
		"redis://u:hunter2@a?master_name=m&nothing=1": "",
	} {
		_, err := Open(t.Context(), url, Options{Logger: quiet})
		var field *dispatch.FieldError
		if !errors.As(err, &field) || field.Field != "url" || field.Problem == "" || !strings.Contains(field.Problem, problem) {
			t.Errorf("%s: got %v", url, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", url, err)
		}
	}
}

// Also what a server says, and what the network does, must not show it.
func TestPasswordStaysSecret(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	_, err := server.Command("CONFIG", "SET", "requirepass", "correct")
	ok(t, err)
	for _, url := range []string{"redis://:hunter2@" + server.Addr(), "redis://me:hunter2@" + server.Addr() + "/1", "redis://:hunter2@127.0.0.1:1"} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := Open(ctx, url, Options{Logger: quiet})
		cancel()
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", url, err)
		}
	}
	s, err := Open(t.Context(), "redis://:correct@"+server.Addr(), Options{Logger: quiet})
	ok(t, err)
	ok(t, s.Close())
}

func TestOpenFindsTheCluster(t *testing.T) {
	t.Parallel()
	for _, kind := range []redistest.Backend{redistest.Single, redistest.Strict, redistest.Masters} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := redistest.Shared(t, kind)
			s, err := Open(t.Context(), server.URL(), Options{Prefix: "open", Logger: quiet})
			ok(t, err)
			_, isCluster := s.client.(*redis.ClusterClient)
			if want := kind != redistest.Single; isCluster != want {
				t.Errorf("the client is a %T", s.client)
			}
			put(t, &testStore{Store: s}, "a")
			ok(t, s.DeleteQueue(t.Context(), mail))
			ok(t, s.Close())
			if err := s.Announce(t.Context(), []dispatch.Hint{{Queue: mail}}); !errors.Is(err, redis.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}
