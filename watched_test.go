package dispatch_test

import (
	"context"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/redisstore"
)

// newBubbleStore makes a store for a synctest bubble, whose time it shares, and the server behind it.
func newBubbleStore(t testing.TB) (*redisstore.Store, *miniredis.Miniredis) {
	t.Helper()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	client := redis.NewClient(&redis.Options{
		Addr:                  "127.0.0.1:6379", // never dialled
		Dialer:                func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
		ContextTimeoutEnabled: true,
		MaxRetries:            -1,
		DisableIdentity:       true,
		// Nobody is to wait for a connection: the client takes the timers for that from a pool that all bubbles share, and a
		// timer of another bubble ends the program.
		PoolSize: 1000,
	})
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	store, err := redisstore.New(client, redisstore.Options{Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	return store, server
}

// bubble is a watched store in a synctest bubble, and what an observer was told.
type bubble struct {
	testing.TB
	store  *watched
	redis  *redisstore.Store
	server *miniredis.Miniredis
	seen   *events
}

func newBubble(t testing.TB) *bubble {
	t.Helper()
	store, server := newBubbleStore(t)
	t.Cleanup(func() { time.Sleep(10 * time.Second) }) // what callers did not wait for ends before the server does
	return &bubble{TB: t, store: &watched{Store: store}, redis: store, server: server, seen: new(events)}
}

// dispatcher makes a dispatcher, which is stopped when the test ends.
func (b *bubble) dispatcher(o dispatch.Options) *dispatch.Dispatcher {
	b.Helper()
	if o.Observer == nil {
		o.Observer = b.seen.observe
	}
	if o.Logger == nil {
		o.Logger = silent
	}
	d, err := dispatch.New(b.store, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { d.Stop() })
	return d
}

func (b *bubble) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bubble) enqueue(d *dispatch.Dispatcher, task dispatch.Task) dispatch.TaskID {
	b.Helper()
	id, err := d.Enqueue(b.Context(), task)
	b.ok(err)
	return id
}

// watched is a store that counts the calls, and does to them what a test says.
type watched struct {
	dispatch.Store

	mu    sync.Mutex
	calls map[string]int
	// hook, if set, stands in for each call: do makes it. After an error the answer is dropped.
	hook func(ctx context.Context, call string, do func() error) error
	// enqueues stand in for those to some queues.
	enqueues map[string]func() error
	// hung is a worker whose claims hang.
	hung cluster.WorkerID
}

// queueKey finds the queue in the context of a settle.
type queueKey struct{}

// on sets the hook; nil lets calls through.
func (w *watched) on(hook func(ctx context.Context, call string, do func() error) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hook = hook
}

// onCall sets a hook for one call and lets others through.
func (w *watched) onCall(name string, hook func(ctx context.Context, do func() error) error) {
	w.on(func(ctx context.Context, call string, do func() error) error {
		if call != name {
			return do()
		}
		return hook(ctx, do)
	})
}

// onEnqueue makes enqueues to a queue fail.
func (w *watched) onEnqueue(queue string, fail func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enqueues = map[string]func() error{queue: fail}
}

// count is how many calls of the given names there were; without names, of all.
func (w *watched) count(names ...string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, name := range names {
		n += w.calls[name]
	}
	if len(names) == 0 {
		for _, calls := range w.calls {
			n += calls
		}
	}
	return n
}

func (w *watched) call(ctx context.Context, name string, do func() error) error {
	w.mu.Lock()
	if w.calls == nil {
		w.calls = make(map[string]int)
	}
	w.calls[name]++
	hook := w.hook
	w.mu.Unlock()
	if hook == nil {
		return do()
	}
	return hook(ctx, name, do)
}

// answer makes a call that has an answer.
func answer[T any](w *watched, ctx context.Context, name string, do func() (T, error)) (T, error) {
	var v T
	err := w.call(ctx, name, func() error {
		var err error
		v, err = do()
		return err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

func (w *watched) Enqueue(ctx context.Context, queue string, tasks []dispatch.Submission, o dispatch.EnqueueOptions) (dispatch.EnqueueReply, error) {
	w.mu.Lock()
	fail := w.enqueues[queue]
	w.mu.Unlock()
	if fail != nil {
		return dispatch.EnqueueReply{}, fail()
	}
	return answer(w, ctx, "Enqueue", func() (dispatch.EnqueueReply, error) { return w.Store.Enqueue(ctx, queue, tasks, o) })
}

func (w *watched) Claim(ctx context.Context, r dispatch.ClaimRequest) (*dispatch.ClaimReply, error) {
	return answer(w, ctx, "Claim", func() (*dispatch.ClaimReply, error) {
		w.mu.Lock()
		hung := w.hung == r.Worker
		w.mu.Unlock()
		if hung {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return w.Store.Claim(ctx, r)
	})
}

func (w *watched) Settle(ctx context.Context, r dispatch.SettleRequest) (dispatch.SettleReply, error) {
	ctx = context.WithValue(ctx, queueKey{}, r.Queue)
	return answer(w, ctx, "Settle", func() (dispatch.SettleReply, error) { return w.Store.Settle(ctx, r) })
}

func (w *watched) Extend(ctx context.Context, queue string, all []dispatch.Extension) ([]bool, error) {
	return answer(w, ctx, "Extend", func() ([]bool, error) { return w.Store.Extend(ctx, queue, all) })
}

func (w *watched) Holds(ctx context.Context, queue string, leases []dispatch.Held) ([]bool, error) {
	return answer(w, ctx, "Holds", func() ([]bool, error) { return w.Store.Holds(ctx, queue, leases) })
}

func (w *watched) ExpiredLeases(ctx context.Context, queue string, limit int) (leases []dispatch.Leased, next time.Duration, err error) {
	err = w.call(ctx, "ExpiredLeases", func() error {
		leases, next, err = w.Store.ExpiredLeases(ctx, queue, limit)
		return err
	})
	return leases, next, err
}

func (w *watched) HeldLeases(ctx context.Context, queue string, workers []cluster.WorkerID, cursor uint64) (leases []dispatch.Leased, next uint64, err error) {
	err = w.call(ctx, "HeldLeases", func() error {
		leases, next, err = w.Store.HeldLeases(ctx, queue, workers, cursor)
		return err
	})
	return leases, next, err
}

func (w *watched) Expiring(ctx context.Context, limit int) ([]string, error) {
	return answer(w, ctx, "Expiring", func() ([]string, error) { return w.Store.Expiring(ctx, limit) })
}

func (w *watched) Cleanup(ctx context.Context, queue string, limit int) (bool, error) {
	return answer(w, ctx, "Cleanup", func() (bool, error) { return w.Store.Cleanup(ctx, queue, limit) })
}

func (w *watched) Tasks(ctx context.Context, queue string, state dispatch.TaskState, cursor string) (tasks []*dispatch.TaskInfo, next string, err error) {
	err = w.call(ctx, "Tasks", func() error {
		tasks, next, err = w.Store.Tasks(ctx, queue, state, cursor)
		return err
	})
	return tasks, next, err
}

func (w *watched) DeleteTasks(ctx context.Context, queue string, ids []dispatch.TaskID, o dispatch.DeleteOptions) ([]bool, error) {
	return answer(w, ctx, "DeleteTasks", func() ([]bool, error) { return w.Store.DeleteTasks(ctx, queue, ids, o) })
}

func (w *watched) ReplayTasks(ctx context.Context, queue string, tasks []dispatch.Replay) (dispatch.ReplayReply, error) {
	return answer(w, ctx, "ReplayTasks", func() (dispatch.ReplayReply, error) { return w.Store.ReplayTasks(ctx, queue, tasks) })
}

func (w *watched) Announce(ctx context.Context, hints []dispatch.Hint) error {
	return w.call(ctx, "Announce", func() error { return w.Store.Announce(ctx, hints) })
}

func (w *watched) Hints(ctx context.Context, within time.Duration) ([]dispatch.Hint, error) {
	return answer(w, ctx, "Hints", func() ([]dispatch.Hint, error) { return w.Store.Hints(ctx, within) })
}

func (w *watched) Rest(ctx context.Context, hints []dispatch.Hint) ([]dispatch.Hint, error) {
	return answer(w, ctx, "Rest", func() ([]dispatch.Hint, error) { return w.Store.Rest(ctx, hints) })
}

func (w *watched) Look(ctx context.Context, queues []string) ([]dispatch.Hint, error) {
	return answer(w, ctx, "Look", func() ([]dispatch.Hint, error) { return w.Store.Look(ctx, queues) })
}

func (w *watched) Listen(ctx context.Context, joined func(), heard func([]dispatch.Hint)) error {
	return w.call(ctx, "Listen", func() error { return w.Store.Listen(ctx, joined, heard) })
}

func (w *watched) Queue(ctx context.Context, name string) (*dispatch.Queue, error) {
	return answer(w, ctx, "Queue", func() (*dispatch.Queue, error) { return w.Store.Queue(ctx, name) })
}

func (w *watched) ReplaceQueue(ctx context.Context, q dispatch.Queue) (bool, error) {
	return answer(w, ctx, "ReplaceQueue", func() (bool, error) { return w.Store.ReplaceQueue(ctx, q) })
}

func (w *watched) Queues(ctx context.Context, cursor uint64) (names []string, next uint64, err error) {
	err = w.call(ctx, "Queues", func() error {
		names, next, err = w.Store.Queues(ctx, cursor)
		return err
	})
	return names, next, err
}

// snapshot is how many calls of each name there were.
func (w *watched) snapshot() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.calls)
}

// since is how many there were after a snapshot.
func (w *watched) since(before map[string]int) map[string]int {
	now := w.snapshot()
	for name := range now {
		if now[name] -= before[name]; now[name] == 0 {
			delete(now, name)
		}
	}
	return now
}

func (w *watched) RegisterWorker(ctx context.Context, worker *cluster.Worker) error {
	return w.call(ctx, "RegisterWorker", func() error { return w.Store.RegisterWorker(ctx, worker) })
}

func (w *watched) DeregisterWorker(ctx context.Context, id cluster.WorkerID) error {
	return w.call(ctx, "DeregisterWorker", func() error { return w.Store.DeregisterWorker(ctx, id) })
}

func (w *watched) HeartbeatWorker(ctx context.Context, id cluster.WorkerID) error {
	return w.call(ctx, "HeartbeatWorker", func() error { return w.Store.HeartbeatWorker(ctx, id) })
}

func (w *watched) ListWorkers(ctx context.Context) ([]*cluster.Worker, error) {
	return answer(w, ctx, "ListWorkers", func() ([]*cluster.Worker, error) { return w.Store.ListWorkers(ctx) })
}

func (w *watched) ReapDeadWorkers(ctx context.Context, threshold time.Duration) ([]*cluster.Worker, error) {
	return answer(w, ctx, "ReapDeadWorkers", func() ([]*cluster.Worker, error) { return w.Store.ReapDeadWorkers(ctx, threshold) })
}

func (w *watched) Plan(ctx context.Context) (*cluster.Plan, error) {
	return answer(w, ctx, "Plan", func() (*cluster.Plan, error) { return w.Store.Plan(ctx) })
}

func (w *watched) PublishPlan(ctx context.Context, p *cluster.Plan) error {
	return w.call(ctx, "PublishPlan", func() error { return w.Store.PublishPlan(ctx, p) })
}

func (w *watched) BeginTerm(ctx context.Context, id cluster.WorkerID) (int64, error) {
	return answer(w, ctx, "BeginTerm", func() (int64, error) { return w.Store.BeginTerm(ctx, id) })
}

func (w *watched) DueEntries(ctx context.Context, skip, limit int) (due []*dispatch.EntryInfo, now time.Time, wait time.Duration, err error) {
	err = w.call(ctx, "DueEntries", func() error {
		due, now, wait, err = w.Store.DueEntries(ctx, skip, limit)
		return err
	})
	return due, now, wait, err
}

func (w *watched) AdvanceEntry(ctx context.Context, a dispatch.EntryAdvance) (bool, error) {
	return answer(w, ctx, "AdvanceEntry", func() (bool, error) { return w.Store.AdvanceEntry(ctx, a) })
}
