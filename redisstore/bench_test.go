package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// benchCalls is how many calls of a script are made at once, between two looks at the server's statistics: so the server
// has no pause, after which everything takes it twice as long.
const benchCalls = 20

// BenchmarkScripts is a task's way through the store: what each script costs the server, in µs a task, for batches of
// several sizes, with 10,000 more tasks that are due.
func BenchmarkScripts(b *testing.B) {
	redistest.Require(b, redistest.Single)
	for _, batch := range []int{1, 10, 100, 150} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) { benchmarkScripts(b, batch) })
	}
}

func benchmarkScripts(b *testing.B, batch int) {
	s := newTestStore(b, dialReal(b, redistest.Single), Options{Prefix: "b" + rand.Text()}, "")
	made, payload := 0, make([]byte, 128)
	submissions := func() []dispatch.Submission {
		out := make([]dispatch.Submission, batch)
		for i := range out {
			out[i] = task(fmt.Sprintf("%020d", made))
			out[i].Payload = payload
			made++
		}
		return out
	}
	store := func(tasks []dispatch.Submission) {
		if _, err := s.Enqueue(b.Context(), mail, tasks, dispatch.EnqueueOptions{}); err != nil {
			b.Error(err)
		}
	}
	for made < 10_000 {
		store(submissions())
	}
	spent := make(map[string]float64)
	phase := func(name string, call func(i int)) {
		before := scriptMicros(b, s.client)
		var calls sync.WaitGroup
		for i := range benchCalls {
			calls.Go(func() { call(i) })
		}
		calls.Wait()
		spent[name] += scriptMicros(b, s.client) - before
	}
	var workers [benchCalls]cluster.WorkerID
	for i := range workers {
		workers[i] = cluster.WorkerID(fmt.Sprintf("w-%d", i))
	}
	var tasks [benchCalls][]dispatch.Submission
	var leased [benchCalls][]dispatch.Settlement
	seq := int64(0)
	for b.Loop() {
		seq++
		for i := range tasks {
			tasks[i] = submissions()
		}
		phase("enqueue", func(i int) { store(tasks[i]) })
		phase("claim", func(i int) {
			r, err := s.Claim(b.Context(), claimRequest(workers[i], seq, batch))
			if err != nil || len(r.Leased) != batch {
				b.Errorf("claim: %v, %v", r, err)
				return
			}
			leased[i] = leased[i][:0]
			for _, l := range r.Leased {
				leased[i] = append(leased[i], dispatch.Settlement{ID: l.Task.ID, Lease: l.Lease, Outcome: dispatch.Succeeded})
			}
		})
		phase("settle", func(i int) {
			_, err := s.Settle(b.Context(), dispatch.SettleRequest{Queue: mail, Worker: workers[i], Seq: seq, Items: leased[i]})
			if err != nil {
				b.Error(err)
			}
		})
	}
	b.ReportMetric(0, "ns/op") // the statistics take their time
	for name, micros := range spent {
		b.ReportMetric(micros/float64(b.N*benchCalls*batch), name+"-µs/task")
	}
}

// scriptMicros is how many µs the server has spent on scripts.
func scriptMicros(b *testing.B, client redis.UniversalClient) (micros float64) {
	stats, err := client.InfoMap(context.Background(), "commandstats").Result()
	ok(b, err)
	for _, name := range []string{"cmdstat_eval", "cmdstat_evalsha"} {
		if _, rest, found := strings.Cut(stats["Commandstats"][name], "usec="); found {
			text, _, _ := strings.Cut(rest, ",")
			n, err := strconv.ParseFloat(text, 64)
			ok(b, err)
			micros += n
		}
	}
	return micros
}
