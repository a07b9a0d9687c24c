package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// A worker process is killed amid 20,000 tasks. Another one finishes them all; what runs twice is what the dead one held.
func TestKilledWorkerLosesNothing(t *testing.T) {
	t.Parallel()
	const tasks, concurrency, queue = 20_000, 64, "mail"
	server := redistest.Start(t)
	store, client := openStore(t, server.URL())
	raw := openRedis(t, server.Addr())
	l := newLedger()
	s := settings{
		URL: server.URL(), Behaviour: "sleep", Work: 5 * time.Millisecond, Concurrency: concurrency, Queues: []string{queue},
		LeaseGrace: time.Second, Sweep: time.Second,
	}
	victim, survivor := spawn(t, l, s), spawn(t, l, s)

	task := workTask(queue)
	task.Timeout = 2 * time.Second
	begun := time.Now()
	var ids []string
	for range 10 {
		ids = append(ids, enqueueMany(t, client, tasks/10, task)...)
	}
	eventually(t, 60*time.Second, "half of the tasks have started", func() bool { return l.distinct() >= tasks/2 })
	victim.kill()
	held := heldBy(t, raw, queue, victim.workerID())
	at := l.distinct()

	eventually(t, 60*time.Second, "all tasks have started", func() bool { return l.distinct() == tasks })
	requireEmpty(t, 30*time.Second, raw, store, queue)
	if missing := l.awaitStarts(ids); len(missing) > 0 {
		t.Errorf("%d tasks were never started, such as %s", len(missing), missing[0])
	}
	duplicates, again := l.duplicates(), 0
	for _, id := range duplicates {
		starts := l.startsOf(id)
		again += len(starts) - 1
		if starts[0].by != victim || len(starts) != 2 || starts[1].by != survivor || starts[1].attempt != 2 {
			t.Errorf("task %s started %d times, first by the victim: %v, attempt %d last",
				id, len(starts), starts[0].by == victim, starts[len(starts)-1].attempt)
		}
	}
	if again > held || held > 2*concurrency {
		t.Errorf("%d starts too many; the dead process held %d leases and may hold %d", again, held, 2*concurrency)
	}
	t.Logf("%d tasks; killed at %d; it held %d leases; %d duplicates (%.3f %%); all over %.1f s after the first enqueue; %s",
		tasks, at, held, again, 100*float64(again)/tasks, time.Since(begun).Seconds(), l.summary())
}

// A worker process that hung past its leases comes back and reports. Every report is refused and changes nothing,
// whether another worker runs the task by then or has finished it.
func TestHungWorkerIsRefused(t *testing.T) {
	t.Parallel()
	const queue = "mail"
	server := redistest.Start(t)
	store, client := openStore(t, server.URL())
	raw := openRedis(t, server.Addr())
	if _, err := client.EnsureQueue(t.Context(), dispatch.Queue{
		Name: queue, Retry: dispatch.RetryConfig{MinBackoff: -1},
	}); err != nil {
		t.Fatal(err)
	}
	l := newLedger()
	s := settings{
		URL: server.URL(), Behaviour: "late", Concurrency: 8, Queues: []string{queue}, LeaseGrace: time.Second, Sweep: 500 * time.Millisecond,
		Retention: time.Hour,
	}
	hung := spawn(t, l, s)

	var ids []string
	reports := map[string]string{}
	for _, then := range []string{"finish", "hold"} {
		for _, report := range []string{"succeed", "extend", "release", "fail"} {
			task := workTask(queue)
			task.Timeout, task.Payload, task.Metadata = 2*time.Second, []byte(report), map[string]string{"then": then}
			id := enqueueMany(t, client, 1, task)[0]
			ids = append(ids, id)
			reports[id] = report
		}
	}
	eventually(t, 10*time.Second, "eight tasks run", func() bool { return l.totalStarts() == 8 })
	hung.signal(syscall.SIGSTOP)
	stoppedAt := time.Now()

	s.Behaviour, s.Concurrency = "hold", 32
	other := spawn(t, l, s)
	eventually(t, 20*time.Second, "the other worker has finished four tasks and holds four", func() bool {
		n, err := store.Counts(t.Context(), queue)
		held := 0
		for _, id := range ids {
			if l.saidOf(id) == "held" {
				held++
			}
		}
		return err == nil && n.Succeeded == 4 && n.Running == 4 && held == 4
	})
	took := time.Since(stoppedAt)
	before := dump(t, raw, queue)

	hung.command("go")
	hung.signal(syscall.SIGCONT)
	eventually(t, 20*time.Second, "the woken worker has tried all its reports", func() bool {
		n := 0
		for _, id := range ids {
			for _, o := range l.outcomesOf(id) {
				if o.by == hung {
					n++
				}
			}
		}
		return n == len(ids)
	})
	if after := dump(t, raw, queue); after != before {
		t.Errorf("late reports have changed the queue. Before:\n%s\nafter:\n%s", before, after)
	}
	for _, id := range ids {
		for _, o := range l.outcomesOf(id) {
			if o.by == hung && o.word != "discarded" {
				t.Errorf("late report %q of task %s ended as %s, want discarded", reports[id], id, o.word)
			}
		}
		if said := l.saidOf(id); reports[id] == "extend" && said != "held; extend: "+dispatch.ErrLeaseLost.Error() &&
			said != "extend: "+dispatch.ErrLeaseLost.Error() {
			t.Errorf("late extension of task %s: %q, want %q", id, said, dispatch.ErrLeaseLost)
		}
	}

	other.command("go")
	eventually(t, 20*time.Second, "the other worker has finished everything", func() bool {
		n, err := store.Counts(t.Context(), queue)
		return err == nil && n.Succeeded == 8 && n.Running+n.Ready+n.Scheduled+n.Dead == 0
	})
	for _, id := range ids {
		info, err := client.Task(t.Context(), queue, dispatch.TaskID(id))
		if err != nil {
			t.Fatal(err)
		}
		h := info.Progress.History
		if len(h) != 2 || h[0].ErrorKind != dispatch.KindLeaseLost || string(h[0].Worker) != hung.workerID() ||
			h[1].ErrorKind != "" || string(h[1].Worker) != other.workerID() || h[1].Token <= h[0].Token {
			t.Errorf("history of task %s is %+v", id, h)
		}
	}
	if err := store.CheckInvariants(t.Context(), queue); err != nil {
		t.Error(err)
	}
	t.Logf("taken over %.1f s after the stop (lease 3 s, sweep 0.5 s); %s", took.Seconds(), l.summary())
}
