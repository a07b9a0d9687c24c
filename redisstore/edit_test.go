package redisstore

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// Edits made at the same time are all made or refused as conflicts; none is lost, and none is made of what was never
// stored.
func TestConcurrentEdits(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		const editors, edits = 8, 10
		s := b.open(t)
		put(t, s, "a")
		var wg sync.WaitGroup
		for range editors {
			wg.Go(func() {
				for done := 0; done < edits; {
					err := s.EditTask(t.Context(), mail, "a", func(t *dispatch.Task) error {
						n, _ := strconv.Atoi(string(t.Payload))
						t.Payload = []byte(strconv.Itoa(n + 1))
						return nil
					})
					if err == nil {
						done++
					} else if !errors.Is(err, dispatch.ErrConflict) {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		info, err := s.Task(t.Context(), mail, "a")
		ok(t, err)
		if got := string(info.Payload); got != strconv.Itoa(editors*edits) {
			t.Errorf("after %d edits the task counts %s", editors*edits, got)
		}
		sound(t, s, mail)
	})
}

// An edit whose answer was lost is stored once, also when a worker has taken the task before the call is repeated.
func TestLostAnswerOfEdit(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		put(t, s, "a")
		calls := 0
		edit := func() error {
			return s.EditTask(t.Context(), mail, "a", func(t *dispatch.Task) error {
				calls++
				t.Kind += "er"
				return nil
			})
		}
		f.plan("edit", lostReply, lostReply)
		ok(t, edit())
		var leased []dispatch.Leased
		f.plan("edit", lostReply, fault{do: func() { leased = claim(t, s, alice, 1, 1).Leased }})
		ok(t, edit())
		if len(leased) != 1 || leased[0].Task.Kind != "testerer" || calls != 2 {
			t.Errorf("claimed %+v after %d calls of change", leased, calls)
		}
		sound(t, s, mail)
	})
}

// What an edit would lose, or cannot read, it leaves alone.
func TestEditOfAnotherVersionsRecord(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		key := s.queueKeys(mail).tasks
		for name, spoil := range map[string]func(record string) string{
			"format": func(r string) string { return "\x63" + r[1:] },
			"flag":   func(r string) string { return r[:stampBytes] + "\x80" + r[stampBytes+1:] },
			"field": func(r string) string {
				return r[:headerBytes] + string(r[headerBytes]+1) + r[headerBytes+1:] + "\x63\xa1x"
			},
			"retry setting": func(r string) string { return r[:headerBytes] + "\x82\x01\xa1k\x06\x97\x01\x02\x03\x04\x05\x06\x07" },
			"cut short":     func(r string) string { return r[:len(r)-3] },
			"empty":         func(string) string { return "" },
		} {
			put(t, s, name)
			record, err := s.client.HGet(t.Context(), key, name).Result()
			ok(t, err)
			spoiled := spoil(record)
			ok(t, s.client.HSet(t.Context(), key, name, spoiled).Err())
			err = s.EditTask(t.Context(), mail, dispatch.TaskID(name), func(*dispatch.Task) error {
				t.Errorf("%s: change is called", name)
				return nil
			})
			if err == nil || errors.Is(err, dispatch.ErrConflict) {
				t.Errorf("%s: got %v", name, err)
			}
			if now, err := s.client.HGet(t.Context(), key, name).Result(); err != nil || now != spoiled {
				t.Errorf("%s: the record is %q, %v", name, now, err)
			}
		}
	})
}

// The stamp of an edited record, and when the task is due, are as they were.
func TestEditKeepsTheStamp(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		put(t, s, "first")
		ok(t, s.PurgeQueue(t.Context(), mail, 0)) // the generation rises
		enqueue(t, s, namedTask("a"))
		k := s.queueKeys(mail)
		before, err := s.client.HGet(t.Context(), k.tasks, "a").Result()
		ok(t, err)
		s.advance(time.Minute)
		ok(t, s.EditTask(t.Context(), mail, "a", func(t *dispatch.Task) error { t.Timeout = time.Hour; return nil }))
		after, err := s.client.HGet(t.Context(), k.tasks, "a").Result()
		ok(t, err)
		if after[:headerBytes-4] != before[:headerBytes-4] || after[headerBytes:] != before[headerBytes:] || after == before {
			t.Errorf("the record is %q, before %q", after, before)
		}
		sound(t, s, mail)
	})
}
