package k8s

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
	"github.com/jonboulle/clockwork"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
)

var (
	errHeld     = errors.New("k8s: Acquire: this elector leads or waits already: Release comes first")
	errReleased = errors.New("k8s: Acquire: Release was called meanwhile")
)

// LeaderElector elects one leader among all processes that name the same Lease. It is client-go's leader election, with
// a leadership that ends in time even while the API server does not answer. Methods are safe for concurrent use; the
// fields are to be set before the first Acquire.
type LeaderElector struct {
	// LeaseDuration is how long others wait for a leader that shows no sign of life. NewLeaderElector sets 15 s. It is
	// a whole number of seconds, because a Lease counts in seconds, and greater than RenewDeadline.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew before it gives up. NewLeaderElector sets 10 s. Greater than
	// 1.2 × RetryPeriod; an outage shorter than the difference of the two costs nothing. One request takes at most half
	// of it. In any case a leadership ends when the last renewal that
	// succeeded was begun longer ago than the mean of LeaseDuration and RenewDeadline.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two renewals. NewLeaderElector sets 2 s. A candidate looks every 1 to
	// 2.2 × RetryPeriod, as client-go's jitter has it: so it finds a Lease that was released within 2.2 × RetryPeriod,
	// and takes over from a leader that crashed within LeaseDuration + 4.4 × RetryPeriod of its last renewal.
	RetryPeriod time.Duration
	// Logger gets what the election meets, warnings and, at level debug, its progress. Nil means slog.Default().
	Logger *slog.Logger

	client          kubernetes.Interface
	namespace, name string
	clock           clockwork.Clock

	mu   sync.Mutex
	last *term // the latest one; may be over
}

// NewLeaderElector makes an elector for the Lease leaseName in a namespace. It asks nothing of the API server yet;
// whatever is wrong with its settings is an error of Acquire.
func NewLeaderElector(client kubernetes.Interface, namespace, leaseName string) *LeaderElector {
	return &LeaderElector{
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		client: client, namespace: namespace, name: leaseName,
		clock: clockwork.NewRealClock(), // client-go's election takes no other
	}
}

// Acquire waits until this process leads, or ctx ends; ctx has no say in the leadership afterwards. The leader goes by
// the worker ID in ctx (cluster.WithWorkerID), or a fresh one: no two processes, and no two electors of one Lease, may
// have the same.
//
// The channel closes, once, when the leadership ends: by Release, or because it could not be renewed. After that
// Acquire may be called again. While the API server refuses or does not answer, Acquire warns and goes on trying.
//
// Errors: that of ctx; of settings that cannot work; of an Acquire before the end of another one's leadership; of a
// Release meanwhile.
func (e *LeaderElector) Acquire(ctx context.Context) (lost <-chan struct{}, err error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	t, err := e.begin(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-t.elected:
		return t.lost, nil
	case <-ctx.Done():
		t.stop()
		return nil, context.Cause(ctx)
	case <-t.lost:
	}
	<-t.done
	switch {
	case t.failure != nil:
		return nil, t.failure
	case t.asked.Load():
		return nil, errReleased
	}
	return t.lost, nil // won, by an answer that came too late to be of use
}

// begin starts a term when the one before is over.
func (e *LeaderElector) begin(ctx context.Context) (*term, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		t, before, err := e.succeed(ctx)
		if before == nil {
			return t, err
		}
		select {
		case <-before.lost: // it only has to clean up
		default:
			return nil, errHeld
		}
		select {
		case <-before.done:
		case <-ctx.Done():
		}
	}
}

// succeed starts a term, or returns the one before that goes on.
func (e *LeaderElector) succeed(ctx context.Context) (t, before *term, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last != nil {
		select {
		case <-e.last.done:
		default:
			return nil, e.last, nil
		}
	}
	id, ok := cluster.WorkerIDFrom(ctx)
	if !ok || id == "" {
		id = cluster.NewWorkerID()
	}
	t, err = e.startTerm(context.WithoutCancel(ctx), string(id))
	if err != nil {
		return nil, nil, err
	}
	e.last = t
	return t, nil, nil
}

// Release ends the leadership, or an Acquire that waits for it, and returns when nothing of it runs any more. Others
// find the Lease free at their next look. Whatever the leader does has to have stopped before. When the API server does
// not answer, Release gives up after RetryPeriod, and others wait for LeaseDuration. Without a leadership it does
// nothing.
func (e *LeaderElector) Release() {
	e.mu.Lock()
	t := e.last
	e.mu.Unlock()
	if t != nil {
		t.stop()
	}
}

// Validate says what is wrong with the elector's settings; dispatch.New asks.
func (e *LeaderElector) Validate() error {
	if e.client == nil {
		return errors.New("k8s: NewLeaderElector: the client is nil")
	}
	if problems := validation.IsDNS1123Label(e.namespace); problems != nil {
		return fmt.Errorf("k8s: NewLeaderElector: namespace %q: %s", e.namespace, problems[0])
	}
	if problems := validation.IsDNS1123Subdomain(e.name); problems != nil {
		return fmt.Errorf("k8s: NewLeaderElector: name of the Lease %q: %s", e.name, problems[0])
	}
	switch {
	case e.LeaseDuration < time.Second || e.LeaseDuration%time.Second != 0:
		return fmt.Errorf("k8s: LeaderElector.LeaseDuration: %v is not a whole number of seconds above 0", e.LeaseDuration)
	case e.RetryPeriod <= 0:
		return fmt.Errorf("k8s: LeaderElector.RetryPeriod: %v is not above 0", e.RetryPeriod)
	case e.RenewDeadline <= e.RetryPeriod+e.RetryPeriod/5:
		return fmt.Errorf("k8s: LeaderElector.RenewDeadline: %v is not more than 1.2 × RetryPeriod, which is %v",
			e.RenewDeadline, e.RetryPeriod)
	case e.LeaseDuration <= e.RenewDeadline:
		return fmt.Errorf("k8s: LeaderElector.LeaseDuration: %v is not more than RenewDeadline, which is %v",
			e.LeaseDuration, e.RenewDeadline)
	}
	return nil
}
