package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

// A record that this version cannot read is put off like a kind that it does not know: a newer version can read it. That
// costs no attempt, and one warning.
func TestUnreadableRecordIsPutOff(t *testing.T) {
	for name, spoil := range map[string]func(record string) string{
		"another format": func(r string) string { return "\x63" + r[1:] },
		"cut short":      func(r string) string { return r[:len(r)-5] },
		"empty":          func(string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				var log logged
				d := b.dispatcher(dispatch.Options{Logger: log.logger()})
				handle(d, "k", succeed)
				bad := b.enqueue(d, dispatch.Task{Kind: "k", Payload: []byte("payload"), Retry: &dispatch.RetryConfig{MaxAttempts: 1}})
				good := b.enqueue(d, dispatch.Task{Kind: "k"})
				const key = "dispatch:{default}:tasks"
				record := b.server.HGet(key, string(bad))
				b.server.HSet(key, string(bad), spoil(record))
				b.ok(d.Start(t.Context()))
				time.Sleep(time.Minute)
				synctest.Wait()
				if b.seen.of(good) != "succeeded" || b.seen.count(dispatch.Dead)+b.seen.count(dispatch.Retry) != 0 {
					t.Errorf("outcomes %q and %q", b.seen.of(good), b.seen.of(bad))
				}
				if n := b.store.count("Claim"); n > 30 {
					t.Errorf("%d claims in a minute", n)
				}
				if n := log.count("has no handler", "task="+string(bad), "unreadable"); n != 1 {
					t.Errorf("warned %d times:\n%s", n, log.String())
				}
				b.server.HSet(key, string(bad), record) // a version that can read it
				time.Sleep(10 * time.Second)
				if all := b.seen.list(); all[len(all)-1].ID != bad || all[len(all)-1].Outcome != dispatch.Succeeded || all[len(all)-1].Attempt.Number != 1 {
					t.Errorf("in the end: %+v", all[len(all)-1])
				}
				b.ok(b.redis.CheckInvariants(t.Context(), "default"))
			})
		})
	}
}

// So is one whose worker died: losing it costs no attempt, for nobody knows its limits.
func TestUnreadableRecordIsNotSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", succeed)
		id := b.enqueue(d, dispatch.Task{Kind: "k", Timeout: time.Second, Retry: &dispatch.RetryConfig{MaxAttempts: 1}})
		_, err := b.redis.Claim(t.Context(), dispatch.ClaimRequest{Queue: "default", Worker: ghost, Seq: 1, Budget: 1, Grace: time.Second})
		b.ok(err)
		const key = "dispatch:{default}:tasks"
		record := b.server.HGet(key, string(id))
		b.server.HSet(key, string(id), "\x63"+record[1:])
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		b.server.HSet(key, string(id), record)
		time.Sleep(10 * time.Second)
		all := b.seen.list()
		for _, e := range all[:len(all)-1] {
			if e.Outcome != dispatch.Released {
				t.Errorf("event %+v", e)
			}
		}
		if last := all[len(all)-1]; last.Outcome != dispatch.Succeeded || last.Attempt.Number != 1 {
			t.Errorf("in the end: %+v", last)
		}
	})
}

// One that has ended is listed, waited for and removed as the others are.
func TestUnreadableRecordOfATaskThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", func(context.Context, *dispatch.Task) error { return dispatch.SkipRetry(errors.New("no")) })
		bad, good := b.enqueue(d, dispatch.Task{Kind: "k"}), b.enqueue(d, dispatch.Task{Kind: "k"})
		b.ok(d.Start(t.Context()))
		synctest.Wait()
		const key = "dispatch:{default}:tasks"
		b.server.HSet(key, string(bad), "\x63"+b.server.HGet(key, string(bad))[1:])

		for _, id := range []dispatch.TaskID{bad, good} {
			info, err := d.Wait(t.Context(), "default", id)
			b.ok(err)
			if info.State != dispatch.TaskDead || (info.Err == nil) != (id == good) {
				t.Errorf("waited for %s: %s, %v", id, info.State, info.Err)
			}
		}
		n, err := d.DeleteDead(t.Context(), "default", dispatch.Filter{})
		if b.ok(err); n != 2 {
			t.Errorf("%d removed", n)
		}
		b.ok(b.redis.CheckInvariants(t.Context(), "default"))
	})
}
