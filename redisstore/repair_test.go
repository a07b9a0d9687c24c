package redisstore

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
)

// torn is what somebody may do to the keys of a queue, by hand or by eviction. Of the tasks a waits, b is leased for good, c has
// succeeded and is retained.
type torn struct {
	name string
	tear func(ctx context.Context, p redis.Pipeliner, k queueKeys)
	// want is what becomes of a, b and c at once, and later what becomes of them when the lease of b is over: states, or "gone".
	want, later string
}

var tornCases = []torn{
	{"nothing", func(context.Context, redis.Pipeliner, queueKeys) {}, "waiting running succeeded", "waiting running succeeded"},
	{"a record that is in no index waits", func(ctx context.Context, p redis.Pipeliner, k queueKeys) {
		p.ZRem(ctx, k.due, "a")
	}, "waiting running succeeded", "waiting running succeeded"},
	{"an entry without a record goes", func(ctx context.Context, p redis.Pipeliner, k queueKeys) {
		p.HDel(ctx, k.tasks, "a", "b", "c")
		p.HSet(ctx, k.state, "a", "\x01\x00\x00\x00\x01\x80")
	}, "gone gone gone", "gone gone gone"},
	{"what is leased to nobody waits again when its lease is over", func(ctx context.Context, p redis.Pipeliner, k queueKeys) {
		p.HDel(ctx, k.leases, "b")
	}, "waiting running succeeded", "waiting waiting succeeded"},
	{"a lease without an end gets one", func(ctx context.Context, p redis.Pipeliner, k queueKeys) {
		p.ZRem(ctx, k.leased, "b")
	}, "waiting running succeeded", "waiting running succeeded"},
	{"what is leased does not wait", func(ctx context.Context, p redis.Pipeliner, k queueKeys) {
		p.ZAdd(ctx, k.due, redis.Z{Score: 1, Member: "b"})
	}, "waiting running succeeded", "waiting running succeeded"},
	{"what waits and is leased to nobody waits", func(ctx context.Context, p redis.Pipeliner, k queueKeys) {
		p.ZAdd(ctx, k.leased, redis.Z{Score: 1, Member: "a"})
	}, "waiting running succeeded", "waiting running succeeded"},
	{"an end is not taken back", func(ctx context.Context, p redis.Pipeliner, k queueKeys) {
		p.ZAdd(ctx, k.due, redis.Z{Score: 1, Member: "c"})
		p.ZAdd(ctx, k.leased, redis.Z{Score: 1, Member: "c"})
		p.HSet(ctx, k.leases, "c", "1 ghost 1 1")
		p.ZAdd(ctx, k.dead, redis.Z{Score: 1, Member: "c"})
	}, "waiting running succeeded", "waiting running succeeded"},
	{"the only entry of an index goes, and another comes", func(ctx context.Context, p redis.Pipeliner, k queueKeys) {
		p.ZAdd(ctx, k.done, redis.Z{Score: 1e15, Member: "a"})
		p.ZRem(ctx, k.leased, "b")
		p.HDel(ctx, k.leases, "b")
		p.ZAdd(ctx, k.dead, redis.Z{Score: 1, Member: "nothing"}) // or the numbers would be right
	}, "succeeded waiting succeeded", "succeeded waiting succeeded"},
	{"evicted leases", func(ctx context.Context, p redis.Pipeliner, k queueKeys) { p.Del(ctx, k.leases) },
		"waiting running succeeded", "waiting waiting succeeded"},
	{"evicted records", func(ctx context.Context, p redis.Pipeliner, k queueKeys) { p.Del(ctx, k.tasks) },
		"gone gone gone", "gone gone gone"},
	{"evicted indexes", func(ctx context.Context, p redis.Pipeliner, k queueKeys) { p.Del(ctx, k.due, k.leased, k.done) },
		"waiting running waiting", "waiting running waiting"},
}

// Look, by which the leader visits one queue after the other, repairs what it finds torn.
func TestTornEntriesAreRepaired(t *testing.T) {
	onTwo(t, repairsTorn)
}

// repairsTorn runs all cases on a back end.
func repairsTorn(t *testing.T, b backend) {
	for _, c := range tornCases {
		t.Run(c.name, func(t *testing.T) { c.run(t, b) })
	}
}

func (c torn) run(t *testing.T, b backend) {
	s, ctx := b.open(t), t.Context()
	k := s.queueKeys(mail)
	const leaseTime = 300 * time.Millisecond
	put(t, s, "c")
	r := claim(t, s, alice, 1, 1)
	settle(t, s, dispatch.Succeeded, time.Hour, r.Leased...)
	brief := task("b")
	brief.Timeout = leaseTime
	enqueue(t, s, brief)
	request := claimRequest(alice, 2, 1)
	request.Grace = time.Millisecond
	r, err := s.Claim(ctx, request)
	ok(t, err)
	put(t, s, "a")
	_, err = s.client.TxPipelined(ctx, func(p redis.Pipeliner) error { c.tear(ctx, p, k); return nil })
	ok(t, err)
	look(t, s)
	if got := states(t, s); got != c.want {
		t.Errorf("got %s, want %s", got, c.want)
	}
	s.advance(leaseTime + 100*time.Millisecond)
	look(t, s)
	if got := states(t, s); got != c.later {
		t.Errorf("when the lease was over: got %s, want %s", got, c.later)
	}
	sound(t, s, mail)
	if _, again, err := s.look(ctx, mail); again || err != nil {
		t.Errorf("it is torn still: %v, %v", again, err)
	}
	held, err := s.Holds(ctx, mail, []dispatch.Held{{ID: "b", Lease: r.Leased[0].Lease}})
	if wants := strings.Contains(c.later, "running"); err != nil || held[0] != wants {
		t.Errorf("the lease is held: %v, %v", held, err)
	}
}

// What was repaired twice, or in a queue that is not there, is no error.
func TestLookAtNoQueue(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		n, err := s.repair(t.Context(), mail)
		if n != 0 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	})
}

func look(t testing.TB, s *testStore) {
	t.Helper()
	_, err := s.Look(t.Context(), []string{mail})
	ok(t, err)
}

// states are those of a, b and c, by the indexes that they are in.
func states(t testing.TB, s *testStore) string {
	t.Helper()
	k := s.queueKeys(mail)
	var all []string
	for _, id := range []string{"a", "b", "c"} {
		state := ""
		for _, index := range []struct{ key, state string }{
			{k.due, "waiting"}, {k.leased, "running"}, {k.done, "succeeded"}, {k.dead, "dead"}, {k.cancelled, "cancelled"},
		} {
			switch err := s.client.ZScore(t.Context(), index.key, id).Err(); {
			case err == nil:
				state += index.state
			case !errors.Is(err, redis.Nil):
				t.Fatal(err)
			}
		}
		all = append(all, cmp.Or(state, "gone"))
	}
	return strings.Join(all, " ")
}
