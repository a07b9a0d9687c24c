package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// What cases use unless they say otherwise.
const (
	queue   = "mail"
	timeout = time.Minute
	grace   = 10 * time.Second
	lease   = timeout + grace

	alice = cluster.WorkerID("w-alice")
	bob   = cluster.WorkerID("w-bob")
)

// env is what a case works with: a store of its own, and the calls that every case makes. Calls that fail end the case.
type env struct {
	*testing.T
	ctx   context.Context
	store dispatch.Store
	h     Harness

	mu   sync.Mutex
	seqs map[string]int64 // last claim or settle number of each worker and queue
}

// caseLimit ends a case that a broken store lets run for ever.
const caseLimit = 2 * time.Minute

func newEnv(t *testing.T, h Harness) *env {
	ctx, cancel := context.WithTimeout(t.Context(), caseLimit)
	t.Cleanup(cancel)
	return &env{T: t, ctx: ctx, store: h.Open(t), h: h, seqs: make(map[string]int64)}
}

// check looks at all queues of the store.
func (e *env) check() {
	e.Helper()
	for _, name := range append(e.queues(), queue) {
		if err := e.h.Check(e.ctx, e.store, name); err != nil {
			e.Errorf("invariants: %v", err)
		}
	}
}

// ok ends the case if a call failed.
func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// fails demands one particular error.
func (e *env) fails(what string, err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

// equal compares a result with what it should be.
func equal[T any](e *env, what string, got, want T) {
	e.Helper()
	if !reflect.DeepEqual(got, want) {
		e.Errorf("%s:\n got %s\nwant %s", what, clipped(got), clipped(want))
	}
}

// clipped is a value as text, not longer than anybody reads.
func clipped(v any) string {
	const limit = 1500
	text := fmt.Sprintf("%+v", v)
	return strings.ToValidUTF8(text[:min(len(text), limit)], "?")
}

// at compares two instants.
func (e *env) at(what string, got, want time.Time) {
	e.Helper()
	if !got.Equal(want) {
		e.Errorf("%s: got %v, want %v (%v apart)", what, got, want, got.Sub(want))
	}
}

// never demands a wait that says "nothing known".
func (e *env) never(what string, wait time.Duration) {
	e.Helper()
	if wait >= 0 {
		e.Errorf("%s: got %v, want less than zero", what, wait)
	}
}

func (e *env) advance(d time.Duration) {
	e.Helper()
	e.h.Advance(e.T, e.store, d)
}

// now is the store's time, read from the stamp of a task made for that in a queue that is deleted again.
func (e *env) now() time.Time {
	e.Helper()
	const clock = "clock"
	_, err := e.store.Enqueue(e.ctx, clock, []dispatch.Submission{{Task: task("tick")}}, dispatch.EnqueueOptions{})
	e.ok(err)
	info, err := e.store.Task(e.ctx, clock, "tick")
	e.ok(err)
	e.ok(e.store.DeleteQueue(e.ctx, clock))
	return info.CreatedAt
}

// task is a task as the client would hand it over: valid and complete.
func task(id string) dispatch.Task {
	return dispatch.Task{ID: dispatch.TaskID(id), Queue: queue, Kind: "test", Timeout: timeout}
}

// submit is an unnamed task, changed by edits.
func submit(id string, edits ...func(*dispatch.Submission)) dispatch.Submission {
	s := dispatch.Submission{Task: task(id)}
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

// after delays a task.
func after(d time.Duration) func(*dispatch.Submission) {
	return func(s *dispatch.Submission) { s.Delay = d }
}

// named makes a task a named one, submitted by a call of its own.
func named(nonce uint64) func(*dispatch.Submission) {
	return func(s *dispatch.Submission) { s.Named, s.Nonce = true, nonce }
}

// sized gives a task a payload.
func sized(n int) func(*dispatch.Submission) {
	return func(s *dispatch.Submission) { s.Payload = make([]byte, n) }
}

func (e *env) enqueue(tasks ...dispatch.Submission) dispatch.EnqueueReply {
	e.Helper()
	r, err := e.store.Enqueue(e.ctx, queue, tasks, dispatch.EnqueueOptions{})
	e.ok(err)
	if len(r.Duplicate) != len(tasks) {
		e.Fatalf("%d answers for %d tasks", len(r.Duplicate), len(tasks))
	}
	return r
}

// put enqueues plain tasks that are due at once.
func (e *env) put(ids ...string) {
	e.Helper()
	for _, id := range ids {
		e.enqueue(submit(id))
	}
}

// fill enqueues n plain tasks, due one millisecond after the other from now on, in the order of their IDs.
func (e *env) fill(n int) []string {
	e.Helper()
	ids := make([]string, n)
	var batch []dispatch.Submission
	for i := range ids {
		ids[i] = fmt.Sprintf("t%04d", i)
		if batch = append(batch, submit(ids[i], after(time.Duration(i)*time.Millisecond))); len(batch) == 100 || i == n-1 {
			e.enqueue(batch...)
			batch = nil
		}
	}
	return ids
}

// nextSeq numbers calls of one kind, per worker and queue.
func (e *env) nextSeq(kind, queue string, w cluster.WorkerID) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := kind + queue + string(w)
	e.seqs[key]++
	return e.seqs[key]
}

// request is a worker's next claim.
func (e *env) request(w cluster.WorkerID, budget int) dispatch.ClaimRequest {
	return dispatch.ClaimRequest{
		Queue: queue, Worker: w, Seq: e.nextSeq("claim", queue, w), Budget: budget, Grace: grace,
	}
}

func (e *env) claim(w cluster.WorkerID, budget int) *dispatch.ClaimReply {
	e.Helper()
	return e.send(e.request(w, budget))
}

func (e *env) send(r dispatch.ClaimRequest) *dispatch.ClaimReply {
	e.Helper()
	reply, err := e.store.Claim(e.ctx, r)
	e.ok(err)
	for _, l := range reply.Leased {
		e.ok(l.Err)
	}
	return reply
}

// claimed claims and demands that exactly these tasks come, in this order.
func (e *env) claimed(w cluster.WorkerID, budget int, want ...string) []dispatch.Leased {
	e.Helper()
	leased := e.claim(w, budget).Leased
	if got := leasedIDs(leased); !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
		e.Fatalf("claimed %v, want %v", got, want)
	}
	return leased
}

// one claims exactly one task.
func (e *env) one(w cluster.WorkerID, id string) dispatch.Leased {
	e.Helper()
	return e.claimed(w, 1, id)[0]
}

func leasedIDs(leased []dispatch.Leased) []string {
	var ids []string
	for _, l := range leased {
		ids = append(ids, string(l.Task.ID))
	}
	return ids
}

// ended is the outcome of an attempt.
func ended(l dispatch.Leased, outcome dispatch.Outcome, after time.Duration) dispatch.Settlement {
	return dispatch.Settlement{ID: l.Task.ID, Lease: l.Lease, Outcome: outcome, After: after}
}

// settle sends outcomes and returns the whole answer.
func (e *env) settle(w cluster.WorkerID, items ...dispatch.Settlement) dispatch.SettleReply {
	e.Helper()
	return e.settleAs(dispatch.SettleRequest{Queue: queue, Worker: w, Seq: e.nextSeq("settle", queue, w), Items: items})
}

func (e *env) settleAs(r dispatch.SettleRequest) dispatch.SettleReply {
	e.Helper()
	reply, err := e.store.Settle(e.ctx, r)
	e.ok(err)
	if len(reply.Applied) != len(r.Items) {
		e.Fatalf("%d answers for %d outcomes", len(reply.Applied), len(r.Items))
	}
	return reply
}

// applied settles and demands that every outcome counts.
func (e *env) applied(w cluster.WorkerID, items ...dispatch.Settlement) dispatch.SettleReply {
	e.Helper()
	reply := e.settle(w, items...)
	for i, applied := range reply.Applied {
		if !applied {
			e.Fatalf("%s of task %s was not applied", items[i].Outcome, items[i].ID)
		}
	}
	return reply
}

// refused settles and demands that no outcome counts.
func (e *env) refused(w cluster.WorkerID, items ...dispatch.Settlement) {
	e.Helper()
	for i, applied := range e.settle(w, items...).Applied {
		if applied {
			e.Errorf("%s of task %s was applied", items[i].Outcome, items[i].ID)
		}
	}
}

// info reads a task that must be there, in the given state.
func (e *env) info(id string, state dispatch.TaskState) *dispatch.TaskInfo {
	e.Helper()
	t, err := e.store.Task(e.ctx, queue, dispatch.TaskID(id))
	if err == nil {
		err = t.Err
	}
	if err != nil {
		e.Fatalf("task %s: %v", id, err)
	}
	if t.State != state {
		e.Fatalf("task %s is %s, want %s", id, t.State, state)
	}
	return t
}

// gone demands that a task is not there.
func (e *env) gone(id string) {
	e.Helper()
	_, err := e.store.Task(e.ctx, queue, dispatch.TaskID(id))
	e.fails("task "+id, err, dispatch.ErrTaskNotFound)
}

func (e *env) counts() dispatch.Counts {
	e.Helper()
	c, err := e.store.Counts(e.ctx, queue)
	e.ok(err)
	return c
}

// create makes the queue with settings.
func (e *env) create(q dispatch.Queue) {
	e.Helper()
	q.Name = queue
	created, err := e.store.CreateQueue(e.ctx, q)
	e.ok(err)
	if !created {
		e.Fatal("the queue exists already")
	}
}

// change replaces the settings of the queue.
func (e *env) change(edit func(*dispatch.Queue)) {
	e.Helper()
	q, err := e.store.Queue(e.ctx, queue)
	e.ok(err)
	edit(q)
	replaced, err := e.store.ReplaceQueue(e.ctx, *q)
	e.ok(err)
	if !replaced {
		e.Fatal("the settings were not replaced")
	}
}

// queues reads the names of all queues.
func (e *env) queues() []string {
	e.Helper()
	var all []string
	for cursor := uint64(0); ; {
		names, next, err := e.store.Queues(e.ctx, cursor)
		e.ok(err)
		all = append(all, names...)
		if cursor = next; cursor == 0 {
			return all
		}
	}
}
