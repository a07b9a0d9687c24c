package dispatch

import (
	"context"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// leavePatience is how long a stop waits for its row to be removed.
const leavePatience = 2 * time.Second

// newMember makes this process's part in the registry.
func (d *Dispatcher) newMember() (*cluster.Member, error) {
	hostname, _ := os.Hostname() // a process without a name is one all the same
	return cluster.NewMember(d.registry, cluster.Worker{
		ID: d.worker, Hostname: clip(hostname, 255), Queues: slices.Clone(d.opts.Queues), Concurrency: d.opts.GlobalConcurrency,
		State: cluster.StateActive, Capacity: maps.Clone(d.opts.Capacity), Metadata: maps.Clone(d.opts.Metadata),
	}, cluster.MemberOptions{
		Clock: d.opts.Clock, Interval: d.opts.HeartbeatInterval, Threshold: d.opts.StaleJobThreshold, Forget: d.opts.forget(),
		Stale: d.isolate, Fresh: d.rejoin,
		Failing:   func(err error) { d.log.failing("heartbeat", err) },
		Recovered: func() { d.log.recovered("heartbeat") },
	})
}

// isolate stops the work of a process that the registry has not heard of for too long: its tasks are about to be given
// to others, whose leases count. What it ends now goes back uncounted, if the store takes it in time.
func (d *Dispatcher) isolate() {
	d.mu.Lock()
	d.isolated.Store(true)
	open := slices.Collect(maps.Keys(d.running))
	d.mu.Unlock()
	d.log.Warn("dispatch: no heartbeat got through; this process claims nothing and ends what it runs",
		"threshold", d.opts.StaleJobThreshold, "attempts", len(open))
	for _, r := range open {
		r.ctx.end(ErrLeaseLost)
	}
	d.giveBack(d.pool.Withdraw(nil))
}

// rejoin takes up the work again.
func (d *Dispatcher) rejoin() {
	d.isolated.Store(false)
	d.log.Info("dispatch: heartbeats get through again; this process claims")
	d.poke()
}

// steady says whether this process has beaten without a gap for so long that the silence of another is its own fault.
func (d *Dispatcher) steady() bool {
	since, ok := d.member.SteadySince()
	return ok && d.opts.Clock.Now().Sub(since) >= d.opts.StaleJobThreshold
}

// leave takes this process's row away, the last thing that a stop does.
func (d *Dispatcher) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	if err := d.member.Leave(ctx); err != nil {
		d.log.Warn("dispatch: this worker could not be taken off the registry; it will be found dead", "error", err)
	}
}

// forget is how long the row of a dead worker stays to be seen.
func (o Options) forget() time.Duration { return max(24*time.Hour, 2*o.StaleJobThreshold) }
