package redisstore

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// Replay writes the stamp and the flags of a record anew and nothing else. A record of another format it leaves as it is.
func TestReplayedRecord(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, _ := flaky(t, b)
		tasks := s.queueKeys(mail).tasks
		derived := namedTask("derived")
		derived.Derived, derived.Payload = true, []byte("payload")
		enqueue(t, s, derived, task("kept"), task("later"))
		settle(t, s, dispatch.Dead, time.Hour, claim(t, s, alice, 1, 3).Leased...)
		ok(t, s.PurgeQueue(t.Context(), mail, 0))
		read := func(id string) string {
			t.Helper()
			record, err := s.client.HGet(t.Context(), tasks, id).Result()
			ok(t, err)
			return record
		}
		was := map[string]string{"derived": read("derived"), "kept": read("kept"), "later": "\x02" + read("later")[1:]}
		ok(t, s.client.HSet(t.Context(), tasks, "later", was["later"]).Err())
		s.advance(time.Minute)
		_, err := s.ReplayTasks(t.Context(), mail, []dispatch.Replay{
			{ID: "derived", NewID: "x"}, {ID: "kept"}, {ID: "later", NewID: "y"},
		})
		ok(t, err)

		for id, old := range map[string]string{"x": was["derived"], "kept": was["kept"]} {
			record := read(id)
			if generation := binary.BigEndian.Uint32([]byte(record[1:5])); record[0] != 1 || generation != 2 {
				t.Errorf("%s has format %d and generation %d", id, record[0], generation)
			}
			if got, want := recordCreated(record), recordCreated(old).Add(time.Minute); !got.Equal(want) {
				t.Errorf("%s is created at %v, want %v", id, got, want)
			}
			if record[stampBytes] != 0 || record[stampBytes+1:] != old[stampBytes+1:] {
				t.Errorf("%s has flags %d and the rest %q", id, record[stampBytes], record[stampBytes+1:])
			}
		}
		if read("y") != was["later"] {
			t.Errorf("a record of another format became %q", read("y"))
		}
		sound(t, s, mail)
	})
}

// A script call stops at the bytes that it may read and no sooner, also when it removes.
func TestLongDeadTasksGoInSeveralCalls(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		for i, c := range []struct{ tasks, size, calls int }{{250, 1 << 10, 1}, {7, 200 << 10, 4}, {3, 900 << 10, 3}} {
			var replays []dispatch.Replay
			var gone []dispatch.TaskID
			for j := range c.tasks {
				id := fmt.Sprintf("t%d-%03d", i, j)
				long := task(id)
				long.Payload = make([]byte, c.size)
				enqueue(t, s, long)
				settle(t, s, dispatch.Dead, time.Hour, claim(t, s, alice, int64(1000*i+j+1), 1).Leased...)
				replays = append(replays, dispatch.Replay{ID: long.ID})
				gone = append(gone, long.ID)
			}
			before := f.sent("replay")
			r, err := s.ReplayTasks(t.Context(), mail, replays)
			if n := f.sent("replay") - before; err != nil || len(r.Replayed) != c.tasks || n < c.calls || n > c.calls+1 {
				t.Errorf("%+v: %d replayed in %d calls, %v", c, len(r.Replayed), n, err)
			}
			before = f.sent("delete")
			remove(t, s, 0, gone...)
			if n := f.sent("delete") - before; n < c.calls || n > c.calls+1 {
				t.Errorf("%+v: deleted in %d calls", c, n)
			}
		}
		sound(t, s, mail)
	})
}
