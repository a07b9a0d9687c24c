package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore/storetest"
)

// replicas answer WAIT in place of a server that has none. Like Redis from 7.2 on, and unlike 7.0, they go by the last write
// of the connection: a WAIT that has none before it in its pipeline is answered at once for something old.
type replicas struct {
	alive atomic.Int64 // how many say that they have what was written
	sent  atomic.Int64 // pipelines with a WAIT

	mu     sync.Mutex
	waits  int
	naked  int // waits without a write before
	sizes  []int
	broken []error // what comes instead of an answer, one after the other
	hold   chan struct{}
}

func (r *replicas) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *replicas) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r *replicas) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		last := cmds[len(cmds)-1]
		if last.Name() != "wait" {
			return next(ctx, cmds)
		}
		r.sent.Add(1)
		if r.hold != nil {
			<-r.hold
		}
		err := next(ctx, cmds[:len(cmds)-1])
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waits++
		r.sizes = append(r.sizes, len(cmds)-2)
		n := r.alive.Load()
		if scriptName(cmds[len(cmds)-2]) != "mark" {
			r.naked++
			n = 1000
		}
		if len(r.broken) > 0 {
			last.SetErr(r.broken[0])
			r.broken = r.broken[1:]
			return cmp.Or(err, last.Err())
		}
		last.(*redis.Cmd).SetVal(n)
		return err
	}
}

func (r *replicas) waited() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waits
}

// durableOf is a view of a store that waits for one replica.
func durableOf(t testing.TB, s *testStore) *testStore {
	t.Helper()
	view, err := s.Durable(dispatch.Durability{Replicas: 1, Timeout: time.Second})
	ok(t, err)
	return &testStore{Store: view.(*Store), advance: s.advance}
}

// durableMini is such a view on a simulated server, whose replicas are there.
func durableMini(t testing.TB, hooks ...redis.Hook) (*testStore, *replicas) {
	t.Helper()
	r := new(replicas)
	r.alive.Store(1)
	return durableOf(t, openMini(t, append([]redis.Hook{r}, hooks...)...)), r
}

func requireErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func TestDurableEnqueue(t *testing.T) {
	s, r := durableMini(t)
	put(t, s, "first") // creates the queue
	before := r.waited()
	put(t, s, "a")
	if n := r.waited() - before; n != 1 {
		t.Errorf("%d waits for one batch", n)
	}
	r.alive.Store(0)
	for _, id := range []string{"b", "b"} { // the second time it is a duplicate, and no better off
		_, err := s.Enqueue(t.Context(), mail, []dispatch.Submission{namedTask(id)}, dispatch.EnqueueOptions{})
		requireErr(t, err, dispatch.ErrNotReplicated)
		requireErr(t, err, dispatch.ErrUncertain)
	}
	r.alive.Store(1)
	other := namedTask("b")
	other.Nonce++
	if reply := enqueue(t, s, other); !reply.Duplicate[0] {
		t.Error("the task that was not replicated was not stored")
	}
	if r.naked > 0 {
		t.Errorf("%d of %d waits go by an older write", r.naked, r.waits)
	}
	if got := ids(claim(t, s, alice, 1, 10).Leased); got != "a b first " {
		t.Errorf("claimed %q", got)
	}
	sound(t, s, mail)
}

// A task whose call ended with ErrNotReplicated may run before the call is repeated. Then a task whose ID was chosen is known still.
func TestDurableRepetitionOfWhatHasRun(t *testing.T) {
	s, r := durableMini(t)
	tasks := []dispatch.Submission{task("generated"), namedTask("chosen")}
	store := func() (dispatch.EnqueueReply, error) {
		return s.Enqueue(t.Context(), mail, tasks, dispatch.EnqueueOptions{})
	}
	r.alive.Store(0)
	_, err := store()
	requireErr(t, err, dispatch.ErrNotReplicated)
	leased := claim(t, s, alice, 1, 10).Leased
	ends := settleRequest(0, dispatch.Succeeded, 0, leased...)
	for i := range ends.Items {
		if leased[i].Named {
			ends.Items[i].Tombstone = time.Hour
		}
	}
	_, err = s.Settle(t.Context(), ends)
	ok(t, err)
	r.alive.Store(1)
	tasks[1].Nonce++
	reply, err := store()
	if ok(t, err); len(leased) != 2 || reply.Duplicate[0] || !reply.Duplicate[1] {
		t.Errorf("%d tasks have run, known still: %v", len(leased), reply.Duplicate)
	}
	sound(t, s, mail)
}

// What is refused whole was not stored, and that is so whatever replicas have.
func TestDurableRefusals(t *testing.T) {
	s, r := durableMini(t)
	put(t, s, "a")
	ok(t, s.SetState(t.Context(), mail, dispatch.QueueDraining))
	r.alive.Store(0)
	_, err := s.Enqueue(t.Context(), mail, []dispatch.Submission{task("b")}, dispatch.EnqueueOptions{})
	requireErr(t, err, dispatch.ErrQueueDraining)
	_, err = s.Enqueue(t.Context(), "none", []dispatch.Submission{task("b")}, dispatch.EnqueueOptions{Strict: true})
	requireErr(t, err, dispatch.ErrQueueNotFound)
}

// Everything that is acknowledged waits, and what is not does not.
func TestDurableMethods(t *testing.T) {
	s, r := durableMini(t)
	put(t, s, "a", "b", "c")
	ctx := t.Context()
	ok(t, s.PutEntry(ctx, &dispatch.EntryInfo{Entry: dispatch.Entry{Name: "e", Spec: "@daily"}}))
	now, err := s.Queue(ctx, mail)
	ok(t, err)
	r.alive.Store(0)
	for name, call := range map[string]func() error{
		"cancel": func() error { _, err := s.CancelTask(ctx, mail, dispatch.Cancellation{ID: "a"}); return err },
		"delete": func() error {
			_, err := s.DeleteTasks(ctx, mail, []dispatch.TaskID{"z"}, dispatch.DeleteOptions{})
			return err
		},
		"edit":       func() error { return s.EditTask(ctx, mail, "b", func(*dispatch.Task) error { return nil }) },
		"replay":     func() error { _, err := s.ReplayTasks(ctx, mail, []dispatch.Replay{{ID: "z"}}); return err },
		"reschedule": func() error { _, err := s.RescheduleTask(ctx, mail, dispatch.Task{ID: "b"}); return err },
		"run":        func() error { _, err := s.RunTask(ctx, mail, "c"); return err },
		"state":      func() error { return s.SetState(ctx, mail, dispatch.QueueRunning) },
		"create":     func() error { _, err := s.CreateQueue(ctx, dispatch.Queue{Name: mail}); return err },
		"replace":    func() error { _, err := s.ReplaceQueue(ctx, *now); return err },
		"purge":      func() error { return s.PurgeQueue(ctx, "none", 0) },
		"entry": func() error {
			return s.PutEntry(ctx, &dispatch.EntryInfo{Entry: dispatch.Entry{Name: "e", Spec: "@daily"}})
		},
		"pause entry": func() error { return s.PauseEntry(ctx, "e", true) },
		"drop entry":  func() error { return s.DeleteEntry(ctx, "e", 0) },
	} {
		if err := call(); !errors.Is(err, dispatch.ErrNotReplicated) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.alive.Store(1)
	put(t, s, "d")
	r.alive.Store(0)
	waits := r.waited()
	_, err = s.Task(ctx, mail, "d")
	ok(t, err)
	_, err = s.Counts(ctx, mail)
	ok(t, err)
	settle(t, s, dispatch.Succeeded, 0, claim(t, s, alice, 1, 10).Leased...)
	ok(t, s.Announce(ctx, []dispatch.Hint{{Queue: mail}}))
	if r.waited() != waits {
		t.Error("what is not acknowledged waits")
	}
	requireErr(t, s.DeleteQueue(ctx, mail), dispatch.ErrNotReplicated)
}

// Small calls that come while others wait share one WAIT.
func TestDurableCallsTravelTogether(t *testing.T) {
	s, r := durableMini(t)
	queue := func(i int) string { return fmt.Sprint("q", i) }
	for i := range 20 {
		_, err := s.CreateQueue(t.Context(), dispatch.Queue{Name: queue(i)})
		ok(t, err)
		_, err = s.Enqueue(t.Context(), queue(i), []dispatch.Submission{task("first")}, dispatch.EnqueueOptions{})
		ok(t, err) // the server knows the script
	}
	r.hold = make(chan struct{})
	r.sizes = nil
	r.sent.Store(0)
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			_, err := s.Enqueue(t.Context(), queue(i), []dispatch.Submission{task("a")}, dispatch.EnqueueOptions{})
			if err != nil {
				t.Error(err)
			}
		})
		if i < convoyAfter {
			eventually(t, "one more pipeline", func() bool { return r.sent.Load() == int64(i+1) })
		}
	}
	eventually(t, "calls that wait for company", func() bool { return s.waitingIn(t) == 20-convoyAfter })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Enqueue(ctx, queue(0), []dispatch.Submission{task("b")}, dispatch.EnqueueOptions{})
	requireErr(t, err, context.Canceled)
	close(r.hold)
	calls.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := 0
	for _, n := range r.sizes {
		sum += n
	}
	if sum != 20 || slices.Max(r.sizes) < 2 {
		t.Errorf("pipelines of %v calls", r.sizes)
	}
}

// A caller that gives up does not wait for replicas, whatever they do.
func TestDurableCallEndsWithItsContext(t *testing.T) {
	s, r := durableMini(t)
	put(t, s, "a")
	r.hold = make(chan struct{})
	for name, call := range map[string]func(context.Context) error{
		"enqueue": func(ctx context.Context) error {
			_, err := s.Enqueue(ctx, mail, []dispatch.Submission{task("b")}, dispatch.EnqueueOptions{})
			return err
		},
		"state": func(ctx context.Context) error { return s.SetState(ctx, mail, dispatch.QueuePaused) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		sent, ended := r.sent.Load(), make(chan error, 1)
		go func() { ended <- call(ctx) }()
		eventually(t, "a call on its way", func() bool { return r.sent.Load() > sent })
		cancel()
		if err := receive(t, ended); !errors.Is(err, dispatch.ErrUncertain) || errors.Is(err, dispatch.ErrNotReplicated) {
			t.Errorf("%s: %v", name, err)
		}
	}
	close(r.hold)
	eventually(t, "the end of what was on its way", func() bool { return r.waited() >= 4 })
}

// When nothing is heard of the replicas, the call is repeated, and is as good as the first.
func TestDurableAnswerLost(t *testing.T) {
	s, r := durableMini(t)
	put(t, s, "a")
	r.broken = []error{io.EOF, redisError("UNBLOCKED the master is a replica by now")}
	put(t, s, "b")
	if len(r.broken) > 0 {
		t.Error("not repeated")
	}
	leased := claim(t, s, alice, 1, 10).Leased
	if ids(leased) != "a b " {
		t.Errorf("claimed %q", ids(leased))
	}
	// What a repetition would not mean is not repeated.
	settle(t, s, dispatch.Dead, time.Hour, leased...)
	r.broken = []error{nil, io.EOF} // the server does not know the script
	_, err := s.ReplayTasks(t.Context(), mail, []dispatch.Replay{{ID: "a"}})
	requireErr(t, err, dispatch.ErrUncertain)
}

type redisError string

func (e redisError) Error() string { return string(e) }

func (redisError) RedisError() {}

// A client that hides its connections, or gives them up before WAIT is answered, cannot be waited with.
func TestDurabilityNeedsAClient(t *testing.T) {
	s := openMini(t)
	refused := func(d dispatch.Durability, field string) {
		t.Helper()
		_, err := s.Durable(d)
		var bad *dispatch.FieldError
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%+v: %v, want a *FieldError of %s", d, err, field)
		}
	}
	s.client.(*redis.Client).Options().ReadTimeout = time.Second // 3 s by default
	refused(dispatch.Durability{Replicas: 1, Timeout: time.Second}, "Durability.Timeout")
	s.client.(*redis.Client).Options().ReadTimeout = -1 // none
	_, err := s.Durable(dispatch.Durability{Replicas: 1, Timeout: 2 * time.Second})
	ok(t, err)
	s.client = struct{ redis.UniversalClient }{s.client}
	refused(dispatch.Durability{Replicas: 1, Timeout: time.Second}, "Durability.Replicas")
}

// Where replicas are there, the view is as good a store as any.
func TestDurableConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, harness(backend{name: "durable", open: func(t testing.TB, hooks ...redis.Hook) *testStore {
		s, _ := durableMini(t, hooks...)
		return s
	}}))
}
