package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// Tasks that run in another process are cancelled: their handlers are told, and they never run again. How soon is printed.
func TestCancelledInAnotherProcess(t *testing.T) {
	t.Parallel()
	const tasks, queue = 50, "mail"
	server := redistest.Start(t)
	store, client := openStore(t, server.URL())
	l := newLedger()
	s := settings{URL: server.URL(), Behaviour: "sleep", Work: time.Hour, Concurrency: tasks + 10, Ends: true, Queues: []string{queue}}
	spawn(t, l, s)
	ids := enqueueMany(t, client, tasks, workTask(queue))
	eventually(t, 20*time.Second, "all run", func() bool { return l.totalStarts() == tasks })

	asked := make(map[string]time.Time)
	for _, id := range ids {
		asked[id] = time.Now()
		if err := client.CancelTask(t.Context(), queue, dispatch.TaskID(id)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 20*time.Second, "all are told", func() bool { return l.outcomeCount("cancelled") == tasks })
	var took []time.Duration
	for _, id := range ids {
		took = append(took, l.endOf(l.startsOf(id)[0]).Sub(asked[id]))
		info, err := client.Task(t.Context(), queue, dispatch.TaskID(id))
		if err != nil || info.State != dispatch.TaskCancelled {
			t.Errorf("task %s is %+v, %v", id, info, err)
		}
	}
	spawn(t, l, s) // another process finds nothing to do
	last := enqueueMany(t, client, 1, workTask(queue))
	eventually(t, 20*time.Second, "the last one runs", func() bool { return len(l.startsOf(last[0])) == 1 })
	if n := l.totalStarts(); n != tasks+1 {
		t.Errorf("%d starts of %d tasks", n, tasks+1)
	}
	if err := store.CheckInvariants(t.Context(), queue); err != nil {
		t.Error(err)
	}
	slices.Sort(took)
	t.Logf("handlers ended %v (median) and %v (longest) after CancelTask was called; %s", took[tasks/2], took[tasks-1], l.summary())
}
