package e2e

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// A lone task of an idle fleet costs the claims of few, and is there at once; a moment later if its home is hung. The
// product's own times are in force.
func TestLoneTask(t *testing.T) {
	t.Parallel()
	const processes = 5
	tasks := 10
	if long {
		tasks = 100
	}
	f := newFleet(t, settings{Behaviour: "sleep", Elector: elected}, processes)
	leader := f.leader(20 * time.Second)
	f.awaitPlan(20 * time.Second)
	lasts(time.Second) // all have read it
	plan, err := f.store.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	home := func(queue string) *process {
		i := slices.IndexFunc(f.procs, func(p *process) bool {
			return plan.Standing(queue, cluster.WorkerID(p.workerID())).Home()
		})
		return f.procs[i]
	}

	queue := func(i int) string { return fmt.Sprintf("queue-%d", i) }
	run := func(queue string) time.Duration {
		asked := time.Now()
		id := enqueueMany(t, f.client, 1, workTask(queue))[0]
		eventually(t, 15*time.Second, "the task has started", func() bool { return len(f.ledger.startsOf(id)) == 1 })
		return f.ledger.startsOf(id)[0].at.Sub(asked)
	}
	claims := countClaims(t, f.server.Addr())
	var quick []time.Duration
	var most int64
	by := map[*process]int{}
	for i := range tasks {
		before := claims.Load()
		quick = append(quick, run(queue(i)))
		lasts(200 * time.Millisecond) // others may look when it is over
		most = max(most, claims.Load()-before)
		by[home(queue(i))]++
	}
	total := claims.Load()
	// A process that reads the notes while the claim of a task is under way claims once more.
	if total < int64(tasks) || total > int64(2*tasks+2) {
		t.Errorf("%d lone tasks cost %d claims; 2 each, and now and then one more, are meant to do", tasks, total)
	}

	hung := f.procs[(slices.Index(f.procs, leader)+1)%processes]
	hung.signal(syscall.SIGSTOP)
	before := claims.Load()
	var stolen []time.Duration
	for i := 0; len(stolen) < tasks; i++ {
		if q := fmt.Sprintf("other-%d", i); home(q) == hung {
			stolen = append(stolen, run(q))
			if long {
				lasts(100 * time.Millisecond)
			}
		}
	}
	for _, d := range stolen {
		if d > time.Second {
			t.Errorf("a task whose home hangs started after %v", d)
		}
	}
	extra := claims.Load() - before
	hung.signal(syscall.SIGCONT)
	t.Logf("%d processes; %d lone tasks, at home with %d of them: %d claims, at most %d for one; pick-up: median %.1f ms, slowest %.1f",
		processes, tasks, len(by), total, most, inMillis(median(quick)), inMillis(slices.Max(quick)))
	t.Logf("with the home hung: %d tasks, %d claims; pick-up: median %.1f ms, slowest %.1f", len(stolen), extra,
		inMillis(median(stolen)), inMillis(slices.Max(stolen)))
}

// countClaims counts the claims that a server gets, until the test ends.
func countClaims(t testing.TB, addr string) *atomic.Int64 {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	fmt.Fprint(conn, "MONITOR\r\n")
	if !lines.Scan() {
		t.Fatalf("no answer to MONITOR: %v", lines.Err())
	}
	var n atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines.Scan() {
			text := strings.ToLower(lines.Text())
			if strings.Contains(text, `"evalsha" `) && strings.Contains(text, ":claimed:") && !strings.Contains(text, " lua] ") {
				n.Add(1)
			}
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return &n
}
