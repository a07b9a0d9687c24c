package cluster_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dispatchkit/dispatch/cluster"
)

// life is a member with a registry in memory, in a bubble of synctest, that notes what it was told.
type life struct {
	*testing.T
	member *cluster.Member
	store  *memory
	end    context.CancelFunc // of Run
	ended  chan struct{}      // closed when Run has returned

	onStale func() // called by Stale besides; nil means nothing

	mu     sync.Mutex
	heard  []string // the functions that were called, each with when
	errors []error  // what Failing got
}

func newLife(t *testing.T, clock clockwork.Clock) *life {
	l := &life{T: t, store: newMemory(clock.Now), ended: make(chan struct{})}
	note := func(what string) func() {
		return func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.heard = append(l.heard, l.store.stamp(what))
		}
	}
	var err error
	l.member, err = cluster.NewMember(l.store, cluster.Worker{ID: "w-1", Hostname: "host", Concurrency: 4}, cluster.MemberOptions{
		Clock: clock, Fresh: note("fresh"), Recovered: note("recovered"),
		Stale: func() {
			note("stale")()
			if l.onStale != nil {
				l.onStale()
			}
		},
		Failing: func(err error) {
			note("failing")()
			l.mu.Lock()
			defer l.mu.Unlock()
			l.errors = append(l.errors, err)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// inBubble runs a test of a member that is not running yet, on the clock of a bubble.
func inBubble(t *testing.T, test func(*life)) {
	synctest.Test(t, func(t *testing.T) { test(newLife(t, clockwork.NewRealClock())) })
}

// run starts Run and ends it with the test.
func (l *life) run() {
	ctx, cancel := context.WithCancel(context.Background())
	l.end = cancel
	go func() {
		defer close(l.ended)
		l.member.Run(ctx)
	}()
	l.Cleanup(func() {
		cancel()
		<-l.ended
	})
	synctest.Wait()
}

// until lets time pass to that long after the start.
func (l *life) until(since time.Duration) {
	time.Sleep(since - time.Since(l.store.start))
	synctest.Wait()
}

// called requires the calls since it was last asked.
func (l *life) called(want ...string) {
	l.Helper()
	if calls := l.store.take(); !slices.Equal(calls, want) {
		l.Errorf("the registry was called %q, want %q", calls, want)
	}
}

// news is all that the member has told so far.
func (l *life) news() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.heard)
}

// told requires all that the member has told so far.
func (l *life) told(want ...string) {
	l.Helper()
	if heard := l.news(); !slices.Equal(heard, want) {
		l.Errorf("the member told %q, want %q", heard, want)
	}
}

// steady requires what SteadySince says; below zero is that it is not.
func (l *life) steady(want time.Duration) {
	l.Helper()
	switch since, ok := l.member.SteadySince(); {
	case ok != (want >= 0):
		l.Errorf("steady at %v: %v", l.store.stamp(""), ok)
	case ok && since.Sub(l.store.start) != want:
		l.Errorf("steady since %v, want %v", since.Sub(l.store.start), want)
	}
}
