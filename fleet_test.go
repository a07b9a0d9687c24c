package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// nothing is a handler that succeeds.
var nothing = dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { return nil })

// ghost is a worker that has registered, leased tasks of a queue for an hour, and is never heard of again.

// settles demands that the leases of ghosts are settled within the time that reaping takes.

func (b *bubble) worker(id cluster.WorkerID) *cluster.Worker {
	b.Helper()
	w, err := b.redis.GetWorker(b.Context(), id)
	b.ok(err)
	return w
}

// What a worker held that is silent for StaleJobThreshold is settled as lost within a SweepInterval, as an attempt that

// counts, by a leader that does not serve the queue itself.

// A worker that comes back while its leases are given away keeps the rest.

// An outage of the registry kills nobody: a leader that could not beat itself does not judge others by their silence.

// A process whose heartbeats do not get through ends what it runs just before others get it, and claims again later. The

// attempts do not count.

func TestIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		var mu sync.Mutex
		var causes []error
		var ended time.Time
		d.Handle("long", dispatch.HandlerFunc(func(ctx context.Context, _ *dispatch.Task) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			mu.Lock()
			defer mu.Unlock()
			causes = append(causes, context.Cause(ctx))
			ended = time.Now()
			return ctx.Err()
		}))
		b.ok(d.Start(t.Context()))
		id := b.enqueue(d, dispatch.Task{Kind: "long"})
		time.Sleep(time.Second)
		cut := time.Now()
		lastBeat := b.worker(d.Worker()).LastSeen
		b.store.on(func(_ context.Context, call string, do func() error) error {
			if call == "HeartbeatWorker" || call == "RegisterWorker" {
				return errors.New("cut off")
			}
			return do()
		})
		time.Sleep(45 * time.Second)
		mu.Lock()
		if len(causes) != 1 || !errors.Is(causes[0], dispatch.ErrLeaseLost) {
			t.Errorf("the handler's context ended with %v", causes)
		}
		if silent := ended.Sub(lastBeat.Local()); silent > 30*time.Second || ended.Before(cut) {
			t.Errorf("it ended %v after the last beat", silent)
		}
		mu.Unlock()
		if claims := b.store.count("Claim"); claims == 0 {
			t.Error("there were no claims, which proves nothing")
		}
		before := b.store.count("Claim")
		b.enqueue(d, dispatch.Task{Kind: "long"})
		time.Sleep(20 * time.Second)
		if n := b.store.count("Claim") - before; n != 0 {
			t.Errorf("%d claims while cut off", n)
		}
		b.store.on(nil)
		time.Sleep(20 * time.Second)
		if b.store.count("Claim") == before {
			t.Error("nothing is claimed after the cut")
		}
		info, err := d.Task(t.Context(), dispatch.DefaultQueue, id)
		b.ok(err)
		if info.Progress.Attempts != 0 || info.State != dispatch.TaskRunning {
			t.Errorf("the task is %s after %d attempts", info.State, info.Progress.Attempts)
		}
	})
}

// fleet starts processes that know of each other, and returns them by rank for the queue "q".

func (b *bubble) fleet(n int, o dispatch.Options, handler dispatch.Handler) []*dispatch.Dispatcher {
	b.Helper()
	byID := make(map[cluster.WorkerID]*dispatch.Dispatcher)
	for range n {
		d := b.dispatcher(o)
		d.Handle("k", handler)
		b.ok(d.Start(b.Context()))
		byID[d.Worker()] = d
	}
	time.Sleep(time.Minute) // by then everybody knows of everybody
	workers, err := b.redis.ListWorkers(b.Context())
	b.ok(err)
	plan := cluster.NewPlan(workers)
	ranked := make([]*dispatch.Dispatcher, n)
	for id, d := range byID {
		ranked[plan.Standing("q", id).Rank] = d
	}
	if slices.Contains(ranked, nil) {
		b.Fatalf("of %d processes %d are registered", n, len(workers))
	}
	return ranked
}

// A lone task costs no more than two claims, however many processes there are.

func TestLoneTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.fleet(8, dispatch.Options{}, nothing)
		c := b.client(dispatch.ClientOptions{})
		b.loneTasks(c, "q", 30*time.Second)
	})
}

// loneTasks enqueues tasks one by one, and demands that each has run after a pause and that they cost two claims each. One
// more is let pass: a home that reads the notes in the very millisecond of a task claims once more, for a note that is not
// older than its last claim.
func (b *bubble) loneTasks(c *dispatch.Client, queue string, pause time.Duration) {
	b.Helper()
	const tasks = 10
	claims := b.store.count("Claim")
	for i := range tasks {
		_, err := c.Enqueue(b.Context(), dispatch.Task{Queue: queue, Kind: "k"})
		b.ok(err)
		time.Sleep(pause)
		if n := b.seen.count(dispatch.Succeeded); n != i+1 {
			b.Fatalf("%d tasks have run, want %d", n, i+1)
		}
	}
	if n := b.store.count("Claim") - claims; n > 2*tasks+1 {
		b.Errorf("%d lone tasks cost %d claims", tasks, n)
	}
}

// hang makes the claims of one worker hang until their context ends.

func (b *bubble) hang(worker cluster.WorkerID) {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	b.store.hung = worker
}

// While a queue's home hangs, the next in line takes its tasks after the steal delay.

func TestHungHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		var mu sync.Mutex
		var started []time.Time
		ranked := b.fleet(4, dispatch.Options{}, dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error {
			mu.Lock()
			started = append(started, time.Now())
			mu.Unlock()
			return nil
		}))
		b.hang(ranked[0].Worker())
		c := b.client(dispatch.ClientOptions{})
		for range 20 {
			asked := time.Now()
			_, err := c.Enqueue(t.Context(), dispatch.Task{Queue: "q", Kind: "k"})
			b.ok(err)
			time.Sleep(time.Second)
			mu.Lock()
			if len(started) != 1 || started[0].Sub(asked) > 60*time.Millisecond {
				t.Errorf("started %v after it was enqueued", started)
			}
			started = nil
			mu.Unlock()
		}
	})
}

// A home without a free place hands its queue over, so that a backlog is everybody's at once.

func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		var mu sync.Mutex
		var started []time.Time
		b.fleet(5, dispatch.Options{GlobalConcurrency: 2, Queues: []string{"q"}}, dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error {
			mu.Lock()
			started = append(started, time.Now())
			mu.Unlock()
			time.Sleep(2 * time.Second)
			return nil
		}))
		c := b.client(dispatch.ClientOptions{})
		asked := time.Now()
		for range 10 {
			_, err := c.Enqueue(t.Context(), dispatch.Task{Queue: "q", Kind: "k"})
			b.ok(err)
		}
		time.Sleep(1900 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		if len(started) != 10 {
			t.Fatalf("%d of 10 tasks run, for ten places in five processes", len(started))
		}
		if last := slices.MaxFunc(started, time.Time.Compare); last.Sub(asked) > time.Second {
			t.Errorf("the last one started after %v", last.Sub(asked))
		}
	})
}

// Without a leader everything flows.

// A plan of workers that are gone keeps no task waiting.

// flows demands that tasks of several queues run within a second.

// A kind that the home of its queue does not know runs on the one process that does.

func TestHomeWithoutHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		ranked := b.fleetOfStrangers()
		for i := range 10 {
			b.enqueue(ranked[0], dispatch.Task{Queue: "q", Kind: "new"})
			time.Sleep(20 * time.Second)
			if n := b.seen.count(dispatch.Succeeded); n != i+1 {
				t.Errorf("%d tasks have run, want %d", n, i+1)
			}
		}
	})
}

// A worker that dies while it drains is as dead as any other.

// What a failure left of a dead worker's leases is settled later, and what another leader has marked dead too.

// A home that hangs and a next in line that is full keep no task from the others.

func TestHungHomeAndFullNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		gate := make(chan struct{})
		ranked := b.fleet(4, dispatch.Options{GlobalConcurrency: 1}, dispatch.HandlerFunc(func(_ context.Context, task *dispatch.Task) error {
			if task.Queue != "q" {
				<-gate
			}
			return nil
		}))
		defer close(gate)
		b.hang(ranked[0].Worker())
		only, err := dispatch.NewClient(b.store, dispatch.ClientOptions{Logger: silent})
		b.ok(err)
		_, err = only.Enqueue(t.Context(), dispatch.Task{Queue: b.homeOf(ranked, 1), Kind: "k"})
		b.ok(err)
		time.Sleep(time.Second)
		for i := range 5 {
			_, err := only.Enqueue(t.Context(), dispatch.Task{Queue: "q", Kind: "k"})
			b.ok(err)
			time.Sleep(time.Second)
			if n := b.seen.count(dispatch.Succeeded); n != i+1 {
				t.Errorf("%d tasks have run, want %d", n, i+1)
			}
		}
	})
}

// homeOf finds a queue that one of the processes is at home with.

func (b *bubble) homeOf(ranked []*dispatch.Dispatcher, i int) string {
	b.Helper()
	workers, err := b.redis.ListWorkers(b.Context())
	b.ok(err)
	plan := cluster.NewPlan(workers)
	for n := range 1000 {
		if name := fmt.Sprint("own", n); plan.Standing(name, ranked[i].Worker()).Home() {
			return name
		}
	}
	b.Fatal("it is at home nowhere")
	return ""
}

// The leader's plan is the one in force: it knows all, spreads a backlog, and follows who comes and goes.

// No token of a queue with a rate is left unused while some of its homes are full.

// Tasks of such a kind that come one behind the other do not wait for one another, and cost few claims.

func TestSeveralOnlyOneCanRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		ranked := b.fleetOfStrangers()
		before := b.store.count("Claim")
		for range 10 {
			b.enqueue(ranked[0], dispatch.Task{Queue: "q", Kind: "new"})
			time.Sleep(1100 * time.Millisecond)
		}
		time.Sleep(15 * time.Second)
		if n := b.seen.count(dispatch.Succeeded); n != 10 {
			t.Errorf("%d tasks of 10 have run", n)
		}
		if claims := b.store.count("Claim") - before; claims > 100 {
			t.Errorf("%d claims for 10 tasks", claims)
		}
	})
}

// Processes that work off one backlog do not all come for each token of its rate.

// fleetOfStrangers is a fleet of four that do not know the kind "new", and a fifth process that does.
func (b *bubble) fleetOfStrangers() (ranked []*dispatch.Dispatcher) {
	b.Helper()
	ranked = b.fleet(4, dispatch.Options{}, nothing)
	knows := b.dispatcher(dispatch.Options{})
	knows.Handle("new", nothing)
	b.ok(knows.Start(b.Context()))
	time.Sleep(time.Minute)
	return ranked
}
