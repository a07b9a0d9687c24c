package cluster_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// One registration, one clean-up, and from then on one write per interval.
func TestMemberBeats(t *testing.T) {
	for _, fills := range []bool{false, true} {
		inBubble(t, func(l *life) {
			l.store.fills = fills
			l.store.rows["w-old"] = cluster.Worker{ID: "w-old", LastSeen: time.Now().Add(-25 * time.Hour)}
			l.store.rows["w-2"] = cluster.Worker{ID: "w-2", LastSeen: time.Now().Add(-23 * time.Hour)}
			l.run()
			l.until(35 * time.Second)
			want := []string{"0s register active", "0s get", "0s sweep 24h0m0s", "10s beat", "20s beat", "30s beat"}
			if fills {
				want = slices.Delete(want, 1, 2)
			}
			l.called(want...)
			l.told()
			if l.store.row("w-old").ID != "" || l.store.row("w-2").ID == "" {
				l.Error("the clean-up took another row than that of the one who is gone for a day")
			}
			if self := l.member.Self(); !self.CreatedAt.Equal(l.store.start) || self.State != cluster.StateActive {
				l.Errorf("self is %+v", self)
			}
		})
	}
}

// A worker that the registry has lost or buried comes back at once, as the one that it was.
func TestMemberRegistersAgain(t *testing.T) {
	for name, change := range map[string]func(*cluster.Worker) bool{
		"gone": func(*cluster.Worker) bool { return false },
		"dead": func(w *cluster.Worker) bool { w.State = cluster.StateDead; return true },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(l *life) {
				l.run()
				l.until(15 * time.Second)
				l.store.take()
				l.store.change("w-1", change)
				l.until(35 * time.Second)
				l.called("20s beat", "20s register active", "30s beat")
				l.told("20s failing", "20s recovered")
				if !errors.Is(l.errors[0], cluster.ErrWorkerNotFound) {
					l.Errorf("failed with %v", l.errors[0])
				}
				if row := l.store.row("w-1"); !row.CreatedAt.Equal(l.store.start) || row.State != cluster.StateActive {
					l.Errorf("the row is %+v", row)
				}
				l.steady(20 * time.Second) // for the registry, it was not there before
			})
		})
	}
}

// CreatedAt is read again after the next good beat if it could not be read.
func TestMemberReadsCreatedAtLater(t *testing.T) {
	inBubble(t, func(l *life) {
		l.store.on(func(_ context.Context, call string) error {
			if call == "get" {
				return errDown
			}
			return nil
		})
		l.run()
		l.until(5 * time.Second)
		l.store.on(nil)
		l.until(25 * time.Second)
		l.called("0s register active", "0s get", "0s sweep 24h0m0s", "10s beat", "10s get", "20s beat")
		l.told()
		if self := l.member.Self(); !self.CreatedAt.Equal(l.store.start) {
			l.Errorf("created at %v", self.CreatedAt)
		}
	})
}

// A registry that is down is asked again and again, neither in a hot loop nor in step with others.
func TestMemberRetries(t *testing.T) {
	first := map[string]bool{}
	for range 5 {
		inBubble(t, func(l *life) {
			l.store.on(down)
			l.run()
			l.until(5 * time.Minute)
			calls := l.store.take()
			if n := len(calls); n < 5*60/2 || n > 5*60+20 {
				l.Errorf("%d calls in 5 min, want one every one or two seconds", n)
			}
			first[calls[1]] = true
			l.told("0s failing", "30s stale")
			l.store.on(nil)
			l.until(5*time.Minute + 5*time.Second)
			if calls := l.store.take(); len(calls) != 3 || !strings.HasSuffix(calls[0], "register active") {
				l.Errorf("when the registry is back: %q", calls)
			}
			if h := l.news(); len(h) != 4 || !strings.HasSuffix(h[2], "recovered") || !strings.HasSuffix(h[3], "fresh") {
				l.Errorf("the member told %q", h)
			}
		})
	}
	if len(first) < 2 {
		t.Errorf("five workers retry at the same instant: %v", first)
	}
}

// Several tries fit into the threshold even where each runs into its deadline.
func TestMemberTriesOftenEnough(t *testing.T) {
	inBubble(t, func(l *life) {
		l.run()
		l.store.take()
		l.store.on(silence)
		l.until(29999 * time.Millisecond)
		if calls := l.store.take(); len(calls) < 3 || calls[0] != "10s beat" {
			l.Errorf("before the worker is stale it tried %q", calls)
		}
		l.told("15s failing")
		if !errors.Is(l.errors[0], context.DeadlineExceeded) {
			l.Errorf("failed with %v, want its deadline", l.errors[0])
		}
	})
}

// Drain writes the state at once, and beats go on.
func TestMemberDrains(t *testing.T) {
	inBubble(t, func(l *life) {
		l.run()
		l.until(13 * time.Second)
		l.store.take()
		l.member.Drain()
		l.member.Drain()
		if self := l.member.Self(); self.State != cluster.StateDraining {
			l.Errorf("self is %+v", self)
		}
		l.until(35 * time.Second)
		l.called("13s register draining", "23s beat", "33s beat")
		if row := l.store.row("w-1"); row.State != cluster.StateDraining || !row.CreatedAt.Equal(l.store.start) {
			l.Errorf("the row is %+v", row)
		}
		l.store.change("w-1", func(*cluster.Worker) bool { return false })
		l.until(44 * time.Second)
		l.called("43s beat", "43s register draining")
		l.steady(43 * time.Second)
	})
}

// A state that changes while a call is in flight is written after it.
func TestMemberDrainsDuringACall(t *testing.T) {
	for _, call := range []string{"register", "beat"} {
		inBubble(t, func(l *life) {
			release := make(chan struct{})
			l.store.on(deaf(release, call))
			l.run()
			l.until(10 * time.Second)
			l.store.take()
			l.member.Drain()
			l.until(11 * time.Second)
			l.called()
			l.store.on(nil)
			close(release)
			synctest.Wait()
			if calls := l.store.take(); len(calls) == 0 || !slices.Contains(calls, "11s register draining") {
				l.Errorf("after the %s: %q", call, calls)
			}
		})
	}
}

// A store that panics, or ends the goroutine, fails a beat and nothing else.
func TestMemberSurvivesAPanic(t *testing.T) {
	inBubble(t, func(l *life) {
		l.store.on(func(_ context.Context, call string) error { panic("broken in " + call) })
		l.run()
		l.until(time.Second)
		l.told("0s failing")
		if text := l.errors[0].Error(); !strings.Contains(text, "broken in register") || !strings.Contains(text, "memory_test.go") {
			l.Errorf("the error does not say what and where: %v", text)
		}
		l.store.on(func(context.Context, string) error { runtime.Goexit(); return nil })
		l.until(2 * time.Second)
		l.store.on(nil)
		l.until(5 * time.Second)
		if row := l.store.row("w-1"); row.ID == "" {
			l.Error("the worker has not registered")
		}
	})
}

// The worker that a member was made for, and those that it hands out, are no way into it.
func TestMemberOwnsItsWorker(t *testing.T) {
	worker := cluster.Worker{ID: "w-1", State: cluster.StateDead, Queues: []string{"q"},
		Capacity: cluster.Resources{"cpu": 1}, Metadata: map[string]string{"zone": "a"}}
	m, err := cluster.NewMember(newMemory(time.Now), worker, cluster.MemberOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []cluster.Worker{worker, m.Self()} {
		w.Queues[0], w.Capacity["cpu"], w.Metadata["zone"] = "other", 2, "b"
	}
	if self := m.Self(); self.Queues[0] != "q" || self.Capacity["cpu"] != 1 || self.Metadata["zone"] != "a" ||
		self.State != cluster.StateActive {
		t.Errorf("self is %+v", self)
	}
}

func TestNewMemberRefuses(t *testing.T) {
	for name, o := range map[string]cluster.MemberOptions{
		"Interval":  {Interval: -time.Second},
		"Threshold": {Threshold: 20 * time.Second},
		"Forget":    {Forget: 29 * time.Second},
	} {
		_, err := cluster.NewMember(newMemory(time.Now), cluster.Worker{ID: "w-1"}, o)
		if err == nil || !strings.Contains(err.Error(), "MemberOptions."+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
