package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// clientOf makes a client of a server, on a connection pool of its own.
func clientOf(t testing.TB, url string, d dispatch.Durability) *dispatch.Client {
	t.Helper()
	s, err := Open(t.Context(), url, Options{Logger: quiet})
	ok(t, err)
	t.Cleanup(func() { s.Close() })
	c, err := dispatch.NewClient(s, dispatch.ClientOptions{Logger: quiet, Durability: d})
	ok(t, err)
	return c
}

// How long a test waits for a replica that is there, on a machine that is busy, and for one that is not.
var (
	oneReplica = dispatch.Durability{Replicas: 1, Timeout: 2 * time.Second}
	oneBriefly = dispatch.Durability{Replicas: 1, Timeout: 200 * time.Millisecond}
)

func job(queue string) dispatch.Task { return dispatch.Task{Kind: "job", Queue: queue} }

// requireReplicated enqueues again under an ID until the answer is that of a task that replicas have.
func requireReplicated(t *testing.T, c *dispatch.Client, again dispatch.Task) {
	t.Helper()
	eventually(t, "a task that replicas have", func() bool {
		_, err := c.Enqueue(t.Context(), again)
		return errors.Is(err, dispatch.ErrDuplicateTask)
	})
}

func TestReplicasOfARealServer(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *redistest.Server{
		"single": func(t testing.TB) *redistest.Server { return redistest.Start(t) },
		"strict": redistest.StartStrictCluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := start(t)
			replica := redistest.StartReplica(t, primary)
			plain, durable := clientOf(t, primary.URL(), dispatch.Durability{}), clientOf(t, primary.URL(), oneReplica)
			hasty, other := clientOf(t, primary.URL(), oneBriefly), clientOf(t, primary.URL(), oneBriefly)

			for range 50 { // it has them at once, or one of fifty would be late
				id, err := durable.Enqueue(t.Context(), job(mail))
				ok(t, err)
				requireOnReplica(t, replica, id)
			}

			ok(t, replica.Pause())
			began := time.Now()
			id, err := hasty.Enqueue(t.Context(), job(mail))
			requireErr(t, err, dispatch.ErrNotReplicated)
			if took := time.Since(began); took < oneBriefly.Timeout || took > oneBriefly.Timeout+3*time.Second {
				t.Errorf("took %v", took)
			}
			again := job(mail)
			again.ID = id
			for _, c := range []*dispatch.Client{hasty, other} { // other connections, and scripts that store nothing
				_, err = c.Enqueue(t.Context(), again)
				requireErr(t, err, dispatch.ErrNotReplicated)
			}
			results, err := hasty.EnqueueMany(t.Context(), []dispatch.Task{job(mail), job(mail)})
			ok(t, err)
			for _, r := range results {
				requireErr(t, r.Err, dispatch.ErrNotReplicated)
			}
			requireErr(t, hasty.CancelTask(t.Context(), mail, results[0].ID), dispatch.ErrNotReplicated)
			if _, err := plain.Enqueue(t.Context(), job(mail)); err != nil {
				t.Errorf("a client without Durability: %v", err)
			}

			ok(t, replica.Resume())
			requireReplicated(t, other, again)
			ok(t, durable.CancelTask(t.Context(), mail, results[0].ID))
			requireOnReplica(t, replica, id)
		})
	}
}

// requireOnReplica demands that a replica has a task now.
func requireOnReplica(t *testing.T, replica *redistest.Server, id dispatch.TaskID) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: replica.Addr()})
	defer client.Close()
	pipe := client.Pipeline()
	pipe.ReadOnly(t.Context()) // in a cluster it would send everybody to its master
	found := pipe.HExists(t.Context(), "dispatch:{mail}:tasks", string(id))
	pipe.Exec(t.Context())
	if !found.Val() {
		t.Fatalf("the replica has no task %s: %v", id, found.Err())
	}
}

// What mark writes reaches the replicas, on a full server too, and is gone.
func TestMarkIsWritten(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	redistest.StartReplica(t, server)
	text := loadScripts("").mark.source
	for _, memory := range []string{"0", "1mb"} { // no limit, and less than an empty server has
		_, err := server.Command("CONFIG", "SET", "maxmemory", memory)
		ok(t, err)
		before := replicated(t, server)
		_, err = server.Command("EVAL", text, "1", "{q}:mark")
		ok(t, err)
		if after := replicated(t, server); after <= before {
			t.Errorf("maxmemory %s: the offset is %d, and was %d", memory, after, before)
		}
	}
	if n, err := server.Command("DBSIZE"); err != nil || n != "0" {
		t.Errorf("%s keys are left, %v", n, err)
	}
}

// replicated is how many bytes a primary has sent to its replicas.
func replicated(t *testing.T, server *redistest.Server) int {
	t.Helper()
	info, err := server.Command("INFO", "replication")
	ok(t, err)
	n, err := strconv.Atoi(infoField(info, "master_repl_offset"))
	ok(t, err)
	return n
}

// A task that was acknowledged is there after a failover, whatever the replica was doing when the primary died.
func TestAcknowledgedTasksSurviveAFailover(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(t *testing.T, primary, replica *redistest.Server){
		"killed": func(t *testing.T, primary, replica *redistest.Server) {
			primary.Kill()
			_, err := replica.Command("REPLICAOF", "NO", "ONE")
			ok(t, err)
		},
		"promoted while the old one lives": func(t *testing.T, primary, replica *redistest.Server) {
			_, err := replica.Command("REPLICAOF", "NO", "ONE")
			ok(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := redistest.Start(t)
			replica := redistest.StartReplica(t, primary)
			client := clientOf(t, primary.URL(), oneReplica)
			var mu sync.Mutex
			var acked []dispatch.TaskID
			var writers sync.WaitGroup
			failing := make(chan struct{})
			for i := range 4 {
				writers.Go(func() {
					queue := fmt.Sprint("q", i)
					for {
						ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Second)
						id, err := client.Enqueue(ctx, job(queue))
						cancel()
						if err != nil {
							return // the primary has died, or it has no replica any more
						}
						mu.Lock()
						acked = append(acked, id)
						n := len(acked)
						mu.Unlock()
						switch n {
						case 300:
							close(failing)
						case 3000: // it goes on without a replica
							t.Error("tasks are acknowledged that no replica has")
							primary.Kill()
						}
					}
				})
			}
			<-failing
			fail(t, primary, replica)
			writers.Wait()
			primary.Kill()

			after := clientOf(t, replica.URL(), dispatch.Durability{})
			found := make(map[dispatch.TaskID]bool)
			for q := range after.Queues(t.Context()) {
				for task, err := range after.Tasks(t.Context(), q.Name, dispatch.Filter{}) {
					ok(t, err)
					found[task.ID] = true
				}
			}
			lost := 0
			for _, id := range acked {
				if !found[id] {
					lost++
				}
			}
			if lost > 0 {
				t.Errorf("%d of %d acknowledged tasks are lost", lost, len(acked))
			}
		})
	}
}

// In a cluster each queue waits for the replicas of its own master, and what was acknowledged is there after its failover.
func TestReplicasOfACluster(t *testing.T) {
	t.Parallel()
	masters := redistest.StartMasters(t, 3)
	var replicas []*redistest.Server
	for i := range masters.Addrs {
		replicas = append(replicas, redistest.StartReplica(t, masters.Node(i)))
	}
	client, again := clientOf(t, masters.URL(), oneReplica), clientOf(t, masters.URL(), oneBriefly)
	queues := queuesOf(t, masters)
	acked := make(map[string][]dispatch.TaskID)
	store := func(queue string) {
		t.Helper()
		id, err := client.Enqueue(t.Context(), job(queue))
		ok(t, err)
		acked[queue] = append(acked[queue], id)
	}
	for _, queue := range queues {
		for range 20 {
			store(queue)
		}
	}

	ok(t, replicas[0].Pause())
	id, err := again.Enqueue(t.Context(), job(queues[0]))
	requireErr(t, err, dispatch.ErrNotReplicated)
	repeated := job(queues[0])
	repeated.ID = id
	_, err = again.Enqueue(t.Context(), repeated) // the script stores nothing
	requireErr(t, err, dispatch.ErrNotReplicated)
	store(queues[1])
	store(queues[2])
	ok(t, replicas[0].Resume())
	requireReplicated(t, again, repeated)
	acked[queues[0]] = append(acked[queues[0]], id)

	masters.Node(0).Kill()
	eventually(t, "the replica as master", func() bool {
		_, err := again.Counts(t.Context(), queues[0])
		return err == nil
	})
	_, err = again.Enqueue(t.Context(), job(queues[0]))
	requireErr(t, err, dispatch.ErrNotReplicated) // it has no replica of its own
	for queue, ids := range acked {
		for _, id := range ids {
			if _, err := again.Task(t.Context(), queue, id); err != nil {
				t.Errorf("task %s of %s: %v", id, queue, err)
			}
		}
	}
}

// queuesOf names a queue of each master.
func queuesOf(t *testing.T, masters *redistest.Server) []string {
	t.Helper()
	queues := make([]string, len(masters.Addrs))
	for i := 0; slices.Contains(queues, ""); i++ {
		queue := fmt.Sprint("q", i)
		for n := range masters.Addrs {
			if _, err := masters.Node(n).Command("EXISTS", "dispatch:{"+queue+"}:due"); err == nil {
				queues[n] = queue
			}
		}
	}
	return queues
}
