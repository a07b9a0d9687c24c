package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// A server without memory takes no task and gives all of them out: what waits is leased, retried and finished, by
// processes that were there before and by one that starts meanwhile. Nothing is leased when the memory ends, so the
// first thing that must work is a claim.
func TestFullServerDrains(t *testing.T) {
	t.Parallel()
	const perQueue = 300
	const delay = 5 * time.Second // all are stored, and the memory ends, before it is over
	server := redistest.Start(t)
	store, client := openStore(t, server.URL())
	raw := openRedis(t, server.Addr())
	l := newLedger()
	s := settings{URL: server.URL(), Behaviour: "flaky", Concurrency: 16}
	spawn(t, l, s)
	var ids []string
	for _, q := range rigQueues {
		if _, err := client.EnsureQueue(t.Context(), dispatch.Queue{
			Name: q, Retry: dispatch.RetryConfig{MinBackoff: 100 * time.Millisecond},
		}); err != nil {
			t.Fatal(err)
		}
		for _, payload := range []string{"", "fail at first"} {
			task := workTask(q)
			task.Delay, task.Payload = delay, []byte(payload)
			ids = append(ids, enqueueMany(t, client, perQueue/2, task)...)
		}
	}
	if _, err := server.Command("CONFIG", "SET", "maxmemory", "1"); err != nil {
		t.Fatal(err)
	}
	if n := l.totalStarts(); n > 0 {
		t.Fatalf("%d tasks started before the memory ended", n)
	}
	if _, err := client.Enqueue(t.Context(), workTask("mail")); !errors.Is(err, dispatch.ErrStoreFull) {
		t.Errorf("Enqueue to a full server: %v, want ErrStoreFull", err)
	}
	if _, err := client.Enqueue(t.Context(), workTask("new")); !errors.Is(err, dispatch.ErrStoreFull) {
		t.Errorf("Enqueue to a new queue of a full server: %v, want ErrStoreFull", err)
	}
	spawn(t, l, s)
	begun := time.Now()
	requireEmpty(t, 20*time.Second, raw, store, rigQueues...)
	drained := time.Since(begun)
	if missing := l.awaitStarts(ids); len(missing) > 0 {
		t.Errorf("%d tasks were never started", len(missing))
	}
	if got, want := l.totalStarts(), len(ids)*3/2; got != want {
		t.Errorf("%d starts, want %d", got, want)
	}
	if n := l.outcomeCount("discarded") + l.outcomeCount("released"); n > 0 {
		t.Errorf("%d outcomes were discarded or released", n)
	}

	if _, err := server.Command("CONFIG", "SET", "maxmemory", "0"); err != nil {
		t.Fatal(err)
	}
	id, err := client.Enqueue(t.Context(), workTask("new"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "tasks flow when there is memory again", func() bool { return len(l.startsOf(string(id))) == 1 })
	requireEmpty(t, 5*time.Second, raw, store, "new")
	t.Logf("%d tasks, half of them retried, drained in %.1f s of which up to %v were their delay; %s",
		len(ids), drained.Seconds(), delay, l.summary())
}
