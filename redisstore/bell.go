package redisstore

import (
	"slices"
	"sync"

	"github.com/dispatchkit/dispatch"
)

// bell wakes everybody who waits for it. The zero value is ready for use.
type bell struct {
	mu   sync.Mutex
	next chan struct{} // closed at the next ring; nil while nobody waits
}

// waiter is closed when the bell rings next.
func (b *bell) waiter() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// vacancy tells the electors of this store when a message says that the leadership is free.
func (s *Store) vacancy(hints []dispatch.Hint) {
	if slices.ContainsFunc(hints, func(h dispatch.Hint) bool { return h.Queue == dispatch.HintLeader }) {
		s.vacant.ring()
	}
}

// announcement is the message about something that belongs to no queue.
func announcement(name string) string { return formatHints([]dispatch.Hint{{Queue: name}}) }
