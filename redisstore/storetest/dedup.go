package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
)

// The matrix of deduplication: for everything that may become of a task, when its key can be enqueued again. Keys are
// content-based, as clients make them; names that are chosen go the same way.
var dedupCases = []testcase{
	{"success", dedupSuccess},
	{"final failure", dedupDead},
	{"cancel", dedupCancel},
	{"delete", dedupDelete},
	{"purge", dedupPurge},
	{"conflict", dedupConflict},
	{"crash", dedupCrash},
	{"window shorter than the wait", dedupWait},
	{"sub-second window", dedupSubSecond},
	{"retention", dedupRetention},
	{"100 concurrent enqueues", dedupConcurrent},
	{"without a window of its own", dedupDefault},
	{"no key outlives its cause", dedupLeavesNothing},
}

const dedupWindow = time.Minute // of keys that say nothing else

// deduping is a client of the store, and the key that a case is about.
type deduping struct {
	*env
	client *dispatch.Client
	window time.Duration
}

func (e *env) dedup(window time.Duration) *deduping {
	e.Helper()
	c, err := dispatch.NewClient(e.store, dispatch.ClientOptions{DedupWindow: dedupWindow, RetentionFailed: -1})
	e.ok(err)
	return &deduping{env: e, client: c, window: window}
}

// submit enqueues the key, and says under which ID it is or was stored and whether it is new.
func (d *deduping) submit(delay time.Duration) (id dispatch.TaskID, created bool) {
	d.Helper()
	id, err := d.client.Enqueue(d.ctx, dispatch.Task{Queue: queue, Kind: "mail", Payload: []byte("body"), Delay: delay,
		Unique: &dispatch.Unique{Window: d.window}})
	if err != nil && !errors.Is(err, dispatch.ErrDuplicateTask) {
		d.Fatal(err)
	}
	return id, err == nil
}

// first enqueues the key, which is new.
func (d *deduping) first() dispatch.TaskID {
	d.Helper()
	id, created := d.submit(0)
	if !created {
		d.Fatal("the key is not new")
	}
	d.same(id, false)
	return id
}

// same demands that the key is, or is not, taken by a task of that ID. One that is not is taken afterwards.
func (d *deduping) same(id dispatch.TaskID, free bool) {
	d.Helper()
	got, created := d.submit(time.Hour)
	if got != id || created != free {
		d.Errorf("the key makes %s, created %v; want %s, %v", got, created, id, free)
	}
}

// freeAfter demands that the key is taken until a time from now, and no longer.
func (d *deduping) freeAfter(id dispatch.TaskID, after time.Duration) {
	d.Helper()
	if after > 0 {
		d.advance(after - time.Millisecond)
		d.same(id, false)
		d.advance(2 * time.Millisecond)
	}
	d.same(id, true)
}

// leased claims the task of the key.
func (d *deduping) leased() dispatch.Leased {
	d.Helper()
	return d.claim(alice, 1).Leased[0]
}

// settled ends the task of the key as a worker would.
func (d *deduping) settled(outcome dispatch.Outcome, retention time.Duration) {
	d.Helper()
	l := d.leased()
	s := ended(l, outcome, retention)
	if s.Tombstone = l.Window; s.Tombstone == 0 {
		s.Tombstone = dedupWindow
	}
	d.applied(alice, s)
}

func dedupSuccess(e *env) {
	d := e.dedup(time.Hour)
	id := d.first()
	d.settled(dispatch.Succeeded, 0)
	d.freeAfter(id, time.Hour)
}

func dedupDead(e *env) {
	d := e.dedup(time.Hour)
	id := d.first()
	d.settled(dispatch.Retry, 0)
	d.same(id, false)
	d.settled(dispatch.Dead, 0)
	d.freeAfter(id, time.Hour)
}

func dedupCancel(e *env) {
	d := e.dedup(time.Hour)
	id := d.first()
	d.leased()
	d.ok(d.client.CancelTask(d.ctx, queue, id))
	d.freeAfter(id, time.Hour)
}

func dedupDelete(e *env) {
	d := e.dedup(time.Hour)
	id := d.first()
	d.ok(d.client.DeleteTask(d.ctx, queue, id))
	d.freeAfter(id, time.Hour)
	d.ok(d.client.DeleteTask(d.ctx, queue, id)) // of the one that waits now
	d.freeAfter(id, time.Hour)
}

func dedupPurge(e *env) {
	d := e.dedup(time.Hour)
	id := d.first()
	d.ok(d.client.PurgeQueue(d.ctx, queue))
	d.freeAfter(id, time.Hour)
}

// Other content is another key; the same content with other particulars is the same, and changes nothing.
func dedupConflict(e *env) {
	d := e.dedup(time.Hour)
	id := d.first()
	tasks := []dispatch.Task{
		{Queue: queue, Kind: "mail", Payload: []byte("body"), Metadata: map[string]string{"a": "b"}, Timeout: time.Hour},
		{Queue: queue, Kind: "mail", Payload: []byte("other")},
		{Queue: queue, Kind: "letter", Payload: []byte("body")},
		{Queue: "other", Kind: "mail", Payload: []byte("body")},
		{Queue: queue, URL: "http://mail.example/", Payload: []byte("body")},
		{Queue: queue, URL: "http://mail.example/", Payload: []byte("body"), Method: "PUT"},
	}
	for i := range tasks {
		tasks[i].Unique = &dispatch.Unique{Window: time.Hour}
	}
	keyed := func(kind, key string) dispatch.Task {
		return dispatch.Task{Queue: queue, Kind: kind, Unique: &dispatch.Unique{Key: key}}
	}
	tasks = append(tasks, keyed("mail", "k"), keyed("letter", "k"), keyed("mail", "l"))
	results, err := d.client.EnqueueMany(d.ctx, tasks)
	d.ok(err)
	for i, duplicate := range []bool{true, false, false, false, false, false, false, true, false} {
		if got := errors.Is(results[i].Err, dispatch.ErrDuplicateTask); got != duplicate || !got && results[i].Err != nil {
			d.Errorf("task %d: %v", i, results[i].Err)
		}
	}
	equal(e, "ID", results[0].ID, id)
	equal(e, "ID of a key", results[7].ID, results[6].ID)
	stored := e.info(string(id), dispatch.TaskWaiting)
	equal(e, "timeout", stored.Timeout, 10*time.Minute)
	equal(e, "metadata", len(stored.Metadata), 0)
}

// The worker dies, and its lease is swept: the task is live all the time.
func dedupCrash(e *env) {
	d := e.dedup(time.Hour)
	id := d.first()
	l := d.leased()
	d.advance(l.Task.Timeout + grace)
	d.same(id, false)
	over, _ := d.expired(1)
	d.applied(bob, ended(over[0], dispatch.Retry, time.Hour))
	d.same(id, false)
	d.advance(time.Hour)
	d.settled(dispatch.Succeeded, 0)
	d.freeAfter(id, time.Hour)
}

// However long a task waits, its key is taken.
func dedupWait(e *env) {
	d := e.dedup(time.Second)
	id, _ := d.submit(48 * time.Hour)
	d.advance(47 * time.Hour)
	d.same(id, false)
	d.advance(time.Hour)
	d.settled(dispatch.Succeeded, 0)
	d.freeAfter(id, time.Second)
}

func dedupSubSecond(e *env) {
	d := e.dedup(7 * time.Millisecond)
	id := d.first()
	d.settled(dispatch.Succeeded, 0)
	d.freeAfter(id, 7*time.Millisecond)
}

// A task that is retained keeps its key, whatever the window.
func dedupRetention(e *env) {
	d := e.dedup(time.Second)
	id := d.first()
	d.settled(dispatch.Succeeded, time.Hour)
	d.advance(time.Hour - time.Millisecond)
	d.same(id, false)
	d.advance(time.Millisecond) // clean-up may come or not
	d.same(id, true)
	e.info(string(id), dispatch.TaskWaiting)
	e.at("due", e.info(string(id), dispatch.TaskWaiting).Due, e.now().Add(time.Hour))
}

func dedupConcurrent(e *env) {
	d := e.dedup(time.Hour)
	var wait sync.WaitGroup
	var mu sync.Mutex // guards what follows
	created, ids := 0, make(map[dispatch.TaskID]bool)
	for range 100 {
		wait.Go(func() {
			id, fresh := d.submit(0)
			mu.Lock()
			defer mu.Unlock()
			ids[id] = true
			if fresh {
				created++
			}
		})
	}
	wait.Wait()
	equal(e, "created", created, 1)
	equal(e, "IDs", len(ids), 1)
	equal(e, "waiting", e.counts().Ready, 1)
}

func dedupDefault(e *env) {
	d := e.dedup(0)
	id := d.first()
	d.settled(dispatch.Succeeded, 0)
	d.freeAfter(id, dedupWindow)
	d = e.dedup(-1)
	d.ok(d.client.DeleteTask(d.ctx, queue, id))
	d.freeAfter(id, dedupWindow) // the task that was deleted said nothing of its window
	d.ok(d.client.DeleteTask(d.ctx, queue, id))
	d.freeAfter(id, 0)
}

func dedupLeavesNothing(e *env) {
	for i, window := range []time.Duration{-1, 50 * time.Millisecond, time.Hour} {
		d := e.dedup(window)
		d.first()
		d.settled(dispatch.Succeeded, 0)
		d.advance(max(window, 0) + time.Millisecond)
		more, err := d.store.Cleanup(d.ctx, queue, 100)
		d.ok(err)
		equal(e, fmt.Sprintf("more, %d", i), more, false)
		names, err := d.store.Expiring(d.ctx, 10)
		d.ok(err)
		equal(e, "expiring", len(names), 0)
		equal(e, "counts", e.counts(), dispatch.Counts{TotalSucceeded: int64(i + 1)})
	}
}
