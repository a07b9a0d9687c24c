package audit_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

func TestSnapshot(t *testing.T) {
	t.Parallel()
	for _, backend := range []redistest.Backend{redistest.Single, redistest.Masters} {
		t.Run(string(backend), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, backend)
			queues := []string{"a", "b.c", "d-e_f"}
			for _, queue := range queues {
				tokens := b.fill(queue)
				snap := b.snapshot()
				for _, text := range snap.Broken {
					t.Error(text)
				}
				for id, want := range map[string]audit.Final{
					"due":          {State: audit.StateDue, Attempts: 2, Token: tokens["due"]},
					"due-fresh":    {State: audit.StateDue},
					"leased":       {State: audit.StateLeased, Attempts: 1, Token: tokens["leased"]},
					"leased-fresh": {State: audit.StateLeased, Token: tokens["leased-fresh"]},
					"done":         {State: audit.StateDone, Attempts: 2, Token: tokens["done"], Result: []byte("result")},
					"dead":         {State: audit.StateDead, Attempts: 2, Token: tokens["dead"]},
					"cancelled":    {State: audit.StateCancelled, Attempts: 1},
					"gone":         {State: audit.StateTombstone},
				} {
					got := snap.Finals[audit.TaskKey{Queue: queue, ID: id}]
					if id == "cancelled" {
						want.Token = got.Token // of its first attempt
					}
					if got.At == 0 {
						t.Errorf("%s has no time", id)
					}
					if want.At = got.At; !reflect.DeepEqual(got, want) {
						t.Errorf("%s is %+v, want %+v", id, got, want)
					}
				}
			}
			snap := b.snapshot()
			if len(snap.Finals) != 8*len(queues) || snap.Live() != 4*len(queues) {
				t.Errorf("%d tasks, %d live", len(snap.Finals), snap.Live())
			}
			for _, key := range []string{"{a}:due", "{d-e_f}:names", "{b.c}:claimed:w", "{~}:queues"} {
				if !slices.Contains(snap.Keys, key) {
					t.Errorf("%s is not among %q", key, snap.Keys)
				}
			}
		})
	}
}

// TestPurged: a task that waits for a purge to remove it does not wait for anything else.
func TestPurged(t *testing.T) {
	t.Parallel()
	b := newBench(t, redistest.Single)
	b.enqueue("q", "old")
	b.must(b.raw.HIncrBy(t.Context(), b.prefix+":{q}:meta", "generation", 1).Err()) // a purge that dies after its first step
	b.enqueue("q", "new")
	snap := b.snapshot()
	if snap.Finals[audit.TaskKey{Queue: "q", ID: "old"}].State != audit.StatePurged || snap.Live() != 1 || len(snap.Broken) > 0 {
		t.Errorf("%+v", snap)
	}
}

// TestBroken tears the keys of a sound store in every way that there is, and looks for a word about it.
func TestBroken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want string
		tear func(ctx context.Context, c redis.Cmdable, key func(string) string) error
	}{
		{"task due is due and has no record", func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.HDel(ctx, key("tasks"), "due").Err()
		}},
		{"task done has progress and no record", func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.HDel(ctx, key("tasks"), "done").Err()
		}},
		{"task due has a record and is nowhere", func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.ZRem(ctx, key("due"), "due").Err()
		}},
		{"task leased is due and leased", func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.ZAdd(ctx, key("due"), redis.Z{Score: 1, Member: "leased"}).Err()
		}},
		{"task done is done and dead", func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.ZAdd(ctx, key("dead"), redis.Z{Score: 1, Member: "done"}).Err()
		}},
		{"task leased is leased to nobody", func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.HDel(ctx, key("leases"), "leased").Err()
		}},
		{"task leased has a lease that never ends", func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.ZRem(ctx, key("leased"), "leased").Err()
		}},
		{`task leased: a lease "x"`, func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.HSet(ctx, key("leases"), "leased", "x").Err()
		}},
		{"was leased for attempt 1, and 1 were made", func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.HSet(ctx, key("leases"), "leased", "7 w 1 1+").Err()
		}},
		{"tasks leased and leased-fresh have the same token", func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.HSet(ctx, key("leases"), "leased", "7 w 1 2+", "leased-fresh", "7 w 1 1").Err()
		}},
		{"task leased has token", func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.HSet(ctx, key("meta"), "token", 1).Err()
		}},
		{"progress of task done", func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.HSet(ctx, key("state"), "done", "x").Err()
		}},
		{"no settings", func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.Del(ctx, key("meta")).Err()
		}},
		{"is not listed", func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.Del(ctx, strings.Replace(key("queues"), "{q}", "{~}", 1)).Err()
		}},
		{"claimed:w never goes", func(ctx context.Context, c redis.Cmdable, key func(string) string) error {
			return c.Persist(ctx, key("claimed:w")).Err()
		}},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, redistest.Single)
			b.fill("q")
			b.must(c.tear(t.Context(), b.raw, func(of string) string { return b.prefix + ":{q}:" + of }))
			snap := b.snapshot()
			if !slices.ContainsFunc(snap.Broken, func(text string) bool { return strings.Contains(text, c.want) }) {
				t.Errorf("found %q", snap.Broken)
			}
		})
	}
}
