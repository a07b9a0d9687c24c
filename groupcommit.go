package dispatch

import (
	"context"
	"sync"
)

// groupCommit gathers items per key and sends them in batches, at most one batch per key at a time: while one is in
// flight, the next gathers. There is no timer, so an item that comes alone leaves at once and items that come together
// leave together. A key with nothing to send holds no goroutine and no memory.
//
// send is called on a goroutine of the groupCommit's own, which lives until the key has nothing left. It returns when
// its batch is over. The batch is send's to keep. A send that calls runtime.Goexit, as a test's FailNow does, is over too.
type groupCommit[T any] struct {
	send func(key string, batch []T)
	// A batch has at most maxItems items and, unless it has one item, at most maxBytes bytes by size.
	maxItems, maxBytes int
	size               func(T) int

	mu       sync.Mutex
	gathered map[string][]T // a key that is present has a sender
	idle     chan struct{}  // closed when no key is present any more; nil unless somebody waits
}

// add hands items over. It does not wait.
func (g *groupCommit[T]) add(key string, items ...T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting, busy := g.gathered[key]
	if g.gathered == nil {
		g.gathered = make(map[string][]T)
	}
	g.gathered[key] = append(waiting, items...)
	if !busy {
		go g.run(key)
	}
}

// wait returns nil when nothing has gathered and nothing is on its way, or the error of ctx when that ends first.
func (g *groupCommit[T]) wait(ctx context.Context) error {
	g.mu.Lock()
	if len(g.gathered) == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waiting returns what has gathered for a key and is not on its way yet.
func (g *groupCommit[T]) waiting(key string) []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]T(nil), g.gathered[key]...)
}

// run sends what has gathered for a key until there is nothing left. It is the key's goroutine.
func (g *groupCommit[T]) run(key string) {
	returned := false
	defer func() {
		if !returned {
			go g.run(key) // Goexit in send cannot be stopped: the key goes to a new goroutine
		}
	}()
	for batch := g.take(key); batch != nil; batch = g.take(key) {
		g.send(key, batch)
	}
	returned = true
}

// take removes the next batch of key, or ends the key and returns nil.
func (g *groupCommit[T]) take(key string) []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting := g.gathered[key]
	if len(waiting) == 0 {
		delete(g.gathered, key)
		if g.idle != nil && len(g.gathered) == 0 {
			close(g.idle)
			g.idle = nil
		}
		return nil
	}
	n := cutBatch(waiting, g.maxItems, g.maxBytes, g.size)
	batch := waiting[:n:n]
	g.gathered[key] = waiting[n:]
	if n == len(waiting) {
		g.gathered[key] = nil // so that the array does not grow for ever
	}
	return batch
}

// cutBatch is how many of the first items make one batch: at most maxItems and maxBytes, but at least one.
func cutBatch[T any](items []T, maxItems, maxBytes int, size func(T) int) int {
	n := min(len(items), maxItems)
	bytes := 0
	for i, item := range items[:n] {
		bytes += size(item)
		if bytes > maxBytes && i > 0 {
			return i
		}
	}
	return n
}
