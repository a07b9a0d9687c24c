package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch"
)

// missed are cron entries, one for each policy, whose ticks nobody has fired for a while.
type missed struct {
	run   *Run
	since time.Time
}

const (
	missedQueue = "missed"
	missedEvery = 30 * time.Second
	missedFor   = 150 * time.Second
	// missedAfter is how late a tick is missed, as the product documents it.
	missedAfter = time.Minute
)

// policies are the ways to deal with missed ticks, by the names of their entries.
var policies = map[string]dispatch.Misfire{
	"of-skip": dispatch.MisfireSkip, "of-once": dispatch.MisfireOnce, "of-all": dispatch.MisfireAll,
}

// Missed schedules the entries while no worker is there, and has them look as if that had been so for a while: the instant up to which
// an entry's ticks were dealt with is the third number of its line. Workers come next.
func (r *Run) Missed(ctx context.Context) (*missed, error) {
	// A tick that comes while they are read would count for some of them, and not for others.
	if left := missedEvery - time.Duration(time.Now().UnixNano())%missedEvery; left < 3*time.Second && !Sleep(ctx, left+time.Second/2) {
		return nil, context.Cause(ctx)
	}
	m := &missed{run: r, since: time.Now().Add(-missedFor).Truncate(time.Millisecond)}
	raw, err := r.Raw()
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	for name, policy := range policies {
		err := r.client.Schedule(ctx, dispatch.Entry{
			Name: name, Spec: "@every " + missedEvery.String(), Task: Work{}.Task(missedQueue), Misfire: policy,
		})
		if err != nil {
			return nil, err
		}
		text, err := raw.HGet(ctx, key("~", "cron"), name).Result()
		if err != nil {
			return nil, err
		}
		words := strings.SplitN(text, " ", 5) // version, revision, paused, since, the rest
		if len(words) != 5 || words[3] == "" {
			return nil, fmt.Errorf("entry %s is kept as %q", name, text)
		}
		words[3] = strconv.FormatInt(m.since.UnixMilli(), 10)
		if err := raw.HSet(ctx, key("~", "cron"), name, strings.Join(words, " ")).Err(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// End waits until the entries are dealt with, and removes them. The ticks that their policies ask for go into the ledger as promised,
// and what else there is in their queue is an error.
func (m *missed) End(ctx context.Context) error {
	r := m.run
	wanted := map[string]bool{}
	for name, policy := range policies {
		var upTo time.Time
		err := Until(ctx, 20*time.Second, "missed ticks of "+name+" are dealt with", func() (bool, error) {
			e, err := r.client.Entry(ctx, name)
			if err == nil {
				upTo = e.Since
			}
			return err == nil && upTo.After(m.since), nil
		})
		if err != nil {
			return err
		}
		if err := r.client.DeleteEntry(ctx, name); err != nil {
			return err
		}
		for _, tick := range m.ticks(policy, upTo) {
			id := fmt.Sprintf("%s-%d", name, tick.Unix())
			wanted[id] = true
			r.Promise(missedQueue, id, tick)
		}
	}
	fired := map[string]bool{}
	err := Until(ctx, 10*time.Second, "the ticks that the policies ask for are fired", func() (bool, error) {
		h, err := r.History()
		if err != nil {
			return false, err
		}
		for _, e := range h.Events {
			if e.Queue != missedQueue || e.Token == 0 {
				continue
			}
			if !wanted[e.ID] {
				return false, fmt.Errorf("%s was fired, and should not have been", e.ID)
			}
			fired[e.ID] = true
		}
		return len(fired) == len(wanted), nil
	})
	if len(fired) < len(wanted) {
		for id := range fired {
			delete(wanted, id)
		}
		err = fmt.Errorf("not fired: %v: %w", slices.Sorted(maps.Keys(wanted)), err)
	}
	return err
}

// ticks are those that a policy asks for of what happened up to an instant.
func (m *missed) ticks(policy dispatch.Misfire, upTo time.Time) (fire []time.Time) {
	late := 0
	for tick := m.since.Truncate(missedEvery).Add(missedEvery); !tick.After(upTo); tick = tick.Add(missedEvery) {
		if tick.After(upTo.Add(-missedAfter)) {
			fire = append(fire, tick)
			continue
		}
		late++
		switch {
		case policy == dispatch.MisfireAll, policy == dispatch.MisfireOnce && late == 1:
			fire = append(fire, tick)
		case policy == dispatch.MisfireOnce:
			fire[0] = tick // only the last one
		}
	}
	return fire
}
