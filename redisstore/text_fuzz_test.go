package redisstore

import (
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// What is read is written in one form, which is read as the same.
func FuzzParseResources(f *testing.F) {
	for _, text := range []string{"", "cpu=1", "cpu=1 gpu/a100=9007199254740992", "a=1 a=2", "=5", "a", "a=", "a=x b=2", "a=1=2",
		" a=-1\t\nb=+3 ", "a=9223372036854775808"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first := parseResources(text)
		if len(first) > len(text)/2 {
			t.Errorf("%q: %d resources", text, len(first))
		}
		written := formatResources(first)
		if second := parseResources(written); !maps.Equal(first, second) || (first == nil) != (second == nil) {
			t.Errorf("%q is %v, which is written %q and read as %v", text, first, written, second)
		}
		if first != nil && freeArg(first) != written {
			t.Errorf("%v is written %q and %q", first, written, freeArg(first))
		}
	})
}

// name makes a queue's name, or an ID, of whatever bytes there are.
func name(b []byte, alphabet string) string {
	out := []byte("q")
	for _, c := range b[:min(len(b), 99)] {
		out = append(out, alphabet[int(c)%len(alphabet)])
	}
	return string(out)
}

// hashTag is what a cluster hashes of a key, by the letter of its specification.
func hashTag(key string) string {
	open := strings.IndexByte(key, '{')
	if open < 0 {
		return key
	}
	length := strings.IndexByte(key[open+1:], '}')
	if length <= 0 {
		return key
	}
	return key[open+1 : open+1+length]
}

// Every key of a queue has the queue for its hash tag, is a key of nothing else, and none is one of the fleet's, whatever
// queues and workers are called.
func FuzzQueueKeys(f *testing.F) {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	f.Add([]byte("mail"), []byte("mail."), []byte("w"), []byte("v"), uint8(0))
	f.Add([]byte(""), []byte(".tasks"), []byte(""), []byte("-1"), uint8(12))
	f.Add([]byte("a-1"), []byte("a"), []byte("a"), []byte("a-1"), uint8(1))
	f.Fuzz(func(t *testing.T, a, b, v, w []byte, lane uint8) {
		queues := []string{name(a, letters+"."), name(b, letters+".")}
		workers := []cluster.WorkerID{cluster.WorkerID(name(v, letters)), cluster.WorkerID(name(w, letters))}
		s := &Store{prefix: "dispatch", lanes: newLanes()}
		seen := make(map[string]string)
		add := func(owner, tag string, keys ...string) {
			for _, key := range keys {
				if got := hashTag(key); got != tag {
					t.Errorf("key %q of %s has the tag %q", key, owner, got)
				}
				if other, twice := seen[key]; twice {
					t.Errorf("key %q is one of %s and one of %s", key, other, owner)
				}
				seen[key] = owner
			}
		}
		for _, q := range slices.Compact(queues) {
			k := s.queueKeys(q)
			add(q, q, k.due, k.leased, k.leases, k.tasks, k.state, k.done, k.dead, k.cancelled, k.names, k.meta)
			add(q, q, s.callMemo(q, int(lane)), s.callMemo(q, int(lane)+1))
			for _, id := range slices.Compact(slices.Clone(workers)) {
				add(q, q, s.claimMemo(q, id), s.settleMemo(q, id))
			}
		}
		add("the fleet", "~", s.queuesKey(), s.activeKey(), s.expiringKey(), s.cronKey(), s.cronNextKey(), s.cronLastKey(),
			s.schemaKey(), s.workersKey(), s.leaderKey(), s.termKey(), s.planKey())
		for _, id := range slices.Compact(workers) {
			add("the fleet", "~", s.workerKey(id))
		}
	})
}

// What a server says of itself is compared as numbers, however long they are.
func FuzzOlderThan(f *testing.F) {
	for _, info := range []string{"redis_version:7.0.15\r\n", "# Server\r\nredis_version:6.0.9\r\nx:y", "redis_version: 6.2 \n", "redis_version:",
		"redis_version:unstable", "redis_version:99999999999999999999.1", "xredis_version:1.0", "redis_version:6.02"} {
		f.Add(info)
	}
	f.Fuzz(func(t *testing.T, info string) {
		v := infoField(info, "redis_version")
		if !strings.Contains(info, v) || strings.Contains(v, "\n") {
			t.Errorf("%q: version %q", info, v)
		}
		major, rest, dotted := strings.Cut(v, ".")
		minor := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		want := false
		if dotted && major != "" && minor != "" && strings.Trim(major, "0123456789") == "" {
			a, _ := new(big.Int).SetString(major, 10)
			b, _ := new(big.Int).SetString(minor, 10)
			six, two := big.NewInt(6), big.NewInt(2)
			want = a.Cmp(six) < 0 || a.Cmp(six) == 0 && b.Cmp(two) < 0
		}
		if got := olderThan(v, 6, 2); got != want {
			t.Errorf("%q older than 6.2: %v", v, got)
		}
	})
}

// A score below zero is that of a task to be run at once, passed on or not; either way it tells when that was asked for.
func FuzzDueTime(f *testing.F) {
	for _, score := range []int64{0, 1, -1, 1772366400123, -1772366400123, -fresh - 1772366400123, -fresh, 1 - fresh, math.MaxInt64} {
		f.Add(score)
	}
	f.Fuzz(func(t *testing.T, score int64) {
		if score == math.MinInt64 {
			return // no double that Redis holds
		}
		due := dueTime(score)
		if due < 0 || score >= 0 && due != score {
			t.Errorf("score %d is due at %d", score, due)
		}
		if score < 0 && due < fresh && score != -due && score != -fresh-due {
			t.Errorf("score %d is due at %d", score, due)
		}
	})
}

// A name with anything in it that separates words in what scripts read never comes out of formatHints.
func FuzzFormatHints(f *testing.F) {
	f.Add("mail", int64(1500), true, false, int64(0), false)
	f.Add("mail", int64(-1), false, true, int64(-1), true)
	f.Add("a.b", int64(math.MaxInt64), true, true, int64(math.MaxInt64), false)
	f.Fuzz(func(t *testing.T, queue string, waiting int64, changed, handOver bool, revoked int64, cancelled bool) {
		if queue == "" || strings.ContainsFunc(queue, unicode.IsSpace) {
			return // no queue is called so
		}
		want := dispatch.Hint{Queue: queue, Wait: wait(waiting % (1 << 40)), Changed: changed, HandOver: handOver, Revoked: revoked,
			Cancelled: cancelled && revoked != 0}
		want.Wait = max(want.Wait, 0)
		given := want
		if waiting < 0 {
			given.Wait = -1
		}
		message := formatHints([]dispatch.Hint{given, {Queue: "next"}})
		got := parseHints(message)
		if len(got) != 2 || got[0] != want || got[1] != (dispatch.Hint{Queue: "next"}) {
			t.Errorf("%+v is told as %q and heard as %+v", given, message, got)
		}
	})
}

// parseLease reads what claim.lua writes, whatever the worker and the numbers.
func FuzzLease(f *testing.F) {
	f.Add(int64(1772366400123000), []byte("alice"), int64(1), uint16(1), true, int64(0))
	f.Add(int64(1<<53), []byte(""), int64(math.MaxInt64), uint16(65535), false, int64(1772366400123))
	f.Fuzz(func(t *testing.T, token int64, w []byte, seq int64, attempt uint16, worn bool, asked int64) {
		id := cluster.WorkerID(name(w, "abcdefghijklmnopqrstuvwxyz0123456789_-"))
		words := []string{strconv.FormatInt(token, 10), string(id), strconv.FormatInt(seq, 10), strconv.Itoa(int(attempt))}
		if worn {
			words[3] += "+"
		}
		if asked != 0 {
			words = append(words, strconv.FormatInt(asked, 10))
		}
		lease := strings.Join(words, " ")
		got, holder, err := parseLease(lease)
		if err != nil || got != token || holder != id {
			t.Errorf("lease %q: token %d of %s, %v", lease, got, holder, err)
		}
	})
}
