package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
)

// MemberOptions are the settings of a Member. The zero value is ready for use.
//
// The functions may be nil. They are called by the goroutine of Run, one at a time, and have to return soon: no beat is
// made meanwhile. After Run has returned none is called.
type MemberOptions struct {
	// Clock times the beats; nil means the real one. Each call of the store has a deadline besides, in real time.
	Clock clockwork.Clock
	// Interval is from the start of a beat to that of the next. 0 means 10 s.
	Interval time.Duration
	// Threshold is how long a worker may be silent before others take it for dead: the same for all workers. 0 means
	// 30 s; more than 2 × Interval.
	Threshold time.Duration
	// Forget is how long a worker must have been silent for its row to be deleted. Run asks for that once, after it has
	// registered: the rows of the dead are kept to be looked at, not for ever. 0 means 24 h; at least Threshold.
	Forget time.Duration
	// Stale is called when the last good beat started Threshold ago, or Run did and none was good: from this instant on
	// others may give away what this worker holds. Fresh is called when a beat is good again. They take turns.
	Stale, Fresh func()
	// Failing is called with the error of the first beat that fails, and Recovered when one is good again. They take
	// turns. A worker that finds its row gone or marked dead fails with ErrWorkerNotFound, and registers at once.
	Failing   func(error)
	Recovered func()
}

func (o MemberOptions) withDefaults() MemberOptions {
	if o.Clock == nil {
		o.Clock = clockwork.NewRealClock()
	}
	o.Interval = cmp.Or(o.Interval, 10*time.Second)
	o.Threshold = cmp.Or(o.Threshold, 30*time.Second)
	o.Forget = cmp.Or(o.Forget, 24*time.Hour)
	for _, f := range []*func(){&o.Stale, &o.Fresh, &o.Recovered} {
		if *f == nil {
			*f = func() {}
		}
	}
	if o.Failing == nil {
		o.Failing = func(error) {}
	}
	return o
}

func (o MemberOptions) validate() error {
	switch {
	case o.Interval < 0:
		return fmt.Errorf("cluster: MemberOptions.Interval: %v is negative", o.Interval)
	case o.Threshold <= 2*o.Interval:
		return fmt.Errorf("cluster: MemberOptions.Threshold: %v is not more than 2 × Interval, which is %v", o.Threshold, o.Interval)
	case o.Forget < o.Threshold:
		return fmt.Errorf("cluster: MemberOptions.Forget: %v is less than Threshold, which is %v", o.Forget, o.Threshold)
	}
	return nil
}

// Member is a worker's life in a registry: Run registers it and keeps it alive, Drain says that it stops, Leave takes it
// away. All methods but Run and Leave may be called at any time by any goroutine.
//
// The goroutine of Run owns the beating and calls the functions of the options. Each call of the store runs on a
// goroutine of its own, one at a time, so that a call that hangs delays nothing but the next call.
type Member struct {
	store Store
	opts  MemberOptions

	wake     chan struct{} // holds a note for Run that the state has changed
	returned chan struct{} // closed when Run has returned
	slot     chan struct{} // held by the goroutine of the call in flight

	mu        sync.Mutex // guards what follows; held for no call
	self      Worker     // as it is to be; CreatedAt once it is known
	ran, left bool
	good      time.Time // the start of the last good beat
	steady    time.Time // the start of the first of the good beats without a gap; zero when the last one failed
}

// NewMember makes the member for a worker of whom ID, Hostname, Queues, Concurrency, Capacity and Metadata are set. A
// State other than StateDraining is StateActive. The error says which of
// the options cannot work.
func NewMember(store Store, self Worker, o MemberOptions) (*Member, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	self = self.clone()
	if self.State != StateDraining {
		self.State = StateActive
	}
	return &Member{
		store: store, opts: o, self: self,
		wake: make(chan struct{}, 1), returned: make(chan struct{}), slot: make(chan struct{}, 1),
	}, nil
}

// Self returns the worker as it registers: with the State that Drain sets at once, and with CreatedAt once that is
// known. What only the registry knows is not in it.
func (m *Member) Self() Worker {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.self.clone()
}

// Drain makes the worker's state StateDraining, for good. Run writes it at once, and goes on beating.
func (m *Member) Drain() {
	m.mu.Lock()
	m.self.State = StateDraining
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default: // there is a note already
	}
}

// SteadySince returns since when the worker has beaten without a gap, by the clock of the options, or false when it does
// not: its last beat failed, it was taken for dead, or more than 2 × Interval have passed since the last good beat
// started. A leader may take others for dead only if this is at least Threshold ago: until then, the silence of all
// others may be its own.
func (m *Member) SteadySince() (time.Time, bool) {
	now := m.opts.Clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.steady.IsZero() || now.Sub(m.good) > 2*m.opts.Interval {
		return time.Time{}, false
	}
	return m.steady, true
}

// noteGood takes in a good beat that started at an instant.
func (m *Member) noteGood(start time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.steady.IsZero() || start.Sub(m.good) > 2*m.opts.Interval {
		m.steady = start
	}
	m.good = start
}

func (m *Member) noteFailed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steady = time.Time{}
}

// noteCreated takes in when the worker registered first.
func (m *Member) noteCreated(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.self.CreatedAt = at
}

// Leave removes the worker from the registry, after Run has returned. Run, if it comes later, does nothing. When ctx ends
// before the row is removed, Leave returns an error and others will find the worker dead: because Run has not returned,
// or a call of the store is still going on, which could write the row again if it were removed now.
func (m *Member) Leave(ctx context.Context) error {
	m.mu.Lock()
	m.left = true
	ran := m.ran
	m.mu.Unlock()
	if ran {
		select {
		case <-m.returned:
		case <-ctx.Done():
			return fmt.Errorf("cluster: leave: Run has not returned: %w", context.Cause(ctx))
		}
	}
	select {
	case m.slot <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("cluster: leave: a call of the store hangs: %w", context.Cause(ctx))
	}
	done := m.call(ctx, func(ctx context.Context) error { return m.store.DeregisterWorker(ctx, m.self.ID) })
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("cluster: leave: %w", err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cluster: leave: %w", context.Cause(ctx))
	}
}

// begin says whether Run may begin.
func (m *Member) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left || m.ran {
		return false
	}
	m.ran = true
	return true
}

var errExited = errors.New("cluster: the store ended the goroutine of a call")

// call runs f on a goroutine of its own that ends with it. The caller has put a token into the slot; the goroutine takes
// it out. A panic of the store is an error: it is no reason to end the tasks of the process.
func (m *Member) call(ctx context.Context, f func(context.Context) error) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := errExited
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("cluster: the store panicked: %v\n%s", p, debug.Stack())
			}
			<-m.slot
			done <- err
		}()
		err = f(ctx)
	}()
	return done
}
