package redisstore

import (
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// A task that cannot be read, or of which a part cannot, is listed with what can be, and hides no other.
func TestTasksThatCannotBeRead(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		ctx := t.Context()
		put(t, s, "newer", "torn", "whole", "odd")
		r := claim(t, s, alice, 1, 10)
		for _, l := range r.Leased {
			settle(t, s, dispatch.Dead, time.Hour, l)
		}
		k := s.queueKeys(mail)
		record, err := s.client.HGet(ctx, k.tasks, "newer").Result()
		ok(t, err)
		ok(t, s.client.HSet(ctx, k.tasks, "newer", "\x63"+record[1:], "torn", record[:20]).Err())
		ok(t, s.client.HSet(ctx, k.state, "odd", "\x63").Err())
		page, next, err := s.Tasks(ctx, mail, dispatch.TaskDead, "")
		if ok(t, err); len(page) != 4 || next != "" {
			t.Fatalf("%d tasks, and then %q", len(page), next)
		}
		for _, info := range page {
			if info.State != dispatch.TaskDead || info.Queue != mail || info.ExpiresAt.IsZero() {
				t.Errorf("%s: %+v", info.ID, info)
			}
			if read := info.ID == "whole" || info.ID == "odd"; (info.Kind != "") != read || info.CreatedAt.IsZero() == read {
				t.Errorf("%s: of kind %q, created %v", info.ID, info.Kind, info.CreatedAt)
			}
			if (info.Err == nil) != (info.ID == "whole") {
				t.Errorf("%s: %v", info.ID, info.Err)
			}
			one, err := s.Task(ctx, mail, info.ID)
			if ok(t, err); (one.Err == nil) != (info.Err == nil) {
				t.Errorf("%s: %v alone, %v on the page", info.ID, one.Err, info.Err)
			}
		}
	})
}

// A record that damage has left empty is a task all the same: it is listed, keeps its name, and can be replayed and deleted.
func TestEmptyRecord(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		ctx := t.Context()
		put(t, s, "a", "b")
		settle(t, s, dispatch.Dead, time.Hour, claim(t, s, alice, 1, 10).Leased...)
		ok(t, s.client.HSet(ctx, s.queueKeys(mail).tasks, "a", "", "b", "").Err())
		page, _, err := s.Tasks(ctx, mail, dispatch.TaskDead, "")
		if ok(t, err); len(page) != 2 || page[0].Err == nil {
			t.Errorf("listed: %+v", page)
		}
		for _, longest := range []int{100, 1 << 20} { // with long records, those that are there are not all read
			ok(t, s.client.HSet(ctx, s.queueKeys(mail).meta, "longest", longest).Err())
			if r := enqueue(t, s, namedTask("a")); !r.Duplicate[0] {
				t.Errorf("longest record of %d bytes: stored twice", longest)
			}
		}
		r, err := s.ReplayTasks(ctx, mail, []dispatch.Replay{{ID: "a"}})
		if ok(t, err); !r.Replayed[0] {
			t.Error("not replayed")
		}
		remove(t, s, 0, "a", "b")
		sound(t, s, mail)
	})
}
