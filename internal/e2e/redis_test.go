package e2e

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

var silent = slog.New(slog.DiscardHandler)

// openStore makes a store and a client of the test's own.
func openStore(t testing.TB, url string) (*redisstore.Store, *dispatch.Client) {
	t.Helper()
	store, err := redisstore.Open(t.Context(), url, redisstore.Options{Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	return store, client
}

// openRedis makes a client that reads what is behind the store's back.
func openRedis(t testing.TB, addrs ...string) redis.UniversalClient {
	t.Helper()
	c := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs, IsClusterMode: len(addrs) > 1})
	t.Cleanup(func() { c.Close() })
	return c
}

func key(queue, part string) string { return "dispatch:{" + queue + "}:" + part }

// leftovers says what is left of a queue's tasks, or nothing.
func leftovers(ctx context.Context, c redis.UniversalClient, queue string) string {
	var left []string
	for _, part := range []string{"due", "leased", "leases", "tasks", "state"} {
		var n int64
		var err error
		if part == "due" || part == "leased" {
			n, err = c.ZCard(ctx, key(queue, part)).Result()
		} else {
			n, err = c.HLen(ctx, key(queue, part)).Result()
		}
		if err != nil {
			left = append(left, err.Error())
		} else if n > 0 {
			left = append(left, fmt.Sprintf("%s %d", part, n))
		}
	}
	if left == nil {
		return ""
	}
	return queue + ": " + strings.Join(left, ", ")
}

// requireEmpty waits until nothing is left of the queues' tasks.
func requireEmpty(t testing.TB, limit time.Duration, c redis.UniversalClient, store *redisstore.Store, queues ...string) {
	t.Helper()
	var left string
	if !within(limit, func() bool {
		for _, q := range queues {
			if left = leftovers(t.Context(), c, q); left != "" {
				return false
			}
		}
		return true
	}) {
		t.Fatalf("after %v there is left %s", limit, left)
	}
	for _, q := range queues {
		if err := store.CheckInvariants(t.Context(), q); err != nil {
			t.Error(err)
		}
		if n, err := store.Counts(t.Context(), q); err != nil || n.Ready+n.Scheduled+n.Running+n.Dead != 0 {
			t.Errorf("queue %s counts %+v, %v", q, n, err)
		}
	}
}

// dump is everything that Redis holds of a queue, sorted. The memos of claims and settles expire and are left out.
func dump(t testing.TB, c redis.UniversalClient, queue string) string {
	t.Helper()
	ctx := t.Context()
	var out []string
	for _, part := range []string{"due", "leased", "done", "dead", "names"} {
		entries, err := c.ZRangeWithScores(ctx, key(queue, part), 0, -1).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			out = append(out, fmt.Sprintf("%s %v %.0f", part, e.Member, e.Score))
		}
	}
	for _, part := range []string{"leases", "tasks", "state", "meta"} {
		fields, err := c.HGetAll(ctx, key(queue, part)).Result()
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range fields {
			out = append(out, fmt.Sprintf("%s %s %q", part, k, v))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// heldBy is how many leases of a queue a worker holds.
func heldBy(t testing.TB, c redis.UniversalClient, queue, worker string) int {
	t.Helper()
	leases, err := c.HVals(t.Context(), key(queue, "leases")).Result()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, l := range leases {
		if f := strings.Fields(l); len(f) > 1 && f[1] == worker {
			n++
		}
	}
	return n
}

// monitor counts the commands that a server gets from clients for a while, by name. Commands of scripts do not count.
func monitor(t testing.TB, addr string, window time.Duration) map[string]int {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "MONITOR\r\n")
	conn.SetReadDeadline(time.Now().Add(window))
	counts := map[string]int{}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		// +1339518083.107412 [0 127.0.0.1:60866] "keys" "*"
		_, rest, ok := strings.Cut(lines.Text(), "] ")
		if !ok || strings.Contains(lines.Text(), " lua] ") {
			continue
		}
		name, _, _ := strings.Cut(rest, " ")
		counts[strings.ToLower(strings.Trim(name, `"`))]++
	}
	return counts
}

func workTask(queue string) dispatch.Task { return dispatch.Task{Queue: queue, Kind: "work"} }

// enqueueMany enqueues n tasks like t and returns their IDs.
func enqueueMany(t testing.TB, c *dispatch.Client, n int, task dispatch.Task) []string {
	t.Helper()
	tasks := make([]dispatch.Task, n)
	for i := range tasks {
		tasks[i] = task
	}
	results, err := c.EnqueueMany(t.Context(), tasks)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, n)
	for i, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		ids[i] = string(r.ID)
	}
	return ids
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
