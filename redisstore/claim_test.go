package redisstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// Records that this version cannot read are leased all the same, for the caller to put off: another version may know
// them.
func TestRecordsOfAnotherVersion(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		ctx := t.Context()
		put(t, s, "a", "newer", "torn", "z")
		k := s.queueKeys(mail)
		record, err := s.client.HGet(ctx, k.tasks, "newer").Result()
		ok(t, err)
		ok(t, s.client.HSet(ctx, k.tasks, "newer", "\x02"+record[1:], "torn", record[:20]).Err())
		r := claim(t, s, alice, 1, 10)
		if got := ids(r.Leased); got != "a newer torn z " {
			t.Fatalf("claimed %q", got)
		}
		for _, l := range r.Leased {
			bad := l.Task.ID == "newer" || l.Task.ID == "torn"
			if (l.Err != nil) != bad || l.Worker != alice || l.Lease.Fence == "" || l.Task.Queue != mail {
				t.Errorf("%s: %+v", l.Task.ID, l)
			}
			if bad && (l.Task.Kind != "" || l.Task.Timeout != 0) {
				t.Errorf("%s is read in part: %+v", l.Task.ID, l.Task)
			}
		}
		s.advance(lease)
		over, _, err := s.ExpiredLeases(ctx, mail, 10)
		if err != nil || len(over) != 4 {
			t.Fatalf("expired: %s, %v", ids(over), err)
		}
		// Put off, it is as it was.
		for _, l := range over {
			if l.Task.ID == "newer" {
				settle(t, s, dispatch.Released, 0, l)
			}
		}
		now, err := s.client.HGet(ctx, k.tasks, "newer").Result()
		if err != nil || now != "\x02"+record[1:] {
			t.Errorf("the record was changed: %q, %v", now, err)
		}
		sound(t, s, mail)
	})
}

// An ID without a record, as a failover may leave it, is dropped and holds nothing up.
func TestIDWithoutARecord(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		_, err := s.CreateQueue(t.Context(), dispatch.Queue{Name: mail, MaxConcurrent: 1})
		ok(t, err)
		put(t, s, "a", "b", "c")
		ok(t, s.client.HDel(t.Context(), s.queueKeys(mail).tasks, "a", "b").Err())
		for seq := int64(1); ; seq++ {
			r := claim(t, s, alice, seq, 10)
			if len(r.Leased) == 0 && r.Next == 0 && r.Block == "" && seq < 5 {
				continue // only dropped
			}
			if got := ids(r.Leased); got != "c " {
				t.Errorf("claim %d: %q, block %q", seq, got, r.Block)
			}
			break
		}
		sound(t, s, mail)
	})
}

// A purge that ended after its first step: what is left of it never starts, takes no place and no token, and claims
// clear it away.
func TestPurgeThatEndedHalfway(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		for _, q := range []dispatch.Queue{{}, {MaxConcurrent: 3}, {Rate: 0.01, Burst: 3}} {
			s, f := flaky(t, b)
			q.Name = mail
			_, err := s.CreateQueue(t.Context(), q)
			ok(t, err)
			for i := range 5 {
				enqueue(t, s, namedTask(fmt.Sprint("old", i)))
			}
			f.plan("zscan", fault{err: said("ERR broken")})
			if err := s.PurgeQueue(t.Context(), mail, time.Hour); err == nil {
				t.Fatal("the purge did not break")
			}
			put(t, s, "young1", "young2", "young3", "young4")
			got := ""
			for seq := int64(1); seq < 10; seq++ {
				r := claim(t, s, alice, seq, 4)
				got += ids(r.Leased)
				if r.Next != 0 || r.Block != "" {
					break
				}
			}
			want := "young1 young2 young3 young4 "
			if q.Rate+float64(q.MaxConcurrent) > 0 {
				want = "young1 young2 young3 "
			}
			if got != want {
				t.Errorf("%+v: claimed %q, want %q", q, got, want)
			}
			if r := enqueue(t, s, namedTask("old3")); !r.Duplicate[0] {
				t.Error("the name of a purged task is free")
			}
			sound(t, s, mail)
		}
	})
}

// No call to a script answers with more than about half a mebibyte, unless one task alone has more.
func TestAnswersAreBounded(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		var biggest int
		s := b.open(t, hook(func(ctx context.Context, script string, cmd redis.Cmder, next redis.ProcessHook) error {
			err := next(ctx, cmd)
			if script == "claim" || script == "leases" || script == "inspect" {
				size := 0
				items, _ := cmd.(*redis.Cmd).Val().([]any)
				for _, v := range items {
					text, _ := v.(string)
					size += len(text)
				}
				biggest = max(biggest, size)
			}
			return err
		}))
		const n = 40
		for i := range n {
			sub := task(fmt.Sprintf("t%02d", i))
			sub.Payload = []byte(strings.Repeat("x", 1+i%3*40<<10))
			enqueue(t, s, sub)
		}
		leased := 0
		for seq := int64(1); leased < n; seq++ {
			r := claim(t, s, alice, seq, 100)
			if leased += len(r.Leased); len(r.Leased) == 0 {
				t.Fatal("nothing is leased")
			}
		}
		for _, state := range []dispatch.TaskState{dispatch.TaskWaiting, dispatch.TaskRunning} {
			_, _, err := s.Tasks(t.Context(), mail, state, "")
			ok(t, err)
		}
		_, _, err := s.HeldLeases(t.Context(), mail, []cluster.WorkerID{alice}, 0)
		ok(t, err)
		s.advance(lease)
		_, _, err = s.ExpiredLeases(t.Context(), mail, 100)
		ok(t, err)
		if biggest < maxScriptBytes/2 || biggest > maxScriptBytes+10<<10 {
			t.Errorf("the longest answer has %d bytes", biggest)
		}
	})
}

func TestBatchesAreBounded(t *testing.T) {
	t.Parallel()
	s := openMini(t)
	for _, n := range []int{0, maxScriptItems + 1} {
		if _, err := s.Enqueue(t.Context(), mail, make([]dispatch.Submission, n), dispatch.EnqueueOptions{}); err == nil {
			t.Errorf("enqueue of %d is taken", n)
		}
		if _, err := s.Claim(t.Context(), claimRequest(alice, 1, n)); err == nil {
			t.Errorf("claim of %d is taken", n)
		}
		if _, err := s.Settle(t.Context(), dispatch.SettleRequest{Queue: mail, Worker: alice, Items: make([]dispatch.Settlement, n)}); err == nil {
			t.Errorf("settle of %d is taken", n)
		}
		if _, err := s.Extend(t.Context(), mail, make([]dispatch.Extension, n)); err == nil {
			t.Errorf("extend of %d is taken", n)
		}
	}
	r := settleRequest(1, dispatch.Discarded, 0, dispatch.Leased{})
	if _, err := s.Settle(t.Context(), r); err == nil {
		t.Error("an outcome that is none is stored")
	}
}

// The largest batch of the longest IDs goes through every script.
func TestLargestBatch(t *testing.T) {
	t.Parallel()
	for _, b := range backends(t) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			s := b.open(t)
			var batch []dispatch.Submission
			for i := range maxScriptItems {
				batch = append(batch, namedTask(fmt.Sprintf("%0500d", i)))
			}
			enqueue(t, s, batch...)
			leased := claim(t, s, alice, 1, maxScriptItems).Leased
			if len(leased) != maxScriptItems {
				t.Fatalf("%d leased", len(leased))
			}
			again := claimRequest(alice, 1, maxScriptItems)
			again.Repeat = true
			if r, err := s.Claim(t.Context(), again); err != nil || len(r.Leased) != maxScriptItems {
				t.Fatalf("%d leased again, %v", len(r.Leased), err)
			}
			var all []dispatch.Extension
			for _, l := range leased {
				all = append(all, dispatch.Extension{ID: l.Task.ID, Lease: l.Lease, For: time.Hour})
			}
			_, err := s.Extend(t.Context(), mail, all)
			ok(t, err)
			r := settleRequest(1, dispatch.Retry, 0, leased...)
			for i := range r.Items {
				r.Items[i].Progress = &dispatch.Progress{Attempts: 1, FirstAttempt: epoch}
			}
			_, err = s.Settle(t.Context(), r)
			ok(t, err)
			ok(t, s.PurgeQueue(t.Context(), mail, time.Hour))
			s.advance(time.Hour)
			if more, err := s.Cleanup(t.Context(), mail, 10_000); err != nil || more {
				t.Errorf("more %v, %v", more, err)
			}
			sound(t, s, mail)
		})
	}
}
