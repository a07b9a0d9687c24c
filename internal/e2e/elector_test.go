package e2e

import (
	"context"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

// The electors of worker processes.
const (
	elected = "redis"  // the product's
	deaf    = "deaf"   // the same, but it does not hear that the leadership is lost
	always  = "always" // each process that asks leads
)

// elector makes the process's, or nil.
func (c *child) elector(store *redisstore.Store) dispatch.LeaderElector {
	switch c.Elector {
	case elected:
		return store.Elector(redisstore.ElectorOptions{TTL: c.TTL, Retry: c.Retry})
	case deaf:
		return &stubborn{real: store.Elector(redisstore.ElectorOptions{TTL: c.TTL, Retry: c.Retry})}
	case always:
		return &stubborn{}
	}
	return nil
}

// stubborn is a leader until it releases, whatever others say.
type stubborn struct {
	real dispatch.LeaderElector // who says when it begins; nil is at once
	mu   sync.Mutex
	lost chan struct{} // nil when it does not lead
}

func (s *stubborn) Acquire(ctx context.Context) (<-chan struct{}, error) {
	if s.real != nil {
		if _, err := s.real.Acquire(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = make(chan struct{})
	return s.lost, nil
}

func (s *stubborn) Release() {
	s.mu.Lock()
	if s.lost != nil {
		close(s.lost)
		s.lost = nil
	}
	s.mu.Unlock()
	if s.real != nil {
		s.real.Release()
	}
}

// sayRoles says when the process begins to lead and when it no longer does, until it is told to end.
func sayRoles(d *dispatch.Dispatcher) (end func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for before := "follower"; ; {
			if role := d.Role(); role != before {
				before = role
				say("%s %d", map[string]string{"leader": "leads", "follower": "follows"}[role], time.Now().UnixMicro())
			}
			select {
			case <-tick.C:
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}
