package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// A process that is told to end finishes what runs and gives back the rest; no attempt counts that was not one.
func TestTerminatedWorkerDrains(t *testing.T) {
	t.Parallel()
	const tasks, concurrency, queue = 400, 50, "mail"
	for _, tc := range []struct {
		name    string
		work    time.Duration
		drain   time.Duration
		cut     bool // handlers are cut off by the drain
		longest time.Duration
	}{
		{"handlers end in time", 500 * time.Millisecond, 5 * time.Second, false, 2 * time.Second},
		{"handlers are cut off", time.Minute, time.Second, true, 4 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := redistest.Start(t)
			store, client := openStore(t, server.URL())
			raw := openRedis(t, server.Addr())
			l := newLedger()
			s := settings{URL: server.URL(), Behaviour: "sleep", Work: tc.work, Concurrency: concurrency, Queues: []string{queue}, Drain: tc.drain}
			first := spawn(t, l, s)
			ids := enqueueMany(t, client, tasks, workTask(queue))
			eventually(t, 20*time.Second, "the process is full", func() bool { return l.totalStarts() >= concurrency })

			asked := time.Now()
			first.signal(syscall.SIGTERM)
			eventually(t, tc.drain+5*time.Second, "the process has ended", first.gone)
			took := time.Since(asked)
			if first.exit != nil || !strings.HasSuffix(first.stopped, "<nil>") {
				t.Errorf("the process ended with %v and said %q", first.exit, first.stopped)
			}
			if took > tc.longest {
				t.Errorf("it took %v to end, with a DrainTimeout of %v", took, tc.drain)
			}
			begun := l.totalStarts()
			for _, id := range ids {
				for _, s := range l.startsOf(id) {
					if late := s.at.Sub(first.drainedAt); late > 300*time.Millisecond {
						t.Errorf("task %s was started %v after the drain had begun", id, late)
					}
				}
			}
			done := l.outcomeCount("succeeded")
			if wantDone := begun; !tc.cut && done != wantDone {
				t.Errorf("%d tasks were started and %d succeeded", begun, done)
			} else if tc.cut && done != 0 {
				t.Errorf("%d tasks succeeded although they were cut off", done)
			}
			requireUntouched(t, client, queue, tasks-done)
			if err := store.CheckInvariants(t.Context(), queue); err != nil {
				t.Error(err)
			}

			s.Work, s.Concurrency = time.Millisecond, 200
			spawn(t, l, s)
			requireEmpty(t, 20*time.Second, raw, store, queue)
			if missing := l.awaitStarts(ids); len(missing) > 0 {
				t.Errorf("%d tasks were never started", len(missing))
			}
			for _, id := range ids {
				for _, s := range l.startsOf(id) {
					if s.attempt != 1 {
						t.Errorf("task %s was started as attempt %d", id, s.attempt)
					}
				}
			}
			if n := len(l.duplicates()); !tc.cut && n > 0 {
				t.Errorf("%d tasks ran twice", n)
			}
			t.Logf("%d running at SIGTERM; gone %d ms later (drain said %s); %d had succeeded by then; %s",
				begun, took.Milliseconds(), first.stopped, done, l.summary())
		})
	}
}

// requireUntouched checks that n tasks wait, none of them with an attempt, and nothing else is there.
func requireUntouched(t *testing.T, client *dispatch.Client, queue string, n int) {
	t.Helper()
	found := 0
	for info, err := range client.Tasks(t.Context(), queue, dispatch.Filter{}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case info.State != dispatch.TaskWaiting || info.Progress.Attempts != 0:
			t.Errorf("task %s is %s after %d attempts", info.ID, info.State, info.Progress.Attempts)
		}
		found++
	}
	if found != n {
		t.Errorf("%d tasks wait, want %d", found, n)
	}
}
