package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch/internal/redistest"
)

// onRedis runs a test with a client of each protocol through a proxy to each server.
func onRedis(t *testing.T, test func(*testing.T, *Proxy, *redis.Client)) {
	t.Helper()
	t.Parallel()
	servers := map[string]func(*testing.T) string{
		"redis": func(t *testing.T) string { return redistest.Start(t).Addr() },
		"mini":  func(t *testing.T) string { return miniredis.RunT(t).Addr() },
	}
	for name, start := range servers {
		for _, protocol := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s RESP%d", name, protocol), func(t *testing.T) {
				t.Parallel()
				p := open(t, start(t))
				c := redis.NewClient(&redis.Options{Addr: p.Addr(), Protocol: protocol, MaxRetries: -1, DisableIdentity: true})
				t.Cleanup(func() { c.Close() })
				test(t, p, c)
			})
		}
	}
}

// Half of all commands of many connections answer an error, at random places of pipelines. Each caller gets its own answer.
func TestManyPipelinesKeepTheirOrder(t *testing.T) {
	onRedis(t, func(t *testing.T, p *Proxy, c *redis.Client) {
		ctx := t.Context()
		hit := map[bool]string{false: "request", true: "reply"}
		for _, reply := range []bool{false, true} {
			p.Lose(Loss{Reply: reply, Error: "ERR lost", Match: func(r Request) bool {
				return r.Name == "ECHO" && strings.HasSuffix(string(r.Args[1]), "odd")
			}})
			var group sync.WaitGroup
			for i := range 8 {
				group.Go(func() {
					for round := range 20 {
						requirePipeline(ctx, t, c, fmt.Sprintf("%s %d %d", hit[reply], i, round))
					}
				})
			}
			group.Wait()
		}
	})
}

func requirePipeline(ctx context.Context, t *testing.T, c *redis.Client, text string) {
	pipe := c.Pipeline()
	want := make([]string, 30)
	got := make([]*redis.Cmd, len(want))
	for i := range want {
		want[i] = fmt.Sprintf("%s %d %s", text, i, []string{"even", "odd"}[i%2])
		got[i] = pipe.Do(ctx, "ECHO", want[i])
	}
	pipe.Exec(ctx)
	for i, cmd := range got {
		switch echo, err := cmd.Text(); {
		case i%2 == 0 && (err != nil || echo != want[i]):
			t.Errorf("got %q, %v; want %q", echo, err, want[i])
		case i%2 == 1 && (err == nil || err.Error() != "ERR lost"):
			t.Errorf("got %q, %v; want the error", echo, err)
		}
	}
}

// The reply of a script is lost after it ran, whichever way the client sent it.
func TestLostReplyOfAScript(t *testing.T) {
	onRedis(t, func(t *testing.T, p *Proxy, c *redis.Client) {
		ctx := t.Context()
		script := redis.NewScript(`return redis.call("INCR", KEYS[1])`)
		lost := Loss{Reply: true, Times: 1, Match: func(r Request) bool { return r.SHA == script.Hash() }}
		for i, run := range []func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd{script.Eval, script.EvalSha} {
			p.Lose(lost)
			if err := run(ctx, c, []string{"n"}).Err(); err == nil || errors.As(err, new(redis.Error)) {
				t.Errorf("the caller got %v, want an error of the connection", err)
			}
			if n, err := c.Get(ctx, "n").Int(); n != i+1 || err != nil {
				t.Errorf("n is %d, %v; want %d", n, err, i+1)
			}
		}
		if got := p.Stats(); got.LostReplies != 2 || got.LostRequests != 0 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestLostRequestDoesNotRun(t *testing.T) {
	onRedis(t, func(t *testing.T, p *Proxy, c *redis.Client) {
		ctx := t.Context()
		p.Lose(Loss{Times: 1, Match: func(r Request) bool { return r.Name == "INCR" }})
		if err := c.Incr(ctx, "n").Err(); err == nil {
			t.Error("the caller got an answer")
		}
		if n, err := c.Incr(ctx, "n").Result(); n != 1 || err != nil {
			t.Errorf("n is %d, %v; want 1", n, err)
		}
	})
}

func TestTransactionLosesItsReply(t *testing.T) {
	onRedis(t, func(t *testing.T, p *Proxy, c *redis.Client) {
		ctx := t.Context()
		p.Lose(Loss{Reply: true, Times: 1, Match: func(r Request) bool { return r.Name == "EXEC" }})
		if _, err := c.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Incr(ctx, "n")
			return pipe.Incr(ctx, "n").Err()
		}); err == nil {
			t.Error("the caller got an answer")
		}
		if n, err := c.Get(ctx, "n").Int(); n != 2 || err != nil {
			t.Errorf("n is %d, %v; want 2", n, err)
		}
	})
}

// Messages come through while commands on the same connection are hit.
func TestSubscription(t *testing.T) {
	onRedis(t, func(t *testing.T, p *Proxy, c *redis.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		s := c.Subscribe(ctx, "a", "b")
		defer s.Close()
		requireMessages(ctx, t, s, func(m any) bool { _, ok := m.(*redis.Subscription); return ok }, 2)
		p.Lose(Loss{Error: "ERR lost", Match: func(r Request) bool { return r.Name == "PING" }})
		for range 3 {
			if err := c.Publish(ctx, "b", "hello").Err(); err != nil {
				t.Fatal(err)
			}
			requireMessages(ctx, t, s, func(m any) bool { _, ok := m.(*redis.Message); return ok }, 1)
			if err := s.Ping(ctx); err != nil {
				t.Fatal(err)
			}
			if m, err := s.Receive(ctx); err == nil || err.Error() != "ERR lost" {
				t.Errorf("PING of the subscriber got %v, %v", m, err)
			}
		}
		if err := s.Unsubscribe(ctx); err != nil {
			t.Fatal(err)
		}
		requireMessages(ctx, t, s, func(m any) bool { _, ok := m.(*redis.Subscription); return ok }, 2)
	})
}

func requireMessages(ctx context.Context, t *testing.T, s *redis.PubSub, want func(any) bool, n int) {
	t.Helper()
	for range n {
		m, err := s.Receive(ctx)
		if err != nil || !want(m) {
			t.Fatalf("got %v, %v", m, err)
		}
	}
}

// A client that is cut off finds its way back by itself.
func TestClientOutlivesFaults(t *testing.T) {
	onRedis(t, func(t *testing.T, p *Proxy, c *redis.Client) {
		faults := map[string][2]func(){
			"cut":        {p.Cut, func() {}},
			"refuse":     {func() { p.Refuse(); p.Cut() }, func() { requireAccept(t, p) }},
			"black hole": {func() { p.BlackHole(true) }, func() { p.BlackHole(false) }},
			"half open":  {func() { p.HalfOpen(true) }, func() { p.HalfOpen(false) }},
		}
		for name, fault := range faults {
			ping := func(limit time.Duration) error {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				return c.WithTimeout(limit).Ping(ctx).Err()
			}
			if err := ping(patience); err != nil {
				t.Fatalf("before %s: %v", name, err)
			}
			fault[0]()
			if err := ping(brevity); err == nil && name != "cut" {
				t.Errorf("%s: a command is answered", name)
			}
			fault[1]()
			for deadline := time.Now().Add(patience); ping(patience) != nil; {
				if time.Now().After(deadline) {
					t.Fatalf("after %s: no answer for %v", name, patience)
				}
			}
		}
	})
}

func requireAccept(t *testing.T, p *Proxy) {
	t.Helper()
	if err := p.Accept(); err != nil {
		t.Fatal(err)
	}
}
