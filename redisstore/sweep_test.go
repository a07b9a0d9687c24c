package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
)

// Damage to the keys, such as a restored backup or an operator's hand leaves, does not keep anybody from the leases behind it.
func TestEntriesOfLeasesThatNobodyHolds(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		ctx := t.Context()
		k := s.queueKeys(mail)
		put(t, s, "a", "b", "c", "d")
		leased := claim(t, s, alice, 1, 4).Leased
		settle(t, s, dispatch.Succeeded, time.Hour, leased[0])
		now := leased[0].At.UnixMilli()
		for i := range 250 { // nothing else is left of these
			ok(t, s.client.ZAdd(ctx, k.leased, redis.Z{Score: 1, Member: fmt.Sprint("nothing-", i)}).Err())
		}
		ok(t, s.client.ZAdd(ctx, k.leased, redis.Z{Score: 2, Member: "a"}, redis.Z{Score: 3, Member: "b"}).Err()) // a has ended
		ok(t, s.client.HDel(ctx, k.leases, "b").Err())
		for range 2 { // there are none that have ended, and then there is one
			expired, next, err := s.ExpiredLeases(ctx, mail, 100)
			if err != nil || len(expired) != 0 || next <= 0 {
				t.Fatalf("expired: %s, next %v, %v", ids(expired), next, err)
			}
		}
		ok(t, s.client.ZAdd(ctx, k.leased, redis.Z{Score: float64(now), Member: "c"}, redis.Z{Score: 1, Member: "nothing"}).Err())
		s.advance(time.Millisecond)
		expired, _, err := s.ExpiredLeases(ctx, mail, 100)
		if err != nil || ids(expired) != "c " {
			t.Errorf("expired: %s, %v", ids(expired), err)
		}
		_, err = s.Look(ctx, []string{mail}) // which finds what was in nobody's way
		ok(t, err)
		if got := ids(claim(t, s, alice, 2, 10).Leased); got != "b " {
			t.Errorf("claimed %q: of those that nobody held, only one is there and has not ended", got)
		}
		sound(t, s, mail)
	})
}
