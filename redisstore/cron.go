package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
)

// PutEntry implements dispatch.CronStore.
func (s *Store) PutEntry(ctx context.Context, e *dispatch.EntryInfo) error {
	content, err := encodeEntry(e)
	if err != nil {
		return err
	}
	_, err = s.run(ctx, evenUncertain, s.scripts.cronPut, []string{s.cronKey(), s.cronNextKey(), s.cronLastKey()},
		s.now(), e.Name, content, s.wakeChannel(), announcement(dispatch.HintCron))
	return err
}

// DeleteEntry implements dispatch.CronStore.
func (s *Store) DeleteEntry(ctx context.Context, name string, revision int64) error {
	v, err := s.run(ctx, evenUncertain, s.scripts.cronDelete, []string{s.cronKey(), s.cronNextKey()},
		name, revision, s.wakeChannel(), announcement(dispatch.HintCron))
	return entryFound(v, err)
}

// PauseEntry implements dispatch.CronStore.
func (s *Store) PauseEntry(ctx context.Context, name string, paused bool) error {
	v, err := s.run(ctx, evenUncertain, s.scripts.cronPause, []string{s.cronKey(), s.cronNextKey(), s.cronLastKey()},
		s.now(), name, flag(paused), s.wakeChannel(), announcement(dispatch.HintCron))
	return entryFound(v, err)
}

func entryFound(v any, err error) error {
	if err == nil && v == int64(0) {
		return dispatch.ErrEntryNotFound
	}
	return err
}

// Entry implements dispatch.CronStore.
func (s *Store) Entry(ctx context.Context, name string) (*dispatch.EntryInfo, error) {
	var value string
	err := s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		var err error
		value, err = s.client.HGet(ctx, s.cronKey(), name).Result()
		return err
	})
	if errors.Is(err, redis.Nil) {
		return nil, dispatch.ErrEntryNotFound
	}
	if err != nil {
		return nil, err
	}
	e, err := decodeEntry(name, value)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Entries implements dispatch.CronStore.
func (s *Store) Entries(ctx context.Context, cursor uint64) (entries []*dispatch.EntryInfo, next uint64, err error) {
	var pairs []string
	err = s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		var err error
		pairs, next, err = s.client.HScan(ctx, s.cronKey(), cursor, "", pageSize).Result()
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		entries = append(entries, s.readEntry(pairs[i], pairs[i+1]))
	}
	return entries, next, nil
}

// DueEntries implements dispatch.CronStore.
func (s *Store) DueEntries(ctx context.Context, skip, limit int) ([]*dispatch.EntryInfo, time.Time, time.Duration, error) {
	v, err := s.run(ctx, evenUncertain, s.scripts.cronDue, []string{s.cronKey(), s.cronNextKey()},
		s.now(), min(max(limit, 0), maxScriptItems), maxScriptBytes, max(skip, 0))
	if err != nil {
		return nil, time.Time{}, 0, err
	}
	r := replyOf(s.scripts.cronDue, v)
	now, next := millis(r.int()), wait(r.int())
	var due []*dispatch.EntryInfo
	for r.left() > 0 && r.err == nil {
		due = append(due, s.readEntry(r.string(), r.string()))
	}
	if r.err != nil {
		return nil, time.Time{}, 0, r.err
	}
	return due, now, next, nil
}

// readEntry reads one of many entries. One that this version cannot read has no Spec, so that it cannot fire, and does not
// keep anybody from the others.
func (s *Store) readEntry(name, value string) *dispatch.EntryInfo {
	e, err := decodeEntry(name, value)
	if err != nil {
		s.log.Warn("redisstore: a cron entry cannot be read by this version of the program", "entry", fmt.Sprintf("%.100s", name), "error", err)
	}
	return e
}

// AdvanceEntry implements dispatch.CronStore.
func (s *Store) AdvanceEntry(ctx context.Context, a dispatch.EntryAdvance) (bool, error) {
	v, err := s.run(ctx, evenUncertain, s.scripts.cronAdvance, []string{s.cronKey(), s.cronNextKey(), s.termKey()},
		a.Name, a.Revision, instant(a.Since), instant(a.Next), a.Term)
	if err == nil && v == int64(-1) {
		err = dispatch.ErrLeadershipLost
	}
	return v == int64(1), err
}

// instant is a time in ms as scripts take it: 0 for the zero time.
func instant(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(max(t.UnixMilli(), 0), 10)
}
