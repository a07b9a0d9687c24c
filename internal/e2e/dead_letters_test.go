package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/internal/redistest"
	"github.com/dispatchkit/dispatch/redisstore"
)

// A quarter of the dead tasks each. The last one has a URL, which nobody calls: it is deleted.
var deadKinds = []dispatch.ErrorKind{dispatch.KindTimeout, dispatch.KindPanic, dispatch.KindHandler, dispatch.KindNon2xx}

const (
	letters = "letters" // the queue with the dead tasks
	quietly = "quiet"   // a queue with a task every few milliseconds
)

// Dead tasks by the thousand are listed, filtered, replayed, deleted and purged while another queue of the same
// dispatcher goes on: every count is exact, nothing is lost or twice, and every task of the other queue is run.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	n := 5_000
	if long {
		n = 200_000
	}
	server := redistest.Start(t)
	store, _ := openStore(t, server.URL())
	patient := openPatient(t, server.Addr())
	stats := &scriptStats{raw: openRedis(t, server.Addr())}
	d, err := dispatch.New(store, dispatch.Options{Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	ran := &runCounts{times: map[dispatch.TaskID]int{}}
	d.Handle("letter", dispatch.HandlerFunc(ran.handle))
	quiet := newQuietFlow(t, d)
	before, after := fillDead(t, store, n)
	if err := d.PauseQueue(t.Context(), letters); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Stop() })
	quiet.start()

	ctx, none := t.Context(), dispatch.ReplayOptions{}
	step := func(what string, want int, run func() (int, error)) {
		t.Helper()
		stats.reset(t)
		quiet.mark()
		begun := time.Now()
		got, err := run()
		took := time.Since(begun)
		if err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", what, got, err, want)
		}
		t.Logf("%-32s %7d in %6.0f ms; quiet: %s", what, got, inMillis(took), quiet.since())
		stats.log(t)
	}
	list := func(f dispatch.Filter) func() (int, error) {
		return func() (int, error) { return listed(ctx, d, f) }
	}
	counts := func(want dispatch.Counts) {
		t.Helper()
		got, err := d.Counts(ctx, letters)
		got.TotalSucceeded, got.TotalDead, got.TotalRetried = 0, 0, 0
		if err != nil || got != want {
			t.Errorf("counts are %+v, %v, want %+v", got, err, want)
		}
	}
	check := func() {
		t.Helper()
		if err := patient.CheckInvariants(ctx, letters); err != nil { // nothing else works on the queue
			t.Error(err)
		}
	}
	all, part := int64(n), int64(n/4)

	step("list", n, list(dispatch.Filter{}))
	step("list by error", n/4, list(dispatch.Filter{ErrorKind: dispatch.KindTimeout}))
	step("list by host", n/4, list(dispatch.Filter{Host: "hooks.example.com"}))
	step("list by time", n/2, list(dispatch.Filter{Since: before, Until: after}))
	step("replay", n/4, func() (int, error) {
		return d.ReplayDead(ctx, letters, dispatch.Filter{ErrorKind: dispatch.KindTimeout}, none)
	})
	counts(dispatch.Counts{Ready: part, Dead: all - part})
	step("replay under new IDs", n/4, func() (int, error) {
		return d.ReplayDead(ctx, letters, dispatch.Filter{ErrorKind: dispatch.KindPanic}, dispatch.ReplayOptions{NewIDs: true})
	})
	counts(dispatch.Counts{Ready: 2 * part, Dead: all - 2*part})
	step("delete by host", n/4, func() (int, error) {
		return d.DeleteDead(ctx, letters, dispatch.Filter{Host: "hooks.example.com"})
	})
	counts(dispatch.Counts{Ready: 2 * part, Dead: part})
	check()
	step("purge what waits", 2*n/4, func() (int, error) {
		was, err := d.Counts(ctx, letters)
		if err != nil {
			return 0, err
		}
		return int(was.Ready), d.PurgeQueue(ctx, letters)
	})
	counts(dispatch.Counts{Dead: part})
	step("replay what died before the purge", n/4, func() (int, error) {
		return d.ReplayDead(ctx, letters, dispatch.Filter{}, none)
	})
	counts(dispatch.Counts{Ready: part})
	check()

	if err := d.ResumeQueue(ctx, letters); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "what was replayed has run", func() bool { return ran.count() >= n/4 })
	quiet.end()
	eventually(t, 10*time.Second, "every quiet task has run", func() bool { missing, _ := quiet.missing(); return missing == 0 })
	if err := d.Stop(); err != nil {
		t.Error(err)
	}
	counts(dispatch.Counts{})
	check()
	if err := patient.CheckInvariants(t.Context(), quietly); err != nil {
		t.Error(err)
	}
	if most := ran.most(); most != 1 || ran.count() != n/4 {
		t.Errorf("%d tasks have run, one of them %d times; want %d, each once", ran.count(), most, n/4)
	}
	if missing, sent := quiet.missing(); missing > 0 {
		t.Errorf("%d of %d quiet tasks have not run exactly once", missing, sent)
	}
}

// openPatient makes a store for checks, which read everything at once: that takes longer than a store usually waits.
func openPatient(t testing.TB, addr string) *redisstore.Store {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: time.Minute, ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { client.Close() })
	store, err := redisstore.New(client, redisstore.Options{Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// fillDead leaves n dead tasks of about 1 KiB. The last attempt of the odd ones began in [since, until), of the even
// ones before.
func fillDead(t testing.TB, store *redisstore.Store, n int) (since, until time.Time) {
	t.Helper()
	const batch = 100
	const worker = cluster.WorkerID("w-filler")
	now := time.Now().Truncate(time.Millisecond)
	for i := 0; i < n; i += batch {
		tasks := make([]dispatch.Submission, batch)
		for j := range tasks {
			task := dispatch.Task{
				ID: dispatch.TaskID(fmt.Sprintf("dead-%015d", i+j)), Kind: "letter", Payload: make([]byte, 900), Timeout: time.Minute,
			}
			if (i+j)%4 == 3 {
				task.Kind, task.URL, task.Method = "", "https://Hooks.example.com:8443/x", "POST"
			}
			tasks[j].Task = task
		}
		seq := int64(i/batch + 1)
		_, err := store.Enqueue(t.Context(), letters, tasks, dispatch.EnqueueOptions{})
		if err == nil {
			err = failAll(t.Context(), store, dispatch.ClaimRequest{
				Queue: letters, Worker: worker, Seq: seq, Budget: batch, Grace: time.Second,
			}, now)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return now, now.Add(time.Second)
}

// failAll makes what a claim leases dead.
func failAll(ctx context.Context, store *redisstore.Store, r dispatch.ClaimRequest, now time.Time) error {
	reply, err := store.Claim(ctx, r)
	if err != nil {
		return err
	}
	if len(reply.Leased) != r.Budget {
		return fmt.Errorf("%d tasks leased, want %d", len(reply.Leased), r.Budget)
	}
	items := make([]dispatch.Settlement, len(reply.Leased))
	for i, l := range reply.Leased {
		number, err := strconv.Atoi(strings.TrimPrefix(string(l.Task.ID), "dead-"))
		if err != nil {
			return err
		}
		began := now.Add(-time.Duration(1-number%2) * time.Hour)
		items[i] = dispatch.Settlement{ID: l.Task.ID, Lease: l.Lease, Outcome: dispatch.Dead, After: 24 * time.Hour,
			Progress: &dispatch.Progress{Attempts: 1, FirstAttempt: began, LastAttempt: began, History: []dispatch.AttemptRecord{{
				Number: 1, StartedAt: began, Worker: r.Worker, ErrorKind: deadKinds[number%4], Error: "it does not work",
			}}}}
	}
	_, err = store.Settle(ctx, dispatch.SettleRequest{Queue: r.Queue, Worker: r.Worker, Seq: r.Seq, Items: items})
	return err
}

// listed counts the dead tasks that match, each once.
func listed(ctx context.Context, d *dispatch.Dispatcher, f dispatch.Filter) (int, error) {
	f.States = []dispatch.TaskState{dispatch.TaskDead}
	seen := map[dispatch.TaskID]bool{}
	for task, err := range d.Tasks(ctx, letters, f) {
		if err != nil {
			return len(seen), err
		}
		if task.State != dispatch.TaskDead {
			return len(seen), fmt.Errorf("task %s is %s", task.ID, task.State)
		}
		seen[task.ID] = true
	}
	return len(seen), nil
}

// runCounts counts how often tasks have run.
type runCounts struct {
	mu    sync.Mutex
	times map[dispatch.TaskID]int
}

func (r *runCounts) handle(_ context.Context, task *dispatch.Task) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times[task.ID]++
	return nil
}

func (r *runCounts) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.times)
}

// most is how often the task has run that has run most often.
func (r *runCounts) most() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := 0
	for _, n := range r.times {
		most = max(most, n)
	}
	return most
}
