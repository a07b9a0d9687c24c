package redisstore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch/internal/redistest"
	"github.com/dispatchkit/dispatch/redisstore/storetest"
)

func TestEveryFileIsAScript(t *testing.T) {
	t.Parallel()
	files, err := luaFiles.ReadDir("lua")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, f := range files {
		if name := strings.TrimSuffix(f.Name(), ".lua"); !strings.HasPrefix(name, "lib_") {
			want = append(want, name)
		}
	}
	for _, s := range allScripts() {
		got = append(got, s.name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("scripts are %v, files %v", got, want)
	}
}

// Servers keep every text that they have seen: one that varies would fill them.
func TestScriptTextIsConstant(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	texts := make(map[string]string)
	spy := hook(func(ctx context.Context, script string, cmd redis.Cmder, next redis.ProcessHook) error {
		if name := cmd.Name(); name == "eval" || name == "evalsha" {
			text := cmd.Args()[1].(string)
			if keys := scriptKeys(cmd); script == "" && len(keys) == 1 && keys[0] == "dispatch:{~}:leader" {
				return next(ctx, cmd) // one of redsync's own, of which there are three
			}
			if script == "" {
				t.Errorf("%s of an unknown text", name)
			}
			mu.Lock()
			if known, ok := texts[name+script]; ok && known != text {
				t.Errorf("%s of %s with another text", name, script)
			}
			texts[name+script] = text
			mu.Unlock()
		}
		return next(ctx, cmd)
	})
	s, _ := durableMini(t, spy)
	workOnEverything(t, s)
	if len(texts) < 2*len(allScripts())-1 { // mark goes by its text
		t.Errorf("%d texts seen, want EVALSHA and EVAL of %d scripts", len(texts), len(allScripts()))
	}
}

// A client that sends a script again because an answer did not come must do no harm: the whole suite runs with every
// script executed twice for each call.
func TestEveryScriptTwice(t *testing.T) {
	t.Parallel()
	for _, b := range backends(t)[:2] {
		doubled := backend{name: b.name, open: func(t testing.TB, hooks ...redis.Hook) *testStore {
			return b.open(t, append(hooks, twice())...)
		}}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			o := storetest.RandomOptions{Limits: true, Repeat: true}
			if b.name == "miniredis" {
				o.Steps = 100 // many times slower than Redis
			} else {
				storetest.Run(t, harness(doubled))
			}
			t.Run("random", func(t *testing.T) {
				t.Parallel()
				storetest.Random(t, harness(doubled), o)
			})
		})
	}
}

// A server that has restarted, was flushed or took over knows no script.
func TestScriptsComeBackAfterAFlush(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client, err := openClient(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.AddHook(hook(func(ctx context.Context, script string, cmd redis.Cmder, next redis.ProcessHook) error {
		if cmd.Name() == "evalsha" {
			if _, err := server.Command("SCRIPT", "FLUSH"); err != nil {
				t.Error(err)
			}
		}
		return next(ctx, cmd)
	}))
	workOnEverything(t, &testStore{Store: newTestStore(t, client, Options{}, "")})
}

func TestReplyOfABrokenScript(t *testing.T) {
	t.Parallel()
	sc := &script{name: "claim"}
	for _, tc := range []struct {
		name  string
		reply any
		read  func(r *reply)
		want  string
	}{
		{"no array", "text", func(r *reply) {}, "answered string where it should answer array"},
		{"too short", []any{int64(1)}, func(r *reply) { r.int(); r.int() }, "answered <nil> where it should answer more"},
		{"text for a number", []any{"1"}, func(r *reply) { r.int() }, "answered string where it should answer an integer"},
		{"number for a text", []any{int64(1)}, func(r *reply) { _ = r.string() }, "answered int64 where it should answer a string"},
		{"the first error stays", []any{"1", int64(1)}, func(r *reply) { r.int(); _ = r.string() }, "answered string"},
	} {
		r := replyOf(sc, tc.reply)
		tc.read(r)
		if r.err == nil || !strings.Contains(r.err.Error(), "redisstore: claim "+tc.want) {
			t.Errorf("%s: got %v", tc.name, r.err)
		}
	}
	for _, codes := range []string{"", "1", "111", "1x"} {
		if _, err := digits(codes, 2); err == nil {
			t.Errorf("digits %q for two items are accepted", codes)
		}
	}
}
