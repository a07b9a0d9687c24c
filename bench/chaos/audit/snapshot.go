package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Snap is what Redis holds of a store at one time.
type Snap struct {
	// Keys are all keys, without prefix, in order.
	Keys []string
	// Finals is where each task stands, and of names that are taken without a task what the tombstone says.
	Finals map[TaskKey]Final
	// Broken is what contradicts itself, a sentence each.
	Broken []string
}

// The places where a task can be.
const (
	StateDue       = "due"
	StateLeased    = "leased"
	StateDone      = "done"
	StateDead      = "dead"
	StateCancelled = "cancelled"
	StatePurged    = "purged"    // it waits for a purge to remove it
	StateTombstone = "tombstone" // it has ended, and its name is still taken
)

// Final is where a task stands, as Redis has it.
type Final struct {
	State string
	// Attempts is how many were counted.
	Attempts int
	// Token is that of the lease, of a leased task, or else of the last attempt that was recorded; 0 is none.
	Token int64
	// Result is what the task has left.
	Result []byte
	// At is the score: when the task is due, when its lease ends, or when what is kept is to go, in ms of the server's clock.
	At int64
}

// Live counts the tasks that wait or run.
func (s *Snap) Live() int {
	n := 0
	for _, f := range s.Finals {
		if f.State == StateDue || f.State == StateLeased {
			n++
		}
	}
	return n
}

// Snapshot reads what Redis holds under a prefix. Each queue is read at one instant, but not all of them at the same, so that the
// whole is exact while nothing writes there. It reads all tasks, and holds the server up for that.
func Snapshot(ctx context.Context, client redis.UniversalClient, prefix string) (*Snap, error) {
	keys, err := scan(ctx, client, prefix+":")
	if err != nil {
		return nil, err
	}
	s := &Snap{Keys: keys, Finals: make(map[TaskKey]Final)}
	listed, err := client.SMembers(ctx, prefix+":{~}:queues").Result()
	if err != nil {
		return nil, err
	}
	queues := make(map[string]bool)
	for _, key := range keys {
		if queue, ok := queueOf(key); ok && queue != "~" {
			queues[queue] = true
		}
	}
	for queue := range queues {
		q, err := readQueue(ctx, client, prefix, queue)
		if err != nil {
			return nil, fmt.Errorf("audit: queue %s: %w", queue, err)
		}
		q.tell(s)
		if len(q.meta) > 0 && !slices.Contains(listed, queue) {
			q.broken(s, "it is not listed")
		}
	}
	err = s.checkExpiries(ctx, client, prefix)
	slices.Sort(s.Broken)
	return s, err
}

// scan lists the keys under a prefix, on all masters of a cluster, without the prefix and in order.
func scan(ctx context.Context, client redis.UniversalClient, prefix string) ([]string, error) {
	var mu sync.Mutex
	var keys []string
	node := func(ctx context.Context, c redis.Cmdable) error {
		it := c.Scan(ctx, 0, prefix+"*", 1000).Iterator()
		for it.Next(ctx) {
			mu.Lock()
			keys = append(keys, strings.TrimPrefix(it.Val(), prefix))
			mu.Unlock()
		}
		return it.Err()
	}
	var err error
	if cluster, ok := client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return node(ctx, c) })
	} else {
		err = node(ctx, client)
	}
	slices.Sort(keys)
	return slices.Compact(keys), err // a scan may tell of a key twice, and so do two nodes while a slot moves
}

// queueOf is what stands in the braces that a key begins with.
func queueOf(key string) (string, bool) {
	rest, ok := strings.CutPrefix(key, "{")
	if !ok {
		return "", false
	}
	queue, _, ok := strings.Cut(rest, "}:")
	return queue, ok
}

// passing are the keys that must have a time to live, by what stands behind the braces.
var passing = []string{"stored:", "claimed:", "settled:", "worker:"}

// checkExpiries finds keys that were to go by themselves and never will.
func (s *Snap) checkExpiries(ctx context.Context, client redis.UniversalClient, prefix string) error {
	ttls := make(map[string]*redis.DurationCmd)
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range s.Keys {
			_, rest, _ := strings.Cut(key, "}:")
			if slices.ContainsFunc(passing, func(p string) bool { return strings.HasPrefix(rest, p) }) {
				ttls[key] = p.PTTL(ctx, prefix+":"+key)
			}
		}
		return nil
	})
	for key, ttl := range ttls {
		if ttl.Err() == nil && ttl.Val() == -1 {
			s.Broken = append(s.Broken, fmt.Sprintf("key %s never goes", key))
		}
	}
	return err
}
