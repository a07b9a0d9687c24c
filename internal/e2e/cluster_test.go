package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
	"github.com/dispatchkit/dispatch/redisstore"
)

// clusterRig is a cluster of three masters with thirty queues, and a worker process for them.
type clusterRig struct {
	*testing.T
	server *redistest.Server
	raw    *redis.ClusterClient
	store  *redisstore.Store
	client *dispatch.Client
	ledger *ledger
	worker *process
	queues []string
}

const places = 16 // of the worker process

// A cluster that goes on serving the slots that it has, and whose masters find their data again.
func newClusterRig(t *testing.T) *clusterRig {
	t.Helper()
	redistest.Require(t, redistest.Masters)
	server, err := redistest.Launch(redistest.Config{
		Masters: 3, AOF: true, Args: []string{"--cluster-require-full-coverage", "no"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	r := &clusterRig{T: t, server: server, ledger: newLedger()}
	r.raw = openRedis(t, server.Addrs...).(*redis.ClusterClient)
	url := "redis://" + strings.Join(server.Addrs, ",")
	r.store, r.client = openStore(t, url)
	r.worker = spawn(t, r.ledger, settings{URL: url, Behaviour: "sleep", Work: 5 * time.Millisecond, Concurrency: places})
	for i := range 30 {
		r.queues = append(r.queues, fmt.Sprintf("queue-%d", i))
	}
	return r
}

// slot is a key's.
func (r *clusterRig) slot(key string) int64 {
	r.Helper()
	n, err := r.server.Command("CLUSTER", "KEYSLOT", key)
	if err != nil {
		r.Fatal(err)
	}
	slot, _ := strconv.ParseInt(n, 10, 64)
	return slot
}

// owner is the node that serves a key, as an index of the server's addresses.
func (r *clusterRig) owner(key string) int {
	r.Helper()
	return r.ownerOf(r.slot(key))
}

// split parts the queues into those of one node and the others.
func (r *clusterRig) split(node int) (own, others []string) {
	for _, q := range r.queues {
		if r.owner(key(q, "due")) == node {
			own = append(own, q)
		} else {
			others = append(others, q)
		}
	}
	return own, others
}

// requireKept checks that every promised task was run, and nothing is left.
func (r *clusterRig) requireKept(flows ...*flow) {
	r.Helper()
	var queues []string
	for _, f := range flows {
		f.end()
		queues = append(queues, f.queues...)
		promised := f.promised(time.Time{})
		if !within(20*time.Second, func() bool { return len(r.ledger.missing(promised)) == 0 }) {
			r.Errorf("%d of %d acknowledged tasks were never started", len(r.ledger.missing(promised)), len(promised))
		}
	}
	requireEmpty(r, 20*time.Second, r.raw, r.store, queues...)
}

// A master of a cluster is killed and comes back. Queues on the others go on meanwhile, all of them afterwards.
func TestClusterMasterDies(t *testing.T) {
	t.Parallel()
	r := newClusterRig(t)
	fleet := r.owner("dispatch:{~}:active")
	for _, tc := range []struct {
		name   string
		victim int
	}{
		{"of queues only", (fleet + 1) % 3},
		{"of the fleet's keys", fleet},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r.T = t
			own, others := r.split(tc.victim)
			hit, spared := startFlow(t, r.client, own...), startFlow(t, r.client, others...)
			eventually(t, 20*time.Second, "tasks flow on all queues", func() bool {
				return len(hit.delays(r.ledger, time.Time{}, time.Now())) == len(own) &&
					len(spared.delays(r.ledger, time.Time{}, time.Now())) == len(others)
			})
			goroutines := r.worker.countGoroutines()
			calm := time.Now()
			lasts(time.Second)

			// One of the queues that are hit has all places of the process when it happens.
			task := workTask(own[0])
			task.Payload = []byte("400ms")
			backlog := enqueueMany(t, r.client, 4*places, task)
			eventually(t, 20*time.Second, "the process works on the backlog", func() bool {
				return len(r.ledger.missing(backlog)) < len(backlog)-places
			})
			killed := time.Now()
			r.server.Node(tc.victim).Kill()
			lasts(4 * time.Second)
			back := time.Now()
			if err := r.server.Node(tc.victim).Restart(); err != nil {
				t.Fatal(err)
			}
			serves := time.Now()
			var recovered time.Duration
			eventually(t, 20*time.Second, "the queues of the node flow again", func() bool {
				recovered = hit.recovered(r.ledger, serves)
				return recovered > 0
			})
			lasts(time.Second)
			spared.end()
			r.requireKept(hit, spared)
			if missing := r.ledger.missing(backlog); len(missing) > 0 {
				t.Errorf("%d tasks of the backlog were never started", len(missing))
			}

			before, during := summary(spared.delays(r.ledger, calm, killed)), summary(spared.delays(r.ledger, killed, back))
			t.Logf("node %d down for %.1f s. %d spared queues, enqueue to start: before %v; meanwhile %v. %d hit queues flow again %d ms after the restart",
				tc.victim, back.Sub(killed).Seconds(), len(others), before, during, len(own), recovered.Milliseconds())
			errs, classes := spared.errors()
			hitErrs, hitClasses := hit.errors()
			t.Logf("calls that failed: on spared queues %d %s, on hit ones %d %s; %s; goroutines %d → %d", errs, classes,
				hitErrs, hitClasses, r.ledger.summary(), goroutines, r.worker.countGoroutines())
			if errs > 0 {
				t.Errorf("%d calls failed on queues of other nodes: %s", errs, classes)
			}
			// Without the fleet's keys the queues of other nodes work, and are found slowly: nobody can be told of them.
			if tc.victim != fleet && (during.queues != len(others) || during.median > time.Second) {
				t.Errorf("queues of other nodes did not go on: %v of %d", during, len(others))
			}
		})
	}
}

// delaySummary is what the delays of several queues come to.
type delaySummary struct {
	queues, tasks   int
	median, slowest time.Duration
}

func (s delaySummary) String() string {
	return fmt.Sprintf("%d tasks of %d queues, median %.1f ms, slowest %.0f ms",
		s.tasks, s.queues, inMillis(s.median), inMillis(s.slowest))
}

func summary(delays map[string][]time.Duration) delaySummary {
	var all []time.Duration
	for _, d := range delays {
		all = append(all, d...)
	}
	if len(all) == 0 {
		return delaySummary{}
	}
	return delaySummary{queues: len(delays), tasks: len(all), median: median(all), slowest: slices.Max(all)}
}

// The slot of a busy queue moves to another master, with everything in it. Nobody notices.
func TestClusterSlotMoves(t *testing.T) {
	t.Parallel()
	r := newClusterRig(t)
	hot := r.queues[0]
	task := workTask(hot)
	task.Delay, task.Payload = time.Second, make([]byte, 200)
	bulk := enqueueMany(t, r.client, 2000, task)
	f := startFlow(t, r.client, hot)
	eventually(t, 20*time.Second, "tasks flow", func() bool { return r.ledger.totalStarts() >= 100 })

	from := r.owner(key(hot, "due"))
	begun := time.Now()
	for range 2 {
		to := (r.owner(key(hot, "due")) + 1) % 3
		r.moveSlot(r.slot(key(hot, "due")), to, 300*time.Millisecond)
		lasts(300 * time.Millisecond)
	}
	took := time.Since(begun)
	if to := r.owner(key(hot, "due")); to != (from+2)%3 {
		t.Fatalf("the slot is on node %d, and began on %d", to, from)
	}
	lasts(500 * time.Millisecond)
	r.requireKept(f)
	if missing := r.ledger.missing(bulk); len(missing) > 0 {
		t.Errorf("%d of the tasks that were moved were never started", len(missing))
	}
	if errs, classes := f.errors(); errs > 0 {
		t.Errorf("%d calls failed: %s", errs, classes)
	}
	if n := len(r.ledger.duplicates()); n > 0 {
		t.Errorf("%d tasks ran twice", n)
	}
	t.Logf("2 moves in %.1f s; %d calls, none failed, slowest %d ms; %s",
		took.Seconds(), len(f.promised(time.Time{})), f.slowest.Milliseconds(), r.ledger.summary())
}

// moveSlot does what a reshard does, and pauses between two keys, when half of a queue's keys are on either node.
func (r *clusterRig) moveSlot(slot int64, to int, pause time.Duration) {
	r.Helper()
	number := strconv.FormatInt(slot, 10)
	ids := make([]string, len(r.server.Addrs))
	for i := range ids {
		ids[i] = r.on(i, "CLUSTER", "MYID")
	}
	from := r.ownerOf(slot)
	r.on(to, "CLUSTER", "SETSLOT", number, "IMPORTING", ids[from])
	r.on(from, "CLUSTER", "SETSLOT", number, "MIGRATING", ids[to])
	host, port, _ := strings.Cut(r.server.Addrs[to], ":")
	for n := 0; n < 200; n++ {
		found := r.on(from, "CLUSTER", "GETKEYSINSLOT", number, "1")
		if found == "" {
			break
		}
		r.on(from, "MIGRATE", host, port, found, "0", "5000")
		if n < 6 {
			lasts(pause)
		}
	}
	for _, i := range []int{to, from, 3 - to - from} {
		r.on(i, "CLUSTER", "SETSLOT", number, "NODE", ids[to])
	}
}

func (r *clusterRig) ownerOf(slot int64) int {
	r.Helper()
	//lint:ignore SA1019 its answer is the shorter one
	ranges, err := r.raw.ClusterSlots(r.Context()).Result()
	if err != nil {
		r.Fatal(err)
	}
	for _, s := range ranges {
		if int64(s.Start) <= slot && slot <= int64(s.End) {
			return slices.Index(r.server.Addrs, s.Nodes[0].Addr)
		}
	}
	r.Fatalf("nobody owns slot %d", slot)
	return -1
}

// on sends a command to one node.
func (r *clusterRig) on(node int, args ...string) string {
	r.Helper()
	got, err := r.server.Node(node).Command(args...)
	if err != nil {
		r.Fatalf("%v on node %d: %v", args, node, err)
	}
	return got
}
