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
	"github.com/dispatchkit/dispatch/redisstore"
)

// nothing is a handler that succeeds.
var nothing = dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { return nil })

// ghost is a worker that has registered, leased tasks of a queue for an hour, and is never heard of again.
func (b *bubble) ghost(id cluster.WorkerID, queue string, tasks int) []dispatch.Leased {
	b.Helper()
	c := b.client(dispatch.ClientOptions{})
	for range tasks {
		_, err := c.Enqueue(b.Context(), dispatch.Task{Queue: queue, Kind: "k", Timeout: time.Hour})
		b.ok(err)
	}
	register(b, b.redis, cluster.Worker{ID: id, Concurrency: 9})
	var leased []dispatch.Leased
	for seq := int64(1); len(leased) < tasks; seq++ {
		r, err := b.redis.Claim(b.Context(), dispatch.ClaimRequest{Queue: queue, Worker: id, Seq: seq, Budget: 100, Grace: time.Second})
		b.ok(err)
		leased = append(leased, r.Leased...)
	}
	return leased
}

// settles demands that the leases of ghosts are settled within the time that reaping takes.
func (b *bubble) settles(tasks int, within time.Duration) {
	b.Helper()
	for began := time.Now(); b.seen.count(dispatch.Retry) < tasks; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > within {
			b.Fatalf("after %v %d leases of %d are settled", within, b.seen.count(dispatch.Retry), tasks)
		}
	}
}

func (b *bubble) worker(id cluster.WorkerID) *cluster.Worker {
	b.Helper()
	w, err := b.redis.GetWorker(b.Context(), id)
	b.ok(err)
	return w
}

// What a worker held that is silent for StaleJobThreshold is settled as lost within a SweepInterval, as an attempt that
// counts, by a leader that does not serve the queue itself.
func TestDeadWorkerIsReaped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		const tasks = 250
		b.ghost("w-ghost", "q", tasks)
		began := time.Now()
		d := b.dispatcher(dispatch.Options{Queues: []string{"other"}})
		b.ok(d.Start(t.Context()))
		for b.seen.count(dispatch.Retry) < tasks {
			if time.Since(began) > time.Minute {
				t.Fatalf("%d leases are settled after a minute", b.seen.count(dispatch.Retry))
			}
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took < 30*time.Second || took > 36*time.Second {
			t.Errorf("the leases were settled after %v", took)
		}
		if w := b.worker("w-ghost"); w.State != cluster.StateDead {
			t.Errorf("the worker is %s", w.State)
		}
		for _, e := range b.seen.list() {
			if e.Attempt.ErrorKind != dispatch.KindLeaseLost || e.Attempt.Worker != "w-ghost" || e.Attempt.Number != 1 {
				t.Fatalf("the attempt is %+v", e.Attempt)
			}
		}
		time.Sleep(time.Minute)
		if n := b.seen.count(dispatch.Retry); n != tasks {
			t.Errorf("%d leases were settled, want %d", n, tasks)
		}
		b.ok(b.redis.CheckInvariants(t.Context(), "q"))
	})
}

// A worker that comes back while its leases are given away keeps the rest.
func TestReapingSparesTheLiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.ghost("w-ghost", "q", 3)
		b.store.onCall("HeldLeases", func(_ context.Context, do func() error) error {
			register(b, b.redis, cluster.Worker{ID: "w-ghost"})
			return do()
		})
		d := b.dispatcher(dispatch.Options{})
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		if n := len(b.seen.list()); n != 0 {
			t.Errorf("%d leases were settled of a worker that lives", n)
		}
		if b.store.count("HeldLeases") == 0 {
			t.Error("nothing was looked for, which proves nothing")
		}
	})
}

// An outage of the registry kills nobody: a leader that could not beat itself does not judge others by their silence.
func TestOutageKillsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		var all []*dispatch.Dispatcher
		for range 3 {
			d := b.dispatcher(dispatch.Options{})
			d.Handle("k", nothing)
			b.ok(d.Start(t.Context()))
			all = append(all, d)
		}
		time.Sleep(2 * time.Minute)
		b.store.on(func(context.Context, string, func() error) error { return errors.New("outage") })
		time.Sleep(5 * time.Minute)
		b.store.on(nil)
		for range 60 {
			time.Sleep(time.Second)
			for _, d := range all {
				if w := b.worker(d.Worker()); w.State == cluster.StateDead {
					t.Fatalf("worker %s was marked dead after an outage", w.ID)
				}
			}
		}
		b.enqueue(all[0], dispatch.Task{Kind: "k"})
		time.Sleep(time.Second)
		if n := b.seen.count(dispatch.Succeeded); n != 1 {
			t.Errorf("%d tasks have run after the outage, want 1", n)
		}
	})
}

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
		for i := range 10 {
			before := b.store.count("Claim")
			_, err := c.Enqueue(t.Context(), dispatch.Task{Queue: "q", Kind: "k"})
			b.ok(err)
			time.Sleep(30 * time.Second)
			if claims := b.store.count("Claim") - before; claims > 2 {
				t.Errorf("task %d cost %d claims", i, claims)
			}
			if n := b.seen.count(dispatch.Succeeded); n != i+1 {
				t.Fatalf("%d tasks have run, want %d", n, i+1)
			}
		}
	})
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
		b.fleet(5, dispatch.Options{GlobalConcurrency: 2}, dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error {
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
func TestNobodyLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		o := dispatch.Options{Leader: newElector()} // that nobody elects
		b.flows(b.fleet(3, o, nothing)[0])
	})
}

// A plan of workers that are gone keeps no task waiting.
func TestStalePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		term, err := b.redis.BeginTerm(t.Context(), "w-gone")
		b.ok(err)
		b.ok(b.redis.PublishPlan(t.Context(), &cluster.Plan{Term: term, Workers: []cluster.PlanWorker{
			{ID: "w-gone", Concurrency: 64}, {ID: "w-too", Concurrency: 64}}}))
		b.flows(b.fleet(3, dispatch.Options{Leader: newElector()}, nothing)[0])
	})
}

// flows demands that tasks of several queues run within a second.
func (b *bubble) flows(d *dispatch.Dispatcher) {
	b.Helper()
	for i, queue := range []string{"a", "b", "c", "d", "e", "f"} {
		before := b.seen.count(dispatch.Succeeded)
		b.enqueue(d, dispatch.Task{Queue: queue, Kind: "k"})
		time.Sleep(time.Second)
		if b.seen.count(dispatch.Succeeded) != before+1 {
			b.Errorf("task %d does not run within a second", i)
		}
	}
}

// A kind that the home of its queue does not know runs on the one process that does.
func TestHomeWithoutHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		ranked := b.fleet(4, dispatch.Options{}, nothing)
		knows := b.dispatcher(dispatch.Options{})
		knows.Handle("new", nothing)
		b.ok(knows.Start(t.Context()))
		time.Sleep(time.Minute)
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
func TestDrainingWorkerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{Queues: []string{"other"}})
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		b.ghost("w-ghost", "q", 3)
		register(b, b.redis, cluster.Worker{ID: "w-ghost", State: cluster.StateDraining})
		b.settles(3, 65*time.Second) // the leader has to find it first
	})
}

// What a failure left of a dead worker's leases is settled later, and what another leader has marked dead too.
func TestReapingIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.ghost("w-ghost", "q", 250)
		failures := 3
		b.store.onCall("Settle", func(_ context.Context, do func() error) error {
			if failures--; failures >= 0 {
				return errDown
			}
			return do()
		})
		d := b.dispatcher(dispatch.Options{Queues: []string{"other"}})
		b.ok(d.Start(t.Context()))
		b.settles(250, 90*time.Second)
		b.ghost("w-second", "q2", 3)
		time.Sleep(31 * time.Second)
		_, err := b.redis.ReapDeadWorkers(t.Context(), 30*time.Second) // by a leader that dies before it does more
		b.ok(err)
		b.settles(253, time.Minute)
	})
}

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
func TestLeadersPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		gate := make(chan struct{})
		var all []*dispatch.Dispatcher
		for range 4 {
			d := b.dispatcher(dispatch.Options{GlobalConcurrency: 2, Leader: b.redis.Elector(redisstore.ElectorOptions{})})
			d.Handle("k", nothing)
			d.Handle("wait", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { <-gate; return nil }))
			b.ok(d.Start(t.Context()))
			all = append(all, d)
		}
		plan := func() *cluster.Plan {
			t.Helper()
			time.Sleep(20 * time.Second)
			p, err := b.redis.Plan(t.Context())
			b.ok(err)
			if p == nil {
				t.Fatal("there is no plan")
			}
			return p
		}
		if p := plan(); len(p.Workers) != 4 || len(p.Spread) != 0 {
			t.Errorf("the plan is %+v", p)
		}
		c := b.client(dispatch.ClientOptions{})
		for range 10 {
			before := b.store.count("Claim")
			_, err := c.Enqueue(t.Context(), dispatch.Task{Queue: "lone", Kind: "k"})
			b.ok(err)
			time.Sleep(20 * time.Second)
			if n := b.store.count("Claim") - before; n > 2 {
				t.Errorf("a lone task cost %d claims", n)
			}
		}
		var backlog []dispatch.Task
		for range 100 {
			backlog = append(backlog, dispatch.Task{Queue: "busy", Kind: "wait"})
		}
		_, err := c.EnqueueMany(t.Context(), backlog)
		b.ok(err)
		if p := plan(); p.Spread["busy"] != 4 {
			t.Errorf("the plan is %+v", p)
		}
		close(gate)
		if p := plan(); len(p.Spread) != 0 {
			t.Errorf("the plan is %+v", p)
		}
		b.ok(all[0].Stop())
		if p := plan(); len(p.Workers) != 3 {
			t.Errorf("the plan is %+v", p)
		}
	})
}

// No token of a queue with a rate is left unused while some of its homes are full.
func TestRateWithFullHomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		gate := make(chan struct{})
		for i := range 4 {
			o := dispatch.Options{GlobalConcurrency: 2, Leader: b.redis.Elector(redisstore.ElectorOptions{})}
			o.Queues = []string{"q", fmt.Sprint("own", i)}
			d := b.dispatcher(o)
			d.Handle("k", nothing)
			d.Handle("wait", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { <-gate; return nil }))
			b.ok(d.Start(t.Context()))
		}
		defer close(gate)
		c := b.client(dispatch.ClientOptions{})
		_, err := c.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Rate: 10, Burst: 2})
		b.ok(err)
		var tasks []dispatch.Task
		for range 1500 {
			tasks = append(tasks, dispatch.Task{Queue: "q", Kind: "k"})
		}
		for i := range 4 { // and two processes full
			tasks = append(tasks, dispatch.Task{Queue: fmt.Sprint("own", i%2), Kind: "wait"})
		}
		_, err = c.EnqueueMany(t.Context(), tasks)
		b.ok(err)
		time.Sleep(40 * time.Second) // the queue has four homes by now
		before := b.seen.count(dispatch.Succeeded)
		time.Sleep(50 * time.Second)
		if n := b.seen.count(dispatch.Succeeded) - before; n < 450 || n > 502 {
			t.Errorf("%d tasks in 50 s at 10 a second", n)
		}
	})
}

// Tasks of such a kind that come one behind the other do not wait for one another, and cost few claims.
func TestSeveralOnlyOneCanRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		ranked := b.fleet(4, dispatch.Options{}, nothing)
		knows := b.dispatcher(dispatch.Options{})
		knows.Handle("new", nothing)
		b.ok(knows.Start(t.Context()))
		time.Sleep(time.Minute)
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
func TestRateCostsFewClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.fleet(5, dispatch.Options{}, nothing)
		c := b.client(dispatch.ClientOptions{})
		_, err := c.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Rate: 20})
		b.ok(err)
		tasks := make([]dispatch.Task, 1500)
		for i := range tasks {
			tasks[i] = dispatch.Task{Queue: "q", Kind: "k"}
		}
		_, err = c.EnqueueMany(t.Context(), tasks)
		b.ok(err)
		time.Sleep(20 * time.Second)
		done, claims := b.seen.count(dispatch.Succeeded), b.store.count("Claim")
		time.Sleep(50 * time.Second)
		done, claims = b.seen.count(dispatch.Succeeded)-done, b.store.count("Claim")-claims
		if done < 970 || done > 1020 {
			t.Errorf("%d tasks in 50 s at 20 a second", done)
		}
		if claims > 3*done {
			t.Errorf("%d claims for %d tasks", claims, done)
		}
	})
}
