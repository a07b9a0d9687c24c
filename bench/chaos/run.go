package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/bench/chaos/servers"
	"github.com/dispatchkit/dispatch/redisstore"
)

// Run is what one run of a scenario has at hand. Its methods may be called from several goroutines, Rand from one.
type Run struct {
	// Rand is seeded by the seed and the scenario's name. Use it for all that is random, so that a seed can be replayed.
	Rand *rand.Rand
	// Quick asks for the short form, of about 10 s.
	Quick bool
	// Length is how long a scenario should go on whose length is arbitrary.
	Length time.Duration
	// Set is the servers. Each node has a proxy in front of it: Set.Nodes[0].Proxy() cuts, delays and loses.
	Set *servers.Set
	// Log is the ledger of this process, named "main". What Client is asked to do is in it already.
	Log *audit.Log

	dir      string
	topology Topology
	bound    Bound
	store    *redisstore.Store
	client   *Client

	complaints *slog.Logger // of this process

	mu        sync.Mutex
	processes []*Process
	closers   []func()
	named     map[string]int // processes by role, for their names
	snap      *audit.Snap    // by Drain
	recovery  time.Duration
	recovered bool
	allowed   int
	windows   []window
}

// Dir is the directory of the run, kept when it fails. The ledger is in its own directory within.
func (r *Run) Dir() string { return r.dir }

// Pick returns quick in the quick form and long in the long one.
func Pick[T any](r *Run, quick, long T) T {
	if r.Quick {
		return quick
	}
	return long
}

// Client is a client in this process, through the proxies, whose calls are written to the ledger.
func (r *Run) Client() *Client { return r.client }

// Store is the store of Client, for what only that can do.
func (r *Run) Store() *redisstore.Store { return r.store }

// Fault writes that something was broken, or mended. The names that the checker knows are those of audit.Event.Fault; target is
// the name of a process or the address of a node. The methods of Process write theirs themselves.
func (r *Run) Fault(name, target string) {
	r.Log.Append(audit.Event{Kind: audit.KindFault, Fault: name, Target: target})
}

// Note writes a remark, for those who read the ledger of a failed run.
func (r *Run) Note(format string, args ...any) {
	r.Log.Append(audit.Event{Kind: audit.KindNote, Text: fmt.Sprintf(format, args...)})
}

// Allow raises the bound of duplicates by n, for those that are known when a fault is made, such as what a killed worker held.
func (r *Run) Allow(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allowed += n
}

// Allowed is the sum of all Allow, and fits Bound.Duplicates.
func (r *Run) Allowed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.allowed
}

// Raw is a client of the servers without proxy and without the product. The caller closes it. After a failover it is one of the
// new primary; nodes of a cluster redirect it to their proxies.
func (r *Run) Raw() (redis.UniversalClient, error) {
	if r.topology == Cluster {
		var addrs []string
		for _, n := range r.Set.Nodes {
			addrs = append(addrs, n.Addr())
		}
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs}), nil
	}
	o, err := redis.ParseURL(r.Set.DirectURL())
	if err != nil {
		return nil, err
	}
	return redis.NewClient(o), nil
}

// Sleep waits and says whether ctx still runs.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Until asks, several times a second, until the answer is yes or an error. When that takes longer than limit it is an error that
// says what was waited for.
func Until(ctx context.Context, limit time.Duration, what string, ask func() (bool, error)) error {
	const every = 20 * time.Millisecond
	for deadline := time.Now().Add(limit); ; {
		done, err := ask()
		if err != nil {
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
		switch {
		case done:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("not within %v: %s", limit, what)
		case !Sleep(ctx, every):
			return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		}
	}
}
