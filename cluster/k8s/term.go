package k8s

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// term is one campaign and the leadership that it may lead to. It has one goroutine, that of run.
type term struct {
	elected chan struct{} // closed when the election is won
	lost    chan struct{} // closed when the leadership, or the campaign, is over
	done    chan struct{} // closed when run has returned

	lock     *lock
	log      *slog.Logger
	clock    clockwork.Clock
	patience struct {
		trust, handOver time.Duration
	}
	cancel  context.CancelFunc // ends the election
	asked   atomic.Bool        // stop was called: the Lease is to be handed over
	failure error              // that of a panic; to be read after done

	mu    sync.Mutex // guards what follows
	over  bool       // lost is closed
	watch clockwork.Timer
}

// startTerm starts a campaign. The context carries values only.
func (e *LeaderElector) startTerm(ctx context.Context, identity string) (*term, error) {
	log := e.Logger
	if log == nil {
		log = slog.Default()
	}
	log = log.With("lease", e.namespace+"/"+e.name, "worker", identity)
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.New(sink{log})))
	t := &term{
		elected: make(chan struct{}), lost: make(chan struct{}), done: make(chan struct{}),
		log: log, clock: e.clock, cancel: cancel,
	}
	t.patience.trust = e.LeaseDuration - (e.LeaseDuration-e.RenewDeadline)/2
	t.patience.handOver = e.RetryPeriod
	t.lock = &lock{
		LeaseLock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.namespace, Name: e.name},
			Client:     e.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		limit: e.RenewDeadline / 2, clock: e.clock, written: t.trust,
	}
	election, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: t.lock, Name: e.name,
		LeaseDuration: e.LeaseDuration, RenewDeadline: e.RenewDeadline, RetryPeriod: e.RetryPeriod,
		// The Lease is handed over by run instead. client-go does that before it reports the end, which takes up to
		// RenewDeadline when nothing answers, and overwrites whoever may hold the Lease by then.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(t.elected) },
			OnStoppedLeading: func() {}, // the return of Run says the same
		},
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("k8s: Acquire: %w", err)
	}
	go t.run(ctx, election)
	return t, nil
}

// run is the goroutine of a term.
func (t *term) run(ctx context.Context, election *leaderelection.LeaderElector) {
	defer close(t.done)
	defer t.end()
	defer func() {
		if p := recover(); p != nil {
			t.failure = fmt.Errorf("k8s: the election panicked: %v", p)
			t.log.Error("k8s: the election panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	election.Run(ctx)
	t.end()
	if !t.asked.Load() {
		// Nobody asked for it, so the leader's work goes on for a moment: the Lease is left to run out meanwhile.
		t.log.Warn("k8s: leadership lost: it could not be renewed in time")
		return
	}
	if err := t.lock.handOver(t.patience.handOver); err != nil {
		t.log.Warn("k8s: could not hand the lease over: it has to run out", "error", err)
	}
}

// trust has the leadership end in time, if it is not renewed again: others count from when they saw the renewal, which
// is after it was begun.
func (t *term) trust(begun time.Time) {
	left := begun.Add(t.patience.trust).Sub(t.clock.Now())
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
	case t.watch == nil:
		t.watch = t.clock.AfterFunc(left, t.end)
	default:
		t.watch.Reset(left)
	}
}

// end closes lost and has the goroutine end. It may be called repeatedly.
func (t *term) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.over = true
	if t.watch != nil {
		t.watch.Stop()
	}
	close(t.lost)
	t.cancel()
}

// stop ends the term, hands the Lease over, and waits for that.
func (t *term) stop() {
	t.asked.Store(true)
	t.end()
	<-t.done
}
