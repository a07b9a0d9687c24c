package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/bench/chaos/faultproxy"
)

// The recovery of idle-black-hole: with the short times of the chaos runs, and with the product's own.
const (
	holeRecovery     = 3 * time.Second
	holeRecoveryLong = 12 * time.Second
)

func idleBlackHole() Scenario {
	return Scenario{
		Name: "idle-black-hole",
		Doc: "between an idle fleet and Redis everything is swallowed for long, then replies only, and tasks that were stored before come " +
			"due meanwhile or right after: without any other enqueue each starts soon after the hole, or when it is due",
		Bound: Bound{Recovery: holeRecoveryLong},
		Run:   runIdleBlackHole,
	}
}

// hole is a time without the servers.
type hole struct {
	name  string
	on    func(p *faultproxy.Proxy, on bool)
	lasts time.Duration
}

func runIdleBlackHole(ctx context.Context, r *Run) error {
	config, bound := WorkerConfig{}, holeRecovery
	if !r.Quick { // the product's own times
		bound = holeRecoveryLong
		config = WorkerConfig{
			LeaseGrace: 10 * time.Second, Sweep: 5 * time.Second, Reconcile: 5 * time.Second, Cleanup: time.Minute,
			Heartbeat: 10 * time.Second, Stale: 30 * time.Second, LeaderTTL: 15 * time.Second, LeaderRetry: 2 * time.Second,
		}
	}
	if _, err := r.Workers(ctx, 3, config); err != nil {
		return err
	}
	holes := []hole{
		{"blackhole", (*faultproxy.Proxy).BlackHole, Pick(r, 8*time.Second, 90*time.Second)},
		{"half-open", (*faultproxy.Proxy).HalfOpen, Pick(r, 4*time.Second, 90*time.Second)},
	}
	var queues []string
	for _, h := range holes {
		for _, d := range h.dues() {
			queues = append(queues, d.queue)
		}
	}
	if err := r.idle(ctx, queues); err != nil {
		return err
	}
	for _, h := range holes {
		took, err := r.fallInto(ctx, h, bound)
		if err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
		r.Note("after a %s of %v the slowest task started after %v", h.name, h.lasts, took)
		r.Took(took)
		if took > bound {
			return fmt.Errorf("lost wake-up: after a %s of %v a task started %v late, more than %v", h.name, h.lasts, took, bound)
		}
	}
	return r.Drain(ctx, 10*time.Second)
}

// due is a queue with one task, and when that is due after the hole has opened.
type due struct {
	queue string
	after time.Duration
}

// dues are the tasks of a hole.
func (h hole) dues() []due {
	return []due{
		{"edge-" + h.name, 300 * time.Millisecond},
		{"inside-" + h.name, h.lasts / 2},
		{"deep-" + h.name, h.lasts - 300*time.Millisecond},
		{"right-after-" + h.name, h.lasts + 100*time.Millisecond},
		{"after-" + h.name, h.lasts + time.Second},
	}
}

// fallInto has a hole open under an idle fleet with tasks that are due at several instants, and says how late the latest was.
func (r *Run) fallInto(ctx context.Context, h hole, bound time.Duration) (time.Duration, error) {
	var tasks []lone
	for _, d := range h.dues() {
		t, err := r.lone(ctx, r.client, d.queue, d.after+time.Duration(r.Rand.IntN(200))*time.Millisecond)
		if err != nil {
			return 0, err
		}
		tasks = append(tasks, t)
	}
	proxy := r.Set.Primary().Proxy()
	before := proxy.Stats()
	r.Fault(h.name, audit.AnyWorker)
	h.on(proxy, true)
	began := time.Now()
	if !Sleep(ctx, h.lasts) {
		return 0, context.Cause(ctx)
	}
	h.on(proxy, false)
	healed := time.Now()
	r.Fault("heal", audit.AnyWorker)
	stats := proxy.Stats()
	r.Note("%s: %d connections and %d requests meanwhile", h.name, stats.Dials-before.Dials, stats.Requests-before.Requests)
	if stats.Dials == before.Dials {
		return 0, fmt.Errorf("nobody has noticed it")
	}
	took, err := r.awaitStarts(ctx, tasks, healed, bound)
	if err != nil {
		return 0, fmt.Errorf("lost wake-up: %w", err)
	}
	return took, r.nothingStarted(began, healed)
}

// nothingStarted makes sure that a hole was one: what started in it was claimed before it.
func (r *Run) nothingStarted(began, healed time.Time) error {
	ledger, err := r.Ledger()
	if err != nil {
		return err
	}
	const slack = 50 * time.Millisecond // what had arrived before
	for _, e := range ledger.Events {
		if at := time.UnixMicro(e.At); e.Kind == audit.KindStart && at.After(began.Add(slack)) && at.Before(healed) {
			return fmt.Errorf("task %s of queue %s started in the hole", e.ID, e.Queue)
		}
	}
	return nil
}
