package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

func (b *bubble) client(o dispatch.ClientOptions) *dispatch.Client {
	b.Helper()
	if o.Logger == nil {
		o.Logger = silent
	}
	c, err := dispatch.NewClient(b.store, o)
	b.ok(err)
	return c
}

func kindTask(queue string) dispatch.Task { return dispatch.Task{Kind: "k", Queue: queue} }

func TestEnqueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		id, err := c.Enqueue(t.Context(), dispatch.Task{Kind: "k", Payload: []byte("p"), Delay: time.Minute})
		b.ok(err)
		info, err := c.Task(t.Context(), "default", id)
		b.ok(err)
		if len(id) != 20 || info.ID != id || info.State != dispatch.TaskWaiting || string(info.Payload) != "p" ||
			!info.Due.Equal(time.Now().Add(time.Minute)) || info.Timeout != 10*time.Minute {
			t.Errorf("the task is %+v", info)
		}
		_, err = c.Enqueue(t.Context(), dispatch.Task{})
		var bad *dispatch.FieldError
		if !errors.As(err, &bad) {
			t.Errorf("a task of nothing: %v", err)
		}
		id, err = c.Enqueue(t.Context(), dispatch.Task{ID: "mine", Timeout: -1, Kind: "k"})
		if !errors.As(err, &bad) || bad.Field != "Task.Timeout" || id != "mine" {
			t.Errorf("%q, %v", id, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		calls := b.store.count("Enqueue")
		if _, err = c.Enqueue(ctx, kindTask("q")); !errors.Is(err, context.Canceled) || errors.Is(err, dispatch.ErrUncertain) {
			t.Errorf("with an ended context: %v", err)
		}
		if b.store.count("Enqueue") != calls {
			t.Error("with an ended context the store is called")
		}
	})
}

func TestEnqueueDuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		first := dispatch.Task{ID: "name", Kind: "k", Payload: []byte("first"), Delay: time.Hour}
		if id, err := c.Enqueue(t.Context(), first); err != nil || id != "name" {
			t.Fatalf("%q, %v", id, err)
		}
		for _, again := range []dispatch.Task{first, {ID: "name", Kind: "other"}} {
			id, err := c.Enqueue(t.Context(), again)
			requireError(t, err, dispatch.ErrDuplicateTask)
			if id != "name" {
				t.Errorf("the ID with the error is %q", id)
			}
		}
		if id, err := c.Enqueue(t.Context(), dispatch.Task{ID: "name", Kind: "k", Queue: "other"}); err != nil || id != "name" {
			t.Errorf("in another queue: %q, %v", id, err)
		}
		info, err := c.Task(t.Context(), "default", "name")
		if err != nil || string(info.Payload) != "first" {
			t.Errorf("the task is %+v, %v", info, err)
		}
	})
}

// Of many that submit one name at once, one succeeds.
func TestEnqueueDuplicatesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		errs := make(chan error, 50)
		for range cap(errs) {
			go func() {
				_, err := c.Enqueue(t.Context(), dispatch.Task{ID: "name", Kind: "k"})
				errs <- err
			}()
		}
		stored := 0
		for range cap(errs) {
			if err := <-errs; err == nil {
				stored++
			} else if !errors.Is(err, dispatch.ErrDuplicateTask) {
				t.Errorf("error %v", err)
			}
		}
		if stored != 1 {
			t.Errorf("%d calls succeed", stored)
		}
	})
}

func TestStrictQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		strict, lax := b.client(dispatch.ClientOptions{StrictQueues: true}), b.client(dispatch.ClientOptions{})
		_, err := strict.Enqueue(t.Context(), kindTask("q"))
		requireError(t, err, dispatch.ErrQueueNotFound)
		results, err := strict.EnqueueMany(t.Context(), []dispatch.Task{kindTask("q"), kindTask("q")})
		b.ok(err)
		for _, r := range results {
			requireError(t, r.Err, dispatch.ErrQueueNotFound)
		}
		_, err = strict.Queue(t.Context(), "q")
		requireError(t, err, dispatch.ErrQueueNotFound)
		_, err = lax.Enqueue(t.Context(), kindTask("q"))
		b.ok(err)
		_, err = strict.Enqueue(t.Context(), kindTask("q"))
		b.ok(err)
	})
}

// Calls made at the same moment share a trip: while one is under way the next gathers.
func TestEnqueueCallsCoalesce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		gate := make(chan struct{})
		b.store.onCall("Enqueue", func(_ context.Context, do func() error) error {
			<-gate
			return do()
		})
		var wait sync.WaitGroup
		ids := make(chan dispatch.TaskID, 501)
		enqueue := func() {
			wait.Go(func() {
				id, err := c.Enqueue(t.Context(), kindTask("q"))
				if err != nil {
					t.Error(err)
				}
				ids <- id
			})
		}
		enqueue()
		synctest.Wait()
		for range 500 {
			enqueue()
		}
		synctest.Wait()
		if n := b.store.count("Enqueue"); n != 2 {
			t.Errorf("%d trips at once, want the first call and a second batch", n)
		}
		close(gate)
		wait.Wait()
		close(ids)
		if n := b.store.count("Enqueue"); n < 5 || n > 6 { // 1, 8 or more, and 150 each
			t.Errorf("501 calls make %d trips", n)
		}
		if n := b.store.count("Announce"); n < 1 || n > 6 {
			t.Errorf("%d announcements", n)
		}
		all := make(map[dispatch.TaskID]bool)
		for id := range ids {
			all[id] = true
		}
		counts, err := c.Counts(t.Context(), "q")
		if err != nil || counts.Ready != 501 || len(all) != 501 {
			t.Errorf("%d IDs, counts %+v, %v", len(all), counts, err)
		}
	})
}

// A caller whose context ends while the batch is under way is told that the task may exist; the others are not touched.
func TestEnqueueContextEndsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		gate := make(chan struct{})
		b.store.onCall("Enqueue", func(ctx context.Context, do func() error) error {
			<-gate
			if ctx.Err() != nil {
				t.Error("the batch's context has ended with a caller's")
			}
			return do()
		})
		type outcome struct {
			id  dispatch.TaskID
			err error
		}
		enqueue := func(ctx context.Context) chan outcome {
			done := make(chan outcome, 1)
			go func() {
				id, err := c.Enqueue(ctx, kindTask("q"))
				done <- outcome{id, err}
			}()
			synctest.Wait()
			return done
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first := enqueue(t.Context()) // under way
		impatient := enqueue(ctx)     // in the next batch
		second := enqueue(t.Context())
		time.Sleep(time.Second)
		got := <-impatient
		if !errors.Is(got.err, dispatch.ErrUncertain) || !errors.Is(got.err, context.DeadlineExceeded) || got.id == "" ||
			!strings.Contains(got.err.Error(), string(got.id)+" may exist") {
			t.Errorf("the impatient caller gets %q, %v", got.id, got.err)
		}
		close(gate)
		for _, done := range []chan outcome{first, second} {
			if o := <-done; o.err != nil {
				t.Errorf("another caller gets %v", o.err)
			}
		}
		synctest.Wait()
		// The impatient caller had gone before its task was on its way: it is not stored for nobody.
		_, err := c.Task(t.Context(), "q", got.id)
		requireError(t, err, dispatch.ErrTaskNotFound)
	})
}

// The caller of an uncertain enqueue learns it, and the tasks that may be there are announced.
func TestEnqueueUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		b.store.onCall("Enqueue", func(_ context.Context, do func() error) error { return lost(do) })
		id, err := c.Enqueue(t.Context(), kindTask("q"))
		requireError(t, err, dispatch.ErrUncertain)
		synctest.Wait()
		if _, err := c.Task(t.Context(), "q", id); err != nil {
			t.Errorf("the task: %v", err)
		}
		hints, err := b.redis.Hints(t.Context(), 0)
		if err != nil || !slices.ContainsFunc(hints, func(h dispatch.Hint) bool { return h.Queue == "q" }) {
			t.Errorf("the notes are %v, %v", hints, err)
		}
		results, err := c.EnqueueMany(t.Context(), []dispatch.Task{kindTask("q")})
		b.ok(err)
		requireError(t, results[0].Err, dispatch.ErrUncertain)
	})
}

func TestEnqueueErrorReachesEveryCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		b.store.onCall("Enqueue", func(context.Context, func() error) error { return dispatch.ErrStoreFull })
		errs := make(chan error, 20)
		for range cap(errs) {
			go func() {
				_, err := c.Enqueue(t.Context(), kindTask("q"))
				errs <- err
			}()
		}
		for range cap(errs) {
			requireError(t, <-errs, dispatch.ErrStoreFull)
		}
		if n := b.store.count("Announce"); n != 0 {
			t.Errorf("%d announcements of nothing", n)
		}
	})
}
