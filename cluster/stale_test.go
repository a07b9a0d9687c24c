package cluster_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
)

// Stale comes at the very instant, whatever the registry does meanwhile: others count to it as well.
func TestMemberStaleAtTheInstant(t *testing.T) {
	for name, hook := range map[string]func(context.Context, string) error{
		"down": down, "silent": silence, "deaf": nil,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(l *life) {
				release := make(chan struct{})
				if name == "deaf" {
					hook = deaf(release, "beat", "register")
				}
				l.run()
				l.until(15 * time.Second)
				l.store.on(hook)
				l.until(40*time.Second - 1)
				if heard := l.news(); slices.ContainsFunc(heard, isStale) {
					l.Errorf("before the instant: %q", heard)
				}
				l.until(40 * time.Second)
				if heard := l.news(); len(heard) == 0 || heard[len(heard)-1] != "40s stale" {
					l.Errorf("at the instant: %q", heard)
				}
				l.until(3 * time.Minute)
				if heard := l.news(); slices.IndexFunc(heard, isStale) != len(heard)-1 {
					l.Errorf("after the instant: %q", heard)
				}
				l.store.on(nil)
				close(release)
				l.until(4 * time.Minute)
				if heard := l.news(); !strings.HasSuffix(heard[len(heard)-1], "fresh") {
					l.Errorf("when the registry is back: %q", heard)
				}
			})
		})
	}
}

func isStale(what string) bool { return strings.HasSuffix(what, "stale") }

// Where no beat was good, the time since Run counts.
func TestMemberStaleBeforeItRegistered(t *testing.T) {
	inBubble(t, func(l *life) {
		release := make(chan struct{})
		l.store.on(deaf(release, "register"))
		time.Sleep(time.Hour) // not since NewMember
		l.run()
		l.until(time.Hour + 30*time.Second - 1)
		l.told()
		l.until(time.Hour + 31*time.Second)
		l.told("1h0m30s stale")
		close(release)
		l.until(time.Hour + 32*time.Second)
		// The registration that hung is too old to count. The beat after it does.
		l.told("1h0m30s stale", "1h0m31s fresh")
		if calls := l.store.take(); !slices.Contains(calls, "1h0m31s beat") {
			l.Errorf("after the registration that hung: %q", calls)
		}
	})
}

// A beat counts from its start: the registry may have written it then, and answered late.
func TestMemberCountsFromTheStartOfABeat(t *testing.T) {
	inBubble(t, func(l *life) {
		l.run()
		l.store.on(func(context.Context, string) error {
			time.Sleep(4 * time.Second)
			return nil
		})
		l.until(15 * time.Second) // the beat of 10s was good at 14s
		l.store.on(down)
		l.until(41 * time.Second)
		l.told("20s failing", "40s stale")
	})
}

// A process that was frozen learns that it is stale before it beats, and it is fresh only after that beat.
func TestMemberFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := clockwork.NewFakeClock()
		l := newLife(t, clock)
		l.run()
		clock.Advance(10 * time.Second)
		synctest.Wait()
		l.told()
		l.store.take()
		l.store.on(func(context.Context, string) error {
			l.told("1m10s stale")
			return nil
		})
		clock.Advance(time.Minute)
		synctest.Wait()
		l.called("1m10s beat")
		l.told("1m10s stale", "1m10s fresh")
		l.steady(70 * time.Second)
	})
}

// A good answer that was under way while the process was frozen says nothing of now.
func TestMemberFrozenDuringABeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := clockwork.NewFakeClock()
		l := newLife(t, clock)
		l.run()
		l.store.take()
		release, second := make(chan struct{}), make(chan struct{})
		l.store.on(deaf(release, "beat"))
		clock.Advance(10 * time.Second)
		synctest.Wait()
		l.called("10s beat")
		clock.Advance(time.Minute)
		synctest.Wait()
		l.told("1m10s stale")
		l.store.on(deaf(second, "beat"))
		close(release)
		synctest.Wait()
		l.called("1m10s beat")
		l.told("1m10s stale")
		close(second)
		synctest.Wait()
		l.told("1m10s stale", "1m10s fresh")
	})
}

// leaping is a clock that can leap, as it does for a process that was frozen: its timers notice later.
type leaping struct {
	clockwork.Clock
	leapt atomic.Int64 // ns
}

func (c *leaping) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.leapt.Load())) }

// An answer that is seen before the alarm does not hide that others may have taken the worker for dead meanwhile.
func TestMemberFrozenAnswerBeforeAlarm(t *testing.T) {
	for _, frozen := range []time.Duration{25 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			clock := &leaping{Clock: clockwork.NewRealClock()}
			l := newLife(t, clock)
			l.run()
			l.store.on(func(context.Context, string) error {
				l.store.on(nil)
				clock.leapt.Add(int64(frozen)) // while the call was under way
				return nil
			})
			l.until(11 * time.Second)
			woke := (10*time.Second + frozen).String()
			l.told(woke+" stale", woke+" fresh")
		})
	}
}

// Steady is who has beaten without a gap, and since when.
func TestMemberSteadySince(t *testing.T) {
	inBubble(t, func(l *life) {
		l.steady(-1)
		l.store.on(down)
		l.run()
		l.until(time.Second)
		l.steady(-1)
		l.store.on(nil)
		l.until(5 * time.Second)
		first, ok := l.member.SteadySince()
		if !ok || first.Before(l.store.start.Add(time.Second)) {
			l.Fatalf("steady since %v: %v", first, ok)
		}
		l.until(time.Hour)
		if since, ok := l.member.SteadySince(); !ok || !since.Equal(first) {
			l.Errorf("after an hour of beats it is steady since %v: %v", since, ok)
		}

		l.store.on(down) // one beat fails
		l.until(time.Hour + 11*time.Second)
		l.steady(-1)
		l.store.on(nil)
		l.until(time.Hour + 20*time.Second)
		if since, ok := l.member.SteadySince(); !ok || since.Before(l.store.start.Add(time.Hour)) {
			l.Errorf("after a beat that failed it is steady since %v: %v", since, ok)
		}
	})
}

// A call that hangs and is good in the end is a gap as well, and it shows before it has ended.
func TestMemberSteadyAcrossAGap(t *testing.T) {
	for _, c := range []struct{ hangs, during, after time.Duration }{
		{hangs: 9 * time.Second, during: 0, after: 0},
		{hangs: 25 * time.Second, during: -1, after: 35 * time.Second},
	} {
		inBubble(t, func(l *life) {
			release := make(chan struct{})
			l.run()
			l.store.on(deaf(release, "beat"))
			l.until(10*time.Second + c.hangs)
			l.steady(c.during)
			l.store.on(nil)
			close(release)
			l.until(41 * time.Second)
			l.steady(c.after)
		})
	}
}
