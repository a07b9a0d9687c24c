package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// LeaderElector elects one process to lead. The leader fires cron entries, gives away what dead workers hold, sweeps,
// cleans up, and plans who looks at which queue first. No answer of Dispatch depends on there being one leader: two at
// once do no harm, and without one tasks flow, but those of dead workers wait longer and cron entries rest.
//
// An elector with a method Validate() error is asked by New whether its settings can work.
//
// (*redisstore.Store).Elector makes the usual one; package cluster/k8s has one for Kubernetes.
type LeaderElector interface {
	// Acquire waits until this process leads, or ctx ends. The ID of the worker is in ctx: cluster.WorkerIDFrom. The
	// returned channel is closed, once, when the leadership has ended: it was lost, or Release was called. ctx bounds the
	// waiting and not the leadership.
	Acquire(ctx context.Context) (lost <-chan struct{}, err error)
	// Release gives the leadership up, so that another process can have it at once. It may be called without one.
	Release()
}

// releasePatience is how long a stop waits for an elector.
const releasePatience = 5 * time.Second

// term is one leadership of this process.
type term struct {
	d *Dispatcher
	// number is fenced by the store; 0 without an elector.
	number int64
	// end ends the term, with its reason.
	end context.CancelCauseFunc
	// others says that reap has seen other workers that are not dead; only reap uses it.
	others bool
	// died holds a signal when a worker has died.
	died chan struct{}
}

// duties are what a leader does, each on its own goroutine until ctx ends. All of them are harmless when two leaders do
// them at once.
var duties = []func(*term, context.Context){
	(*term).fireCron, (*term).reap, (*term).sweep, (*term).cleanUp, (*term).verify, (*term).plan,
}

// leadLoop leads whenever this process is elected. It owns the elector.
func (d *Dispatcher) leadLoop(ctx context.Context) {
	if d.opts.Leader == nil {
		d.runDuties(ctx, 0, nil)
		return
	}
	for failures := 0; ctx.Err() == nil; {
		began := d.opts.Clock.Now()
		err := d.leadOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if d.opts.Clock.Now().Sub(began) > topPause {
			failures = 0
		}
		failures++
		d.log.failing("lead", err)
		d.pause(ctx, backoffAfter(failures))
	}
}

// leadOnce campaigns, leads, and returns why that ended.
func (d *Dispatcher) leadOnce(ctx context.Context) error {
	lost, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer d.resign()
	number, err := d.store.BeginTerm(ctx, d.worker)
	if err != nil {
		return fmt.Errorf("begin term: %w", err)
	}
	d.log.recovered("lead")
	d.log.Info("dispatch: leads", "term", number)
	return d.runDuties(ctx, number, lost)
}

// runDuties does the duties until ctx ends or the leadership is lost, and returns why they ended: ErrLeadershipLost, or
// the cause of ctx.
func (d *Dispatcher) runDuties(ctx context.Context, number int64, lost <-chan struct{}) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &term{d: d, number: number, end: cancel, died: make(chan struct{}, 1)}
	d.leading.Store(true)
	defer d.leading.Store(false)
	var wait sync.WaitGroup
	for _, duty := range duties {
		wait.Go(func() { duty(t, ctx) })
	}
	select {
	case <-lost:
		cancel(ErrLeadershipLost)
	case <-ctx.Done():
	}
	wait.Wait()
	return context.Cause(ctx)
}

// failed judges an error of a duty: it ends the term if another leader has followed, and is told otherwise.
func (t *term) failed(ctx context.Context, duty string, err error) {
	switch {
	case errors.Is(err, ErrLeadershipLost):
		t.end(ErrLeadershipLost)
	case ctx.Err() == nil:
		t.d.log.failing(duty, err)
	}
}

// acquire and resign keep what an elector may do wrong out of this package's goroutines.
func (d *Dispatcher) acquire(ctx context.Context) (lost <-chan struct{}, err error) {
	defer func() {
		if p := recover(); p != nil {
			lost, err = nil, fmt.Errorf("dispatch: elector panicked: %v", p)
		}
	}()
	lost, err = d.opts.Leader.Acquire(cluster.WithWorkerID(ctx, d.worker))
	if err == nil && lost == nil {
		err = errors.New("dispatch: elector returned no channel")
	}
	return lost, err
}

func (d *Dispatcher) resign() {
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("dispatch: elector panicked", "panic", fmt.Sprint(p))
		}
	}()
	d.opts.Leader.Release()
}

// Role is "leader" while this process leads, and "follower" otherwise.
func (d *Dispatcher) Role() string {
	if d.leading.Load() {
		return "leader"
	}
	return "follower"
}
