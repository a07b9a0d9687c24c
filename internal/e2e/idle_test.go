package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch/internal/redistest"
)

// An idle process costs Redis a command a second at most, and is there at once when something comes. It does not run in
// parallel with other tests, which would be measured too.
func TestIdleCostsNothing(t *testing.T) {
	window, runs := 30*time.Second, 21
	if long {
		window = time.Minute
	}
	server := redistest.Start(t)
	store, client := openStore(t, server.URL())
	raw := openRedis(t, server.Addr())
	l := newLedger()
	spawn(t, l, settings{URL: server.URL(), Behaviour: "sleep", TimeURL: server.URL()})

	queues := make([]string, 20)
	for i := range queues {
		queues[i] = fmt.Sprintf("queue-%d", i)
		enqueueMany(t, client, 5, workTask(queues[i]))
	}
	requireEmpty(t, 10*time.Second, raw, store, queues...)
	eventually(t, 20*time.Second, "the notes of all queues are put right", func() bool {
		n, err := raw.ZCount(t.Context(), "dispatch:{~}:active", "-inf", fmt.Sprint(time.Now().Add(time.Minute).UnixMilli())).Result()
		return err == nil && n == 0
	})
	lasts(time.Second) // after the notes are put right, each queue is looked at once more

	commands := monitor(t, server.Addr(), window)
	total := 0
	for _, n := range commands {
		total += n
	}
	rate := float64(total) / window.Seconds()
	t.Logf("idle for %v with %d queues: %d commands, %.2f a second: %v", window, len(queues), total, rate, commands)
	// A window may begin and end with a command.
	if float64(total) > window.Seconds()+1 {
		t.Errorf("%d commands in %v, more than one a second", total, window)
	}

	var pickups, latenesses, clocks []time.Duration
	for i := range runs {
		asked := time.Now()
		id := enqueueMany(t, client, 1, workTask(queues[i%len(queues)]))[0]
		eventually(t, 5*time.Second, "the task has started", func() bool { return len(l.startsOf(id)) == 1 })
		pickups = append(pickups, l.startsOf(id)[0].at.Sub(asked))
	}

	// Delayed tasks, each on a queue that rests.
	ids := make([]string, runs)
	const delay = 1500 * time.Millisecond
	asked := make([]time.Time, runs)
	for i := range runs {
		task := workTask(queues[i%len(queues)])
		task.Delay = delay
		var err error
		if asked[i], err = raw.Time(t.Context()).Result(); err != nil {
			t.Fatal(err)
		}
		ids[i] = enqueueMany(t, client, 1, task)[0]
		lasts(20 * time.Millisecond)
	}
	eventually(t, 10*time.Second, "all delayed tasks have started", func() bool { return len(l.missing(ids)) == 0 })
	for i, id := range ids {
		s := l.startsOf(id)[0]
		late := s.server.Sub(s.due)
		if late < 0 {
			t.Errorf("task %s started %v before it was due, by the time of Redis", id, -late)
		}
		// The store counts in whole milliseconds.
		if waited := s.server.Sub(asked[i]); waited < delay-time.Millisecond {
			t.Errorf("task %s with a delay of %v started after %v", id, delay, waited)
		} else {
			clocks = append(clocks, waited-delay)
		}
		latenesses = append(latenesses, late)
	}

	// And some on a queue that is claimed from all the time.
	f := startFlow(t, client, "busy")
	var busy []string
	for i := range 50 {
		task := workTask("busy")
		task.Delay = time.Duration(200+10*i) * time.Millisecond
		busy = append(busy, enqueueMany(t, client, 1, task)...)
	}
	eventually(t, 10*time.Second, "all delayed tasks of the busy queue have started", func() bool { return len(l.missing(busy)) == 0 })
	f.end()
	var crowded []time.Duration
	for _, id := range busy {
		s := l.startsOf(id)[0]
		late := s.server.Sub(s.due)
		if late < 0 {
			t.Errorf("task %s of the busy queue started %v before it was due, by the time of Redis", id, -late)
		}
		crowded = append(crowded, late)
	}
	requireEmpty(t, 10*time.Second, raw, store, append(queues, "busy")...)
	t.Logf("lateness of a delayed task of a busy queue: median %.2f ms, least %.2f, most %.2f",
		inMillis(median(crowded)), inMillis(crowded[0]), inMillis(slices.Max(crowded)))
	t.Logf("pick-up of a task from another process: median %.2f ms, slowest %.2f ms of %d",
		inMillis(median(pickups)), inMillis(slices.Max(pickups)), runs)
	t.Logf("lateness of a task with a delay of %v: median %.2f ms, least %.2f, most %.2f; from before the call: median %.2f ms, least %.2f",
		delay, inMillis(median(latenesses)), inMillis(latenesses[0]), inMillis(slices.Max(latenesses)),
		inMillis(median(clocks)), inMillis(clocks[0]))
}

func inMillis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
