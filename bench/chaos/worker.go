package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/faultproxy"
	"github.com/dispatchkit/dispatch/worker"
)

// WorkerConfig is what a worker process is. The zero value serves all queues with 32 places, takes part in the election of the
// leader, and has times that are short enough to wait for: a zero duration is not the product's default but that of its comment.
type WorkerConfig struct {
	// Queues are those it serves; empty means all. The queue of the probes of Run.Recovered comes along.
	Queues []string
	// Places is dispatch.Options.GlobalConcurrency; 0 means 32.
	Places int
	// LeaseGrace is 500 ms, Sweep 500 ms, Reconcile 1 s, Cleanup 1 s and Drain 10 s.
	LeaseGrace, Sweep, Reconcile, Cleanup, Drain time.Duration
	// Heartbeat is 500 ms and Stale 3 s.
	Heartbeat, Stale time.Duration
	// Retention and RetentionFailed are how long tasks are kept that have succeeded, or died; 0 means that they are gone at once.
	Retention, RetentionFailed time.Duration
	// LeaderTTL is 2 s and LeaderRetry 300 ms. Alone is a worker without an elector, which takes itself for the leader.
	LeaderTTL, LeaderRetry time.Duration
	Alone                  bool
	// Skew is how wrong its clock is, in whole seconds; see also Process.StepClock.
	Skew time.Duration
	// AllowPrivate lets tasks with a URL reach receivers on this machine.
	AllowPrivate bool
	// Enqueues is a load that the process enqueues by its own dispatcher while it works, with Skew and all; nil is none. It ends
	// with the process.
	Enqueues *Load
	// OwnProxy puts a proxy of its own between it and that of the server, so that it can be cut off alone: see Process.Proxy. Not
	// in a cluster, whose nodes tell clients where they are.
	OwnProxy bool
}

func (c WorkerConfig) withDefaults() WorkerConfig {
	c.Places = orElse(c.Places, 32)
	c.LeaseGrace, c.Sweep = orElse(c.LeaseGrace, 500*time.Millisecond), orElse(c.Sweep, 500*time.Millisecond)
	c.Reconcile, c.Cleanup = orElse(c.Reconcile, time.Second), orElse(c.Cleanup, time.Second)
	c.Drain = orElse(c.Drain, 10*time.Second)
	c.Heartbeat, c.Stale = orElse(c.Heartbeat, 500*time.Millisecond), orElse(c.Stale, 3*time.Second)
	c.RetentionFailed = orElse(c.RetentionFailed, -1)
	c.LeaderTTL, c.LeaderRetry = orElse(c.LeaderTTL, 2*time.Second), orElse(c.LeaderRetry, 300*time.Millisecond)
	if len(c.Queues) > 0 {
		c.Queues = append([]string{probeQueue}, c.Queues...)
	}
	return c
}

// Lease is the least that a lease of this worker lasts, for a task with a timeout.
func (c WorkerConfig) Lease(timeout time.Duration) time.Duration {
	return timeout + c.withDefaults().LeaseGrace
}

// Worker starts a worker process behind the proxies and returns when it works.
func (r *Run) Worker(ctx context.Context, c WorkerConfig) (*Process, error) {
	c = c.withDefaults()
	child := childConfig{Who: r.name("worker"), URL: r.Set.URL(), Worker: &c}
	var own *faultproxy.Proxy
	if c.OwnProxy {
		if r.topology == Cluster {
			return nil, fmt.Errorf("%s: a node of a cluster cannot be behind a proxy of one worker", child.Who)
		}
		var err error
		if own, err = r.Proxy(); err != nil {
			return nil, err
		}
		child.URL = own.URL()
	}
	return r.launch(ctx, child, own)
}

// Workers starts n worker processes alike.
func (r *Run) Workers(ctx context.Context, n int, c WorkerConfig) ([]*Process, error) {
	var all []*Process
	for range n {
		p, err := r.Worker(ctx, c)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// Proxy is a further proxy, in front of that of the primary, for one client alone. It ends with the run.
func (r *Run) Proxy() (*faultproxy.Proxy, error) {
	p, err := faultproxy.Listen(r.Set.Primary().Addr())
	if err == nil {
		r.atEnd(p.Close)
	}
	return p, err
}

// Producer starts a process that enqueues a load, behind the proxies, and ends when it is done. Process.Term ends it sooner.
func (r *Run) Producer(ctx context.Context, l Load) (*Process, error) {
	return r.launch(ctx, childConfig{Who: r.name("producer"), URL: r.Set.URL(), Load: &l}, nil)
}

// ProducerBehind is Producer with a proxy of its own; see Run.Proxy.
func (r *Run) ProducerBehind(ctx context.Context, p *faultproxy.Proxy, l Load) (*Process, error) {
	return r.launch(ctx, childConfig{Who: r.name("producer"), URL: p.URL(), Load: &l}, p)
}

// name is the next name of a role.
func (r *Run) name(role string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.named[role]++
	return fmt.Sprintf("%s-%d", role, r.named[role])
}

// atEnd has something done when the run is over.
func (r *Run) atEnd(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closers = append(r.closers, f)
}

// options are those of the dispatcher that runs in the worker process.
func (c WorkerConfig) options() dispatch.Options {
	return dispatch.Options{
		Queues: c.Queues, GlobalConcurrency: c.Places, LeaseGrace: c.LeaseGrace, SweepInterval: c.Sweep,
		ReconcileInterval: c.Reconcile, CleanupInterval: c.Cleanup, DrainTimeout: c.Drain, HeartbeatInterval: c.Heartbeat,
		StaleJobThreshold: c.Stale, RetentionSucceeded: c.Retention, RetentionFailed: c.RetentionFailed,
		Egress: worker.Egress{AllowPrivate: c.AllowPrivate},
	}
}
