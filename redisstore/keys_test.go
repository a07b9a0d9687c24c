package redisstore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore/storetest"
)

// The names of keys are the layout of version 1: a change needs another schema version.
func TestKeyNames(t *testing.T) {
	t.Parallel()
	server := miniredis.NewMiniRedis()
	s := &testStore{Store: newTestStore(t, dialMini(t, server), Options{}, ""), advance: server.FastForward}
	_, err := s.CreateQueue(t.Context(), dispatch.Queue{Name: "a.b-c_D"})
	ok(t, err)
	enqueue(t, s, task("ok"), task("bad"), task("again"), task("kept"), task("waits"), namedTask("n"))
	for i, outcome := range []dispatch.Outcome{dispatch.Retry, dispatch.Dead} {
		l := claim(t, s, alice, int64(i+1), 1).Leased[0]
		r := settleRequest(int64(i+1), outcome, time.Hour, l)
		r.Items[0].Progress = &dispatch.Progress{Attempts: 1}
		_, err := s.Settle(t.Context(), r)
		ok(t, err)
	}
	settle(t, s, dispatch.Succeeded, time.Hour, claim(t, s, alice, 3, 1).Leased...)
	claim(t, s, alice, 4, 2)
	remove(t, s, time.Hour, "n")
	ok(t, s.Announce(t.Context(), []dispatch.Hint{{Queue: mail}}))
	want := []string{
		"dispatch:{a.b-c_D}:meta",
		"dispatch:{mail}:claimed:w-alice",
		"dispatch:{mail}:dead",
		"dispatch:{mail}:done",
		"dispatch:{mail}:due",
		"dispatch:{mail}:leased",
		"dispatch:{mail}:leases",
		"dispatch:{mail}:meta",
		"dispatch:{mail}:names",
		"dispatch:{mail}:settled:w-alice",
		"dispatch:{mail}:state",
		"dispatch:{mail}:stored:" + s.lanes.name + "-0",
		"dispatch:{mail}:tasks",
		"dispatch:{~}:active",
		"dispatch:{~}:expiring",
		"dispatch:{~}:queues",
		"dispatch:{~}:schema",
	}
	got := server.Keys()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("keys are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	// Nothing of a deleted queue stays but memos, which end by themselves.
	ok(t, s.DeleteQueue(t.Context(), mail))
	server.FastForward(2 * time.Hour)
	for _, key := range server.Keys() {
		if strings.Contains(key, "{mail}") {
			t.Errorf("%s is left", key)
		}
	}
}

// Who subscribes to a channel depends on the master of its slot. It must be that of the fleet's keys: when another master of a
// cluster is gone, its own queues stand still, and those of the others must hear of new tasks.
func TestChannelsAreTheFleets(t *testing.T) {
	t.Parallel()
	s := &Store{prefix: "dispatch"}
	for _, channel := range []string{s.wakeChannel(), s.endedChannel()} {
		if slot(channel) != slot(s.activeKey()) || !strings.HasPrefix(channel, "dispatch:") {
			t.Errorf("channel %s is in slot %d, and the fleet in slot %d", channel, slot(channel), slot(s.activeKey()))
		}
	}
}

// crc16 is the checksum by which a cluster chooses slots (XMODEM).
func crc16(s string) uint16 {
	var crc uint16
	for _, c := range []byte(s) {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// slot is the slot of a key: that of the text between its first { and the next }, unless it is empty.
func slot(key string) uint16 {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	return crc16(key) % 16384
}

func TestSlot(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]uint16{"123456789": 0x31c3, "foo": 12182, "{foo}.bar": 12182, "x{foo}y{z}": 12182, "{}foo": 9500} {
		if got := slot(key); got != want {
			t.Errorf("slot of %q is %d, want %d", key, got, want)
		}
	}
}

// A simulated server takes keys of any slots; this looks at those of every command of a long run.
func TestCommandsTouchOneSlot(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := make(map[string]bool)
	spy := hook(func(ctx context.Context, script string, cmd redis.Cmder, next redis.ProcessHook) error {
		var keys []string
		switch name := cmd.Name(); name {
		case "eval", "evalsha":
			mu.Lock()
			seen[script] = true
			mu.Unlock()
			keys = scriptKeys(cmd)
		case "unlink":
			for _, k := range cmd.Args()[1:] {
				keys = append(keys, k.(string))
			}
		}
		for _, k := range keys {
			if slot(k) != slot(keys[0]) {
				t.Errorf("%s %s: keys %s and %s are in two slots", cmd.Name(), script, keys[0], k)
			}
		}
		return next(ctx, cmd)
	})
	spied := backend{"", func(t testing.TB, hooks ...redis.Hook) *testStore { return openMini(t, append(hooks, spy)...) }}
	workOnEverything(t, spied.open(t))
	durable, _ := durableMini(t, spy)
	put(t, durable, "a")
	storetest.Random(t, harness(spied), storetest.RandomOptions{Steps: 100})
	for _, sc := range allScripts() {
		if !seen[sc.name] {
			t.Errorf("script %s did not run", sc.name)
		}
	}
}

// Queues and fleet cannot be mistaken for each other, whatever they are called.
func TestPrefix(t *testing.T) {
	t.Parallel()
	for prefix, good := range map[string]bool{
		"": true, "a": true, "my-app:dispatch.v1_x": true, strings.Repeat("a", 50): true,
		strings.Repeat("a", 51): false, "a{b}": false, "a b": false, "ä": false, "a\n": false, "*": false,
	} {
		server := miniredis.NewMiniRedis()
		_, err := New(dialMini(t, server), Options{Prefix: prefix, Logger: quiet})
		var field *dispatch.FieldError
		if isField := asField(err, &field); isField == good || good != (err == nil) {
			t.Errorf("prefix %q: got %v", prefix, err)
		} else if isField && field.Field != "Options.Prefix" {
			t.Errorf("prefix %q: the error names %s", prefix, field.Field)
		}
	}
}

func TestTwoPrefixesDoNotMeet(t *testing.T) {
	t.Parallel()
	server := miniredis.NewMiniRedis()
	client := dialMini(t, server)
	a := &testStore{Store: newTestStore(t, client, Options{Prefix: "a"}, "")}
	b := &testStore{Store: newTestStore(t, client, Options{Prefix: "a:b"}, "")}
	put(t, a, "x")
	put(t, b, "y")
	if got := ids(claim(t, a, alice, 1, 10).Leased); got != "x " {
		t.Errorf("claimed %q", got)
	}
	ok(t, a.DeleteQueue(t.Context(), mail))
	sound(t, b, mail)
	if got := ids(claim(t, b, alice, 1, 10).Leased); got != "y " {
		t.Errorf("claimed %q", got)
	}
}
