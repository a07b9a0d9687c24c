package redisstore

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
)

// goodReplies are what a server answers to each script when all is well, by the script's name: the longest answer of each.
func goodReplies(t testing.TB) map[string]any {
	replies := make(map[string]any)
	s := openMini(t, hook(func(ctx context.Context, script string, cmd redis.Cmder, next redis.ProcessHook) error {
		err := next(ctx, cmd)
		if c, ok := cmd.(*redis.Cmd); ok && script != "" && err == nil {
			if old, seen := replies[script]; !seen || nodes(c.Val()) > nodes(old) {
				replies[script] = c.Val()
			}
		}
		return err
	}))
	workOnEverything(t, s)
	return replies
}

// nodes is how many values a reply has, itself included.
func nodes(v any) int {
	n := 1
	if items, ok := v.([]any); ok {
		for _, item := range items {
			n += nodes(item)
		}
	}
	return n
}

// edited is a reply with one of its values, counted from the outside in, replaced. The original stays as it is.
func edited(v any, at *int, by func(any) any) any {
	if *at--; *at < 0 {
		*at = math.MaxInt
		return by(v)
	}
	items, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = edited(item, at, by)
	}
	return out
}

// nonsense makes one value into another, of a kind that `how` says.
func nonsense(how, with byte) func(any) any {
	return func(v any) any {
		items, isArray := v.([]any)
		text, isText := v.(string)
		n, isNumber := v.(int64)
		cut := int(with)
		switch how % 12 {
		case 0:
			return nil
		case 1:
			return int64(int8(with))
		case 2:
			return []int64{math.MaxInt64, math.MinInt64, math.MaxInt32, 1 << 53}[with%4]
		case 3:
			return strings.Repeat(string(rune(with)), int(with))
		case 4:
			return []any{}
		case 5:
			return []any{v, v}
		case 6:
			if isNumber {
				return n + int64(int8(with))
			}
		case 7, 8:
			if isText && len(text) > 0 {
				return text[:cut%(len(text)+1)]
			}
			if isArray && len(items) > 0 {
				return items[:cut%(len(items)+1)]
			}
		case 9:
			if isText && len(text) > 0 {
				return text[:cut%len(text)] + string(with) + text[cut%len(text)+1:]
			}
		case 10:
			if isArray && len(items) > 0 {
				return append(items[:len(items):len(items)], items[cut%len(items)])
			}
		case 11:
			if isText {
				return text + " " + text
			}
		}
		return v
	}
}

// errTooMany is of the kind that no call is repeated after.
const errTooMany = said("ERR more commands than any call needs")

// FuzzReplies asks every question of a server whose answers are good ones with some values replaced. The store takes no
// value on trust: no call panics, none believes what contradicts what it has asked, and none goes on for ever.
func FuzzReplies(f *testing.F) {
	good := goodReplies(f)
	for i := range questions {
		for _, edit := range []string{"", "\x00\x00\x00", "\x01\x02\x00", "\x03\x02\x00", "\x01\x01\x80", "\x02\x00\x00\x03\x03\xff", "\x01\x06\x7f\x05\x09 "} {
			f.Add(byte(i), []byte(edit))
		}
	}
	var answer func(name string, usual any) (any, error)
	s := newTestStore(f, lying(f, func(name string, usual any) (any, error) {
		if answer == nil { // or there would be no store
			return usual, nil
		}
		return answer(name, usual)
	}), Options{}, "")
	f.Fuzz(func(t *testing.T, which byte, edits []byte) {
		q := questions[int(which)%len(questions)]
		sent := 0
		answer = func(name string, usual any) (any, error) {
			if sent++; sent > 500 {
				return nil, errTooMany
			}
			reply, known := good[name]
			if !known {
				reply = usual
			}
			for i := 0; i+2 < min(len(edits), 24); i += 3 { // more edits than any bug needs, and a reply may double with each
				if at := int(edits[i]); at < nodes(reply) {
					reply = edited(reply, &at, nonsense(edits[i+1], edits[i+2]))
				}
			}
			return reply, nil
		}
		err := q.ask(t.Context(), s)
		if errors.As(err, new(errBroken)) {
			t.Errorf("%s: %v", q.name, err)
		}
		// A purge goes on as long as the server says that it has removed something.
		if errors.Is(err, errTooMany) && q.name != "purge" {
			t.Errorf("%s: %v", q.name, err)
		}
	})
}

// lying makes a client that asks no server: answer says what comes to a command, and gets what is usual where no script is
// run.
func lying(t testing.TB, answer func(name string, usual any) (any, error)) redis.UniversalClient {
	client := redis.NewClient(&redis.Options{MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true})
	t.Cleanup(func() { client.Close() })
	client.AddHook(hook(func(_ context.Context, script string, cmd redis.Cmder, _ redis.ProcessHook) error {
		err := tell(script, cmd, answer)
		cmd.SetErr(err)
		return err
	}))
	return client
}

// tell sets the value of a command, as far as the value is of the command's type: go-redis lets no other through.
func tell(script string, cmd redis.Cmder, answer func(name string, usual any) (any, error)) error {
	config, err := encodeSettings(&dispatch.Queue{Rate: 5})
	if err != nil {
		return err
	}
	switch c := cmd.(type) {
	case *redis.Cmd:
		v, err := answer(script, nil)
		if err == nil && v == nil {
			err = redis.Nil
		}
		c.SetVal(v)
		return err
	case *redis.SliceCmd:
		usual := []any{config, "1", nil, "1772366400123", nil}
		v, err := answer(cmd.Name(), usual[:min(len(cmd.Args())-2, len(usual))])
		items, _ := v.([]any)
		for len(items) < len(cmd.Args())-2 { // a server sends as many as were asked for
			items = append(items, nil)
		}
		c.SetVal(items)
		return err
	case *redis.ScanCmd:
		v, err := answer(cmd.Name(), []any{"a", "1772366400123000 w-alice 1 1", "b", "2 w-bob 1 1"})
		items, _ := v.([]any)
		var texts []string
		for _, item := range items {
			text, _ := item.(string)
			texts = append(texts, text)
		}
		c.SetVal(texts, 0)
		return err
	case *redis.StringCmd:
		c.SetVal(schema)
	case *redis.StatusCmd:
		c.SetVal("PONG")
	}
	return nil
}
