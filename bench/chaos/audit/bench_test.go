package audit_test

import (
	"crypto/rand"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/internal/redistest"
	"github.com/dispatchkit/dispatch/redisstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Wrap(m)) }

var quiet = slog.New(slog.DiscardHandler)

// bench is a store of the product, and a client that looks at its keys.
type bench struct {
	t      *testing.T
	raw    redis.UniversalClient
	store  *redisstore.Store
	prefix string
	seq    int64
}

func newBench(t *testing.T, backend redistest.Backend) *bench {
	t.Helper()
	server := redistest.Shared(t, backend)
	raw := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: server.Addrs, IsClusterMode: backend == redistest.Masters, MaxRetries: -1,
	})
	b := &bench{t: t, raw: raw, prefix: "t" + rand.Text()}
	var err error
	b.store, err = redisstore.Open(t.Context(), server.URL(), redisstore.Options{Prefix: b.prefix, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.store.Close()
		raw.Close()
	})
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// enqueue stores tasks that are due at once.
func (b *bench) enqueue(queue string, ids ...string) {
	b.t.Helper()
	var tasks []dispatch.Submission
	for _, id := range ids {
		t := dispatch.Task{ID: dispatch.TaskID(id), Queue: queue, Kind: "k", Timeout: time.Minute}
		tasks = append(tasks, dispatch.Submission{Task: t, Named: true, Nonce: 1})
	}
	_, err := b.store.Enqueue(b.t.Context(), queue, tasks, dispatch.EnqueueOptions{})
	b.must(err)
}

// lease claims all that is due.
func (b *bench) lease(queue string) []dispatch.Leased {
	b.t.Helper()
	b.seq++
	reply, err := b.store.Claim(b.t.Context(), dispatch.ClaimRequest{
		Queue: queue, Worker: "w", Seq: b.seq, Budget: 100, Grace: time.Second,
	})
	b.must(err)
	return reply.Leased
}

// settle ends the attempt at a task.
func (b *bench) settle(l *dispatch.Leased, outcome dispatch.Outcome, after time.Duration, result string) {
	b.t.Helper()
	s := dispatch.Settlement{ID: l.Task.ID, Lease: l.Lease, Outcome: outcome, After: after, Tombstone: time.Hour}
	if outcome != dispatch.Released {
		p := l.Progress
		p.Attempts++
		p.Result = []byte(result)
		record := dispatch.AttemptRecord{Number: p.Attempts, StartedAt: time.Now(), Worker: "w", Token: l.Lease.Token}
		p.History = append(slices.Clone(p.History), record)
		s.Progress = &p
	}
	b.seq++
	reply, err := b.store.Settle(b.t.Context(), dispatch.SettleRequest{
		Queue: l.Task.Queue, Worker: "w", Seq: b.seq, Items: []dispatch.Settlement{s},
	})
	b.must(err)
	if !reply.Applied[0] {
		b.t.Fatalf("%s of %s was not taken", outcome, l.Task.ID)
	}
}

func (b *bench) snapshot() *audit.Snap {
	b.t.Helper()
	s, err := audit.Snapshot(b.t.Context(), b.raw, b.prefix)
	b.must(err)
	return s
}

// fill puts a task into each place where one can be. All were tried twice but for those that are called fresh.
func (b *bench) fill(queue string) map[string]int64 {
	b.t.Helper()
	ids := []string{"due", "leased", "done", "dead", "cancelled", "gone"}
	b.enqueue(queue, ids...)
	for _, l := range b.lease(queue) {
		b.settle(&l, dispatch.Retry, 0, "")
	}
	tokens := map[string]int64{}
	for _, l := range b.lease(queue) {
		tokens[string(l.Task.ID)] = l.Lease.Token
		switch l.Task.ID {
		case "due":
			b.settle(&l, dispatch.Retry, time.Hour, "")
		case "done":
			b.settle(&l, dispatch.Succeeded, time.Hour, "result")
		case "gone":
			b.settle(&l, dispatch.Succeeded, 0, "")
		case "dead":
			b.settle(&l, dispatch.Dead, time.Hour, "")
		case "cancelled":
			_, err := b.store.CancelTask(b.t.Context(), queue, dispatch.Cancellation{ID: l.Task.ID, Lease: l.Lease, Retention: time.Hour})
			b.must(err)
		}
	}
	b.enqueue(queue, "leased-fresh")
	for _, l := range b.lease(queue) {
		tokens[string(l.Task.ID)] = l.Lease.Token
	}
	b.enqueue(queue, "due-fresh")
	return tokens
}
