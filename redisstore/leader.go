package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// ElectorOptions are the settings of an Elector. The zero value is ready for use.
type ElectorOptions struct {
	// TTL is how long a leader that has died keeps others from leading; 0 means 15 s, and 10 ms is the least. It is
	// renewed every third of it.
	TTL time.Duration
	// Retry is the longest pause between two tries to be elected while nobody leads; 0 means 2 s. While somebody does, a try
	// follows at most that long after that leadership could have ended. Somebody who resigns is heard of at once while the
	// store listens.
	Retry time.Duration
	// Clock measures how long a leadership is to be trusted; nil means the real one. It is never compared with that of
	// another machine.
	Clock clockwork.Clock
	// Logger is told of trouble; nil means that of the store.
	Logger *slog.Logger
}

// Elector makes one process the leader: a dispatch.LeaderElector on the leadership of a Store. It is safe for concurrent
// use. From Acquire to Release it has one goroutine, which renews the leadership.
type Elector struct {
	store      *Store
	ttl, retry time.Duration
	clock      clockwork.Clock
	log        *slog.Logger

	mu   sync.Mutex
	own  cluster.WorkerID // for an Acquire that names no worker
	busy bool             // from the beginning of Acquire to the end of Release
	term *tenure          // nil unless elected

	releasing sync.Mutex // held for all of Release, so that a second one returns when the first is done
}

// Elector makes an elector. What is wrong with the options is returned by Acquire.
func (s *Store) Elector(o ElectorOptions) *Elector {
	e := &Elector{store: s, ttl: o.TTL, retry: o.Retry, clock: o.Clock, log: o.Logger}
	if e.ttl == 0 {
		e.ttl = 15 * time.Second
	}
	if e.retry <= 0 {
		e.retry = 2 * time.Second
	}
	if e.clock == nil {
		e.clock = clockwork.NewRealClock()
	}
	if e.log == nil {
		e.log = s.log
	}
	return e
}

// tenure is the time in which one worker leads.
type tenure struct {
	id   cluster.WorkerID
	lost chan struct{}
	lose func()             // closes lost, once
	stop context.CancelFunc // ends the renewing
	done chan struct{}      // closed when the renewing has ended
}

// Acquire waits until the worker that ctx names by cluster.WithWorkerID is the leader, or ctx ends. Without one the
// elector makes an ID of its own, once. Redis may be away meanwhile. The channel is closed, once, when the leadership is
// lost or released, and when it cannot be renewed in time: before anybody else can have it, if the clocks of the two
// machines differ in speed by less than 1 %. End of ctx no longer matters then. Release must follow, also after a loss.
//
// Errors: that of ctx; *dispatch.FieldError for the TTL and the worker's ID; one for an Acquire that no Release has
// followed.
func (e *Elector) Acquire(ctx context.Context) (<-chan struct{}, error) {
	id, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	t, err := e.campaign(ctx, id)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.busy = false
		return nil, err
	}
	e.term = t
	return t.lost, nil
}

// Validate says whether the options can work, with a *dispatch.FieldError; dispatch.New asks.
func (e *Elector) Validate() error { return checkTTL("ElectorOptions.TTL", e.ttl) }

// enter begins an Acquire and says for whom.
func (e *Elector) enter(ctx context.Context) (cluster.WorkerID, error) {
	if err := e.Validate(); err != nil {
		return "", err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy {
		return "", errors.New("redisstore: elector: Acquire before the last one was released")
	}
	id, ok := cluster.WorkerIDFrom(ctx)
	if !ok {
		if e.own == "" {
			e.own = cluster.NewWorkerID()
		}
		id = e.own
	}
	err := checkWorkerID(id)
	e.busy = err == nil
	return id, err
}

// campaign tries until it is elected.
func (e *Elector) campaign(ctx context.Context, id cluster.WorkerID) (*tenure, error) {
	failing := false
	for {
		vacant := e.store.vacant.waiter() // before the try: what comes after it is not missed
		start := e.clock.Now()
		won, taken, err := e.try(ctx, id)
		until := e.trusted(start)
		switch {
		case ctx.Err() != nil:
			if won || err != nil { // it may have been won without our knowing
				e.resign(id)
			}
			return nil, ctx.Err()
		case won && e.clock.Now().Before(until):
			return e.lead(id, until), nil
		case won:
			continue // it took so long that it may be over; the next try renews it, or finds another leader
		case err != nil && !failing:
			e.log.Warn("redisstore: election failed; trying again", "worker", id, "error", err)
		}
		failing = err != nil
		if err := e.rest(ctx, taken, vacant); err != nil {
			return nil, err
		}
	}
}

// try says whether it has won, and if not, for how long the leadership is another's at least.
func (e *Elector) try(ctx context.Context, id cluster.WorkerID) (won bool, taken time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(e.ttl/2, patience))
	defer cancel()
	if taken, err = e.store.leadershipTaken(ctx, id); taken > 0 || err != nil {
		return false, taken, err
	}
	won, err = e.store.AcquireLeadership(ctx, id, e.ttl)
	return won, 0, err
}

// rest waits for the next try. A leadership that is another's is not asked for before it can end: so many who wait cost
// little.
func (e *Elector) rest(ctx context.Context, taken time.Duration, vacant <-chan struct{}) error {
	timer := e.clock.NewTimer(taken + jittered(e.retry))
	defer timer.Stop()
	select {
	case <-timer.Chan():
		return nil
	case <-vacant:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// jittered is d or up to a half less, so that those who failed together do not try together.
func jittered(d time.Duration) time.Duration { return d - rand.N(d/2+1) }

// trusted is until when a leadership counts whose renewal was sent at an instant. The server counts the ttl from later
// on. The margin is for clocks of different speed, and for what the leader does last.
func (e *Elector) trusted(sent time.Time) time.Time { return sent.Add(e.ttl - e.ttl/100 - e.ttl/20) }

// lead begins a tenure.
func (e *Elector) lead(id cluster.WorkerID, until time.Time) *tenure {
	ctx, stop := context.WithCancel(context.Background())
	t := &tenure{id: id, lost: make(chan struct{}), stop: stop, done: make(chan struct{})}
	t.lose = sync.OnceFunc(func() { close(t.lost) })
	// The end of trust has a timer of its own: the renewing may hang in a call.
	trust := e.clock.AfterFunc(until.Sub(e.clock.Now()), t.lose)
	go func() {
		defer close(t.done)
		defer trust.Stop()
		if why := e.renew(ctx, t, until, trust); ctx.Err() == nil {
			t.lose()
			e.log.Warn("redisstore: leadership lost", "worker", id, "reason", why)
		}
	}()
	return t
}

// renew keeps a tenure until it is lost, and says why it was, or until ctx ends.
func (e *Elector) renew(ctx context.Context, t *tenure, until time.Time, trust clockwork.Timer) string {
	const late = "not renewed in time"
	failing := false
	pause := e.ttl / 3
	for {
		timer := e.clock.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ""
		case <-t.lost:
			timer.Stop()
			return late
		case <-timer.Chan():
		}
		sent := e.clock.Now()
		left := until.Sub(sent)
		if left <= 0 {
			return late // the process slept
		}
		call, cancel := context.WithTimeout(ctx, min(left, e.ttl/3))
		held, err := e.store.RenewLeadership(call, t.id, e.ttl)
		cancel()
		if err != nil {
			if !failing && ctx.Err() == nil {
				e.log.Warn("redisstore: leadership not renewed; trying again", "worker", t.id, "error", err)
			}
			failing, pause = true, jittered(e.ttl/15)
			continue
		}
		if !held {
			return "taken or ended"
		}
		// An answer that comes after the end of trust brings nothing back: lost is closed, or is about to be.
		if !trust.Stop() || !e.clock.Now().Before(until) {
			return late
		}
		until = e.trusted(sent)
		trust.Reset(until.Sub(e.clock.Now()))
		failing, pause = false, e.ttl/3
	}
}

// Release ends the leadership, if there is one, and what keeps it, and lets others know. It waits at most 2 s for Redis;
// an end that does not reach it comes with the TTL. It may be called twice, and Acquire may follow. An Acquire that still
// waits is ended by its context, not by Release.
func (e *Elector) Release() {
	e.releasing.Lock()
	defer e.releasing.Unlock()
	e.mu.Lock()
	t := e.term
	e.term = nil
	e.mu.Unlock()
	if t == nil {
		return
	}
	t.stop()
	<-t.done
	t.lose()
	e.resign(t.id)
	e.mu.Lock()
	e.busy = false
	e.mu.Unlock()
}

func (e *Elector) resign(id cluster.WorkerID) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := e.store.resign(ctx, id); err != nil {
		e.log.Warn("redisstore: leadership ends later", "worker", id, "error", err)
	}
}

var _ dispatch.LeaderElector = (*Elector)(nil)
