package storetest

import (
	"bytes"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

var enqueueCases = []testcase{
	{"without a time a task is due at once", dueAtOnce},
	{"a delay counts from the store's time", delayed},
	{"an absolute time is kept", scheduled},
	{"a part of a millisecond is never cut off", neverEarly},
	{"a time that is past is now", pastIsNow},
	{"one refused does not hold up the others", batchWithRefused},
	{"moved says that the earliest due time came nearer", movedByEnqueue},
	{"an overdue queue has a wait below zero", overdueWait},
	{"a queue that does not exist is created and listed", queueIsCreated},
	{"strict refuses a queue that does not exist", strictRefuses},
	{"every field of an HTTP task comes back", httpTaskComesBack},
	{"every field of a task for a handler comes back", kindTaskComesBack},
	{"an override of nothing is still an override", emptyOverride},
	{"a task of one mebibyte comes back", longTaskComesBack},
	{"a repeated call stores a task once", repeatedEnqueue},
	{"many producers store every task", manyProducers},
}

func dueAtOnce(e *env) {
	now := e.now()
	r := e.enqueue(submit("a"))
	equal(e, "reply", r, dispatch.EnqueueReply{Duplicate: []bool{false}, Moved: true})
	info := e.info("a", dispatch.TaskWaiting)
	e.at("due", info.Due, now)
	e.at("created", info.CreatedAt, now)
	e.at("claimed as due", e.one(alice, "a").Due, now)
}

func delayed(e *env) {
	now := e.now()
	r := e.enqueue(submit("a", after(1500*time.Millisecond)))
	equal(e, "reply", r, dispatch.EnqueueReply{Duplicate: []bool{false}, Moved: true, Wait: 1500 * time.Millisecond})
	e.at("due", e.info("a", dispatch.TaskWaiting).Due, now.Add(1500*time.Millisecond))
	e.advance(1499 * time.Millisecond)
	reply := e.claim(alice, 10)
	equal(e, "leased early", leasedIDs(reply.Leased), nil)
	equal(e, "next", reply.Next, time.Millisecond)
	e.advance(time.Millisecond)
	e.at("due", e.one(alice, "a").Due, now.Add(1500*time.Millisecond))
}

func scheduled(e *env) {
	at := e.now().Add(time.Hour)
	r := e.enqueue(submit("a", schedule(at)))
	equal(e, "wait", r.Wait, time.Hour)
	e.at("due", e.info("a", dispatch.TaskWaiting).Due, at)
	e.advance(time.Hour - time.Millisecond)
	e.claimed(alice, 10)
	e.advance(time.Millisecond)
	e.one(alice, "a")
}

func schedule(at time.Time) func(*dispatch.Submission) {
	return func(s *dispatch.Submission) { s.ScheduleTime = at }
}

func neverEarly(e *env) {
	e.enqueue(
		submit("delay", after(1500*time.Microsecond)),
		submit("schedule", schedule(e.now().Add(time.Millisecond+time.Nanosecond))))
	e.advance(time.Millisecond)
	e.claimed(alice, 10)
	e.advance(time.Millisecond)
	equal(e, "leased", len(e.claim(alice, 10).Leased), 2)
}

func pastIsNow(e *env) {
	e.put("first")
	e.advance(time.Second)
	now := e.now()
	r := e.enqueue(
		submit("hour", schedule(now.Add(-time.Hour))),
		submit("epoch", schedule(time.Unix(0, 0))),
		submit("before", schedule(time.Unix(-1, 999_999_999))))
	equal(e, "moved", r.Moved, false)
	for _, id := range []string{"hour", "epoch", "before"} {
		e.at("due of "+id, e.info(id, dispatch.TaskWaiting).Due, now)
	}
	e.one(alice, "first") // it has waited longer
	equal(e, "leased", len(e.claim(alice, 10).Leased), 3)
}

func batchWithRefused(e *env) {
	e.enqueue(submit("taken", named(1)))
	r := e.enqueue(submit("a"), submit("taken", named(2)), submit("b", named(3)), submit("taken", named(4)), submit("c"))
	equal(e, "duplicate", r.Duplicate, []bool{false, true, false, true, false})
	for _, id := range []string{"a", "b", "c", "taken"} {
		e.info(id, dispatch.TaskWaiting)
	}
	equal(e, "ready", e.counts().Ready, 4)
}

func movedByEnqueue(e *env) {
	for _, step := range []struct {
		task  dispatch.Submission
		moved bool
		wait  time.Duration
	}{
		{submit("first", after(time.Minute), named(1)), true, time.Minute},
		{submit("later", after(time.Hour)), false, time.Minute},
		{submit("equal", after(time.Minute)), false, time.Minute},
		{submit("sooner", after(time.Second)), true, time.Second},
		{submit("first", named(2)), false, time.Second},
		{submit("now"), true, 0},
		{submit("too"), false, 0},
	} {
		r := e.enqueue(step.task)
		equal(e, string(step.task.ID)+": moved", r.Moved, step.moved)
		equal(e, string(step.task.ID)+": wait", r.Wait, step.wait)
	}
}

func overdueWait(e *env) {
	e.put("a")
	e.advance(3 * time.Second)
	r := e.enqueue(submit("b"))
	equal(e, "moved", r.Moved, false)
	equal(e, "wait", r.Wait, -3*time.Second)
}

func queueIsCreated(e *env) {
	now := e.now()
	e.put("a")
	q, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	e.at("created", q.CreatedAt, now)
	if q.Version < 1 {
		e.Errorf("version is %d", q.Version)
	}
	equal(e, "settings", plain(*q), dispatch.Queue{Name: queue})
	equal(e, "queues", e.queues(), []string{queue})
	created, err := e.store.CreateQueue(e.ctx, dispatch.Queue{Name: queue, Rate: 1})
	e.ok(err)
	equal(e, "created again", created, false)
}

// plain is a queue without what only the store writes.
func plain(q dispatch.Queue) dispatch.Queue {
	q.CreatedAt, q.Version = time.Time{}, 0
	return q
}

func strictRefuses(e *env) {
	strict := func() error {
		_, err := e.store.Enqueue(e.ctx, queue, []dispatch.Submission{submit("a"), submit("b", named(1))}, dispatch.EnqueueOptions{Strict: true})
		return err
	}
	e.fails("strict", strict(), dispatch.ErrQueueNotFound)
	e.gone("a")
	_, err := e.store.Queue(e.ctx, queue)
	e.fails("queue", err, dispatch.ErrQueueNotFound)
	e.create(dispatch.Queue{})
	e.ok(strict())
	e.info("a", dispatch.TaskWaiting)
}

// everyByte is a text that breaks whoever takes bytes for characters.
func everyByte() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func httpTaskComesBack(e *env) {
	want := task("http-task_1")
	want.Kind = ""
	want.URL, want.Method = "https://example.com/a%20b?c=d&e=%2F", http.MethodPut
	want.Header = http.Header{
		"Content-Type": {"application/json"}, "x-lower": {"kept"}, "X-oDD-cAsE": {"one", "two", ""},
		"X-Bytes": {"\xff\xfe\tü"}, "X-None": nil,
	}
	want.Payload = everyByte()
	want.Timeout = 1234 * time.Millisecond
	want.Retry = &dispatch.RetryConfig{
		MaxAttempts: -1, MaxRetryDuration: 90 * time.Minute, MinBackoff: 1500 * time.Microsecond, MaxBackoff: -1, MaxDoublings: 3,
	}
	want.Retention = 90*time.Minute + time.Millisecond
	want.Metadata = map[string]string{"tenant": "t 1", "": "empty key", "bytes": string(everyByte())}
	e.comesBack(want)
}

func kindTaskComesBack(e *env) {
	want := task("k")
	want.Kind, want.Payload = "send mail/ä", []byte(`{"to":"x"}`)
	want.Timeout = 24 * time.Hour
	want.Metadata = map[string]string{"a": "b"}
	want.Retention = -time.Millisecond
	e.comesBack(want)
}

func emptyOverride(e *env) {
	want := task("k")
	want.Retry = &dispatch.RetryConfig{}
	e.comesBack(want)
}

func longTaskComesBack(e *env) {
	want := task("k")
	want.Payload = bytes.Repeat(everyByte(), 1<<20/256-1)
	e.comesBack(want)
}

// comesBack stores a task and reads it everywhere that a store hands one out.
func (e *env) comesBack(want dispatch.Task) {
	e.Helper()
	id := string(want.ID)
	e.enqueue(dispatch.Submission{Task: want, Named: true, Nonce: 1<<64 - 1})
	equal(e, "task read", e.info(id, dispatch.TaskWaiting).Task, want)
	l := e.one(alice, id)
	equal(e, "task claimed", l.Task, want)
	equal(e, "named", l.Named, true)
	held, _, err := e.store.HeldLeases(e.ctx, queue, []cluster.WorkerID{alice}, 0)
	e.ok(err)
	if len(held) != 1 {
		e.Fatalf("%d leases held", len(held))
	}
	equal(e, "task held", held[0].Task, want)
	e.advance(want.Timeout + grace)
	over, _, err := e.store.ExpiredLeases(e.ctx, queue, 10)
	e.ok(err)
	if len(over) != 1 {
		e.Fatalf("%d leases expired", len(over))
	}
	equal(e, "task expired", over[0].Task, want)
	equal(e, "expired is named", over[0].Named, true)
	e.applied(alice, ended(l, dispatch.Dead, time.Hour))
	equal(e, "task retained", e.info(id, dispatch.TaskDead).Task, want)
	page, _, err := e.store.Tasks(e.ctx, queue, dispatch.TaskDead, "")
	e.ok(err)
	if len(page) != 1 {
		e.Fatalf("%d dead tasks listed", len(page))
	}
	equal(e, "task listed", page[0].Task, want)
}

func repeatedEnqueue(e *env) {
	batch := []dispatch.Submission{submit("a", after(time.Second)), submit("b", named(7)), submit("c")}
	for range 3 {
		r := e.enqueue(batch...)
		equal(e, "duplicate", r.Duplicate, []bool{false, false, false})
		equal(e, "moved", r.Moved, true) // the answer that said so may be lost
		e.advance(time.Millisecond)
	}
	equal(e, "waiting", e.counts().Ready+e.counts().Scheduled, 3)
	e.claimed(alice, 10, "b", "c")
	r := e.enqueue(batch...)
	equal(e, "duplicate", r.Duplicate, []bool{false, false, false})
	equal(e, "moved", r.Moved, true)
	e.claimed(bob, 10) // what runs does not come again
}

func manyProducers(e *env) {
	const producers, each = 8, 25
	var moved atomic.Int64
	var wait sync.WaitGroup
	for p := range producers {
		wait.Go(func() {
			for i := range each {
				id := string(rune('a'+p)) + "-" + string(rune('a'+i))
				r, err := e.store.Enqueue(e.ctx, queue, []dispatch.Submission{submit(id), submit("same", named(uint64(p*each+i)))}, dispatch.EnqueueOptions{})
				if err != nil {
					e.Error(err)
					return
				}
				if !r.Duplicate[1] {
					moved.Add(1)
				}
			}
		})
	}
	wait.Wait()
	equal(e, "calls that got the name", moved.Load(), 1)
	equal(e, "ready", e.counts().Ready, producers*each+1)
}
