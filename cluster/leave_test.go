package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// leave leaves with some time for it.
func (l *life) leave(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return l.member.Leave(ctx)
}

// Leaving is the last thing that a worker does.
func TestMemberLeaves(t *testing.T) {
	inBubble(t, func(l *life) {
		l.run()
		l.until(15 * time.Second)
		l.end()
		synctest.Wait()
		l.store.take()
		for range 2 { // it may be repeated
			if err := l.leave(time.Second); err != nil {
				l.Error(err)
			}
			l.called("15s deregister")
		}
		l.member.Drain()
		l.member.Run(l.Context())
		l.until(time.Minute)
		l.called()
		if row := l.store.row("w-1"); row.ID != "" {
			l.Errorf("the row is %+v", row)
		}
	})
}

// Leaving waits for Run, and for a call that Run has left behind: a registration that comes late would bring back the row.
func TestMemberLeavesAfterItsCalls(t *testing.T) {
	inBubble(t, func(l *life) {
		release := make(chan struct{})
		l.store.on(deaf(release, "register"))
		l.run()
		if err := l.leave(2 * time.Second); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Run") {
			l.Errorf("while it runs: %v", err)
		}
		l.end()
		l.until(2999 * time.Millisecond)
		select {
		case <-l.ended:
			l.Error("Run did not wait for its call")
		default:
		}
		l.until(3 * time.Second)
		select {
		case <-l.ended:
		default:
			l.Fatal("Run waits for a call that ignores its context")
		}
		if err := l.leave(2 * time.Second); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "hangs") {
			l.Errorf("while the call hangs: %v", err)
		}
		l.called("0s register active")
		time.AfterFunc(time.Second, func() { close(release) })
		if err := l.leave(2 * time.Second); err != nil {
			l.Errorf("after the call: %v", err)
		}
		l.called("6s deregister")
		if row := l.store.row("w-1"); row.ID != "" {
			l.Errorf("the row is %+v", row)
		}
	})
}

// Leaving takes no longer than its context, and says why it failed.
func TestMemberLeaveIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		hook func(context.Context, string) error
		want string
	}{
		"down":   {down, errDown.Error()},
		"silent": {silence, "deadline"},
		"panic":  {func(context.Context, string) error { panic("broken") }, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(l *life) {
				l.store.on(c.hook)
				start := time.Now()
				if err := l.leave(time.Second); err == nil || !strings.Contains(err.Error(), c.want) {
					l.Errorf("error is %v, want one with %q", err, c.want)
				}
				if took := time.Since(start); took > time.Second {
					l.Errorf("took %v", took)
				}
			})
		})
	}
	inBubble(t, func(l *life) {
		release := make(chan struct{})
		l.store.on(deaf(release, "deregister"))
		if err := l.leave(time.Second); !errors.Is(err, context.DeadlineExceeded) {
			l.Errorf("deaf: %v", err)
		}
		close(release)
	})
}

// When Run ends, what its calls return is no failure.
func TestMemberEndsQuietly(t *testing.T) {
	inBubble(t, func(l *life) {
		l.run()
		l.store.on(silence)
		l.until(11 * time.Second)
		l.end()
		synctest.Wait()
		select {
		case <-l.ended:
		default:
			l.Error("Run goes on")
		}
		l.until(time.Hour)
		l.told()
	})
}

// Nor is it where the answer is there at the moment when Run ends.
func TestMemberEndsDuringAnAnswer(t *testing.T) {
	for range 25 { // which of both is seen first is left to chance
		inBubble(t, func(l *life) {
			release := make(chan struct{})
			l.store.on(func(context.Context, string) error {
				<-release
				return errDown
			})
			l.onStale = func() { // Run sees neither before this returns
				l.end()
				close(release)
				time.Sleep(time.Second)
			}
			l.run()
			l.until(32 * time.Second)
			l.told("30s stale")
		})
	}
}

func TestMemberRunsOnce(t *testing.T) {
	inBubble(t, func(l *life) {
		l.run()
		l.until(time.Second)
		l.member.Run(l.Context()) // returns at once
		l.until(2 * time.Second)
	})
}
