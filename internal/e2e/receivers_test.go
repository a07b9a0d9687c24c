package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
	"github.com/dispatchkit/dispatch/redisstore"
	"github.com/dispatchkit/dispatch/worker"
)

// Receivers do what they can to hold attempts up, hundreds at a time. Each attempt ends by its deadline and is recorded
// as what it was; a quiet queue beside them is served; and when it is over nothing is left: no goroutine, no connection
// and no memory.
func TestHostileReceivers(t *testing.T) {
	const atOnce = 500
	calls := 600
	if long {
		calls = 10_000
	}
	all := misdeeds()
	den := newDen(t, all)
	quiet := newQuietReceiver(t)
	url := redistest.Start(t).URL()
	before := takeFootprint()

	var most peak
	stopPeak := most.watch()
	d, done := serveHostile(t, url, dispatch.Options{GlobalConcurrency: atOnce*4/3 + 1, PerQueueClaimCap: 150, BreakerThreshold: -1})
	stopQuiet := quiet.keep(t, d.Client)
	begun := time.Now()
	ids := enqueueHostile(t, d.Client, den, all, calls)
	eventually(t, 5*time.Minute, "all attempts at hostile receivers have ended", func() bool { return done.ended.Load() >= int64(calls) })
	took := time.Since(begun)
	stopQuiet()
	quiet.requireAll(t)
	if err := d.Stop(); err != nil {
		t.Error(err)
	}
	stopPeak()
	for id, info := range readHostile(t, d.Client, ids) {
		ids[id].judge(t, info)
	}
	if n, err := d.Counts(t.Context(), "noisy"); err != nil || n.Ready+n.Scheduled+n.Running != 0 {
		t.Errorf("counts %+v, %v", n, err)
	}
	if n := done.shed.Load(); n != 0 {
		t.Errorf("%d attempts were shed, with the breaker off", n)
	}
	den.require(t, ids)
	done.close()
	after := before.require(t)
	t.Logf("%d calls to %d receivers in %.1f s, at most %d connections at once; most goroutines %d, most heap %.1f MiB",
		calls, len(all), took.Seconds(), den.most.Load(), most.goroutines, inMiB(most.heap))
	t.Logf("before and after: goroutines %d, %d; descriptors %d, %d; heap in use %.1f MiB, %.1f",
		before.goroutines, after.goroutines, before.descriptors, after.descriptors, inMiB(before.heap), inMiB(after.heap))
	quiet.report(t)
	for _, m := range all {
		t.Logf("%-22s %4d requests, at most %7d bytes into one connection", m.name, den.requests[m], den.sent[m])
	}
}

// With the breaker on, those that never answer are tried one at a time, and those that answer are never shed.
func TestHostileReceiversShed(t *testing.T) {
	t.Parallel()
	each := 10 // of which up to seven begin before it is known that their receiver does not answer
	if long {
		each = 40
	}
	all := misdeeds()
	den := newDen(t, all)
	begun := time.Now()
	d, done := serveHostile(t, redistest.Start(t).URL(), dispatch.Options{GlobalConcurrency: 8, BreakerThreshold: 2})
	ids := enqueueHostile(t, d.Client, den, all, each*len(all))
	eventually(t, 10*time.Minute, "all tasks have ended", func() bool { return done.ended.Load() >= int64(len(ids)) })
	took := time.Since(begun)
	if err := d.Stop(); err != nil {
		t.Error(err)
	}
	shed := map[*misdeed]int{}
	for id, info := range readHostile(t, d.Client, ids) {
		m := ids[id]
		m.judge(t, info)
		if info.Progress.History[0].ErrorKind == dispatch.KindShed {
			shed[m]++
		}
	}
	for _, m := range all {
		t.Logf("%-22s %3d of %d tasks shed at first", m.name, shed[m], each)
		if shed[m] > 0 && m.status > 0 && !m.late() {
			t.Errorf("%s: %d tasks were shed, although it answers", m.name, shed[m])
		}
	}
	if shed[all[0]] == 0 {
		t.Errorf("%s: no task was shed", all[0].name)
	}
	den.require(t, ids)
	t.Logf("%d tasks in %.1f s, %d times one was shed", len(ids), took.Seconds(), done.shed.Load())
}

// ending is what a dispatcher's attempts came to.
type ending struct {
	ended, shed atomic.Int64
	close       func() // closes the store
}

// serveHostile starts a dispatcher with a store of its own.
func serveHostile(t testing.TB, url string, o dispatch.Options) (*dispatch.Dispatcher, *ending) {
	t.Helper()
	store, err := redisstore.Open(t.Context(), url, redisstore.Options{Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	e := &ending{close: sync.OnceFunc(func() { store.Close() })}
	t.Cleanup(e.close)
	o.Logger, o.Egress, o.RetentionSucceeded = silent, worker.Egress{AllowPrivate: true}, time.Hour
	o.Observer = func(event dispatch.Event) {
		switch {
		case event.Attempt.ErrorKind == dispatch.KindShed:
			e.shed.Add(1)
		case event.Queue == "noisy" && (event.Outcome == dispatch.Dead || event.Outcome == dispatch.Succeeded):
			e.ended.Add(1)
		}
	}
	d, err := dispatch.New(store, o)
	if err != nil {
		t.Fatal(err)
	}
	// Three quarters of the places are one queue's, and it is to go on whatever its receivers do.
	if _, err := d.EnsureQueue(t.Context(), dispatch.Queue{Name: "noisy", NoThrottle: true}); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Stop() })
	return d, e
}

// enqueueHostile enqueues tasks with one attempt each, the receivers in turn.
func enqueueHostile(t testing.TB, client *dispatch.Client, den *den, all []*misdeed, calls int) map[dispatch.TaskID]*misdeed {
	t.Helper()
	tasks := make([]dispatch.Task, calls)
	for i := range tasks {
		m := all[i%len(all)]
		tasks[i] = dispatch.Task{
			Queue: "noisy", URL: den.urls[m], Timeout: m.timeout, Payload: []byte("payload"), Retry: &dispatch.RetryConfig{MaxAttempts: 1},
		}
	}
	results, err := client.EnqueueMany(t.Context(), tasks)
	if err != nil {
		t.Fatal(err)
	}
	ids := make(map[dispatch.TaskID]*misdeed, calls)
	for i, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		ids[r.ID] = all[i%len(all)]
	}
	return ids
}

// readHostile reads the tasks that enqueueHostile has enqueued.
func readHostile(t testing.TB, client *dispatch.Client, ids map[dispatch.TaskID]*misdeed) map[dispatch.TaskID]*dispatch.TaskInfo {
	t.Helper()
	infos := make(map[dispatch.TaskID]*dispatch.TaskInfo, len(ids))
	for id := range ids {
		info, err := client.Task(t.Context(), "noisy", id)
		if err != nil {
			t.Fatal(err)
		}
		infos[id] = info
	}
	return infos
}

// require demands that the receivers saw each call once, but for those of which the deadline may have come first, and
// that nobody listened to a receiver without end. What fits into the buffers of two sockets is on its way before anyone
// has read it.
func (d *den) require(t testing.TB, ids map[dispatch.TaskID]*misdeed) {
	t.Helper()
	eventually(t, 10*time.Second, "all connections to the receivers are closed", func() bool { return d.open.Load() == 0 })
	const buffers = 4 << 20
	d.mu.Lock()
	defer d.mu.Unlock()
	calls := map[*misdeed]int{}
	for _, m := range ids {
		calls[m]++
	}
	for m, want := range calls {
		if n := d.requests[m]; n > want || n < want && !m.late() || n == 0 {
			t.Errorf("%s: %d requests came of %d calls", m.name, n, want)
		}
		if d.sent[m] > buffers {
			t.Errorf("%s: %d bytes went into one connection", m.name, d.sent[m])
		}
	}
}

// quietReceiver answers at once, and remembers when tasks came.
type quietReceiver struct {
	url string

	mu             sync.Mutex
	asked, arrived map[string]time.Time
}

func newQuietReceiver(t testing.TB) *quietReceiver {
	q := &quietReceiver{asked: map[string]time.Time{}, arrived: map[string]time.Time{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		now := time.Now()
		q.mu.Lock()
		defer q.mu.Unlock()
		q.arrived[r.Header.Get(dispatch.HeaderTaskID)] = now
	}))
	t.Cleanup(server.Close)
	q.url = server.URL
	return q
}

// keep enqueues a task every few milliseconds until the function that it returns is called.
func (q *quietReceiver) keep(t testing.TB, client *dispatch.Client) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(4 * time.Millisecond)
		defer tick.Stop()
		for {
			asked := time.Now()
			id, err := client.Enqueue(t.Context(), dispatch.Task{Queue: "quiet", URL: q.url})
			if err != nil {
				t.Errorf("enqueue to the quiet queue: %v", err)
				return
			}
			q.mu.Lock()
			q.asked[string(id)] = asked
			q.mu.Unlock()
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// requireAll demands that every task arrives.
func (q *quietReceiver) requireAll(t testing.TB) {
	t.Helper()
	eventually(t, 30*time.Second, "all tasks of the quiet queue are delivered", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		for id := range q.asked {
			if q.arrived[id].IsZero() {
				return false
			}
		}
		return len(q.asked) > 0
	})
}

// report logs how long tasks took from the call of Enqueue to their arrival.
func (q *quietReceiver) report(t testing.TB) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var took []time.Duration
	for id, asked := range q.asked {
		took = append(took, q.arrived[id].Sub(asked))
	}
	slices.Sort(took)
	at := func(part float64) float64 { return inMillis(took[int(float64(len(took)-1)*part)]) }
	t.Logf("quiet queue meanwhile: %d tasks, all delivered; pick-up p50 %.1f ms, p99 %.1f, slowest %.1f",
		len(took), at(0.5), at(0.99), at(1))
}

// footprint is what a process holds.
type footprint struct {
	goroutines, descriptors int
	heap                    uint64 // in use, after a collection
}

func takeFootprint() footprint {
	f := footprint{goroutines: runtime.NumGoroutine()}
	if list, err := os.ReadDir("/proc/self/fd"); err == nil { // Linux
		f.descriptors = len(list)
	}
	runtime.GC()
	runtime.GC() // what pools hold is gone after two
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.heap = m.HeapInuse
	return f
}

// require waits until the process holds no more than before.
func (f footprint) require(t testing.TB) (now footprint) {
	t.Helper()
	const memory = 64 << 20
	if !within(20*time.Second, func() bool {
		now = takeFootprint()
		return now.goroutines <= f.goroutines && now.descriptors <= f.descriptors && now.heap <= f.heap+memory
	}) {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		t.Errorf("the process holds %+v, and held %+v before\n%s", now, f, firstLines(stacks, 200))
	}
	return now
}

func firstLines(text []byte, n int) string {
	lines := strings.SplitN(string(text), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// peak is the most that a process held for a while.
type peak struct {
	goroutines int
	heap       uint64
}

// watch looks until the function that it returns is called.
func (p *peak) watch() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			metrics.Read(sample)
			p.heap = max(p.heap, sample[0].Value.Uint64()+sample[1].Value.Uint64())
			p.goroutines = max(p.goroutines, runtime.NumGoroutine())
			select {
			case <-quit:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

func inMiB(bytes uint64) float64 { return float64(bytes) / (1 << 20) }
