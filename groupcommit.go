package dispatch

import (
	"context"
	"slices"
	"sync"
)

// groupCommit gathers items per key and sends them in batches, one batch per key at a time, or two (see second): while one
// is in flight, the next gathers. There is no timer, so an item that comes alone leaves at once and items that come together
// leave together. A key with nothing to send holds no goroutine and no memory.
//
// send is called on a goroutine of the groupCommit's own, which lives until the key has nothing left. It returns when
// its batch is over. The batch is send's to keep. A send that calls runtime.Goexit, as a test's FailNow does, is over too.
type groupCommit[T any] struct {
	send func(key string, batch []T)
	// A batch has at most maxItems items and, unless it has one item, at most maxBytes bytes by size.
	maxItems, maxBytes int
	size               func(T) int
	// second is how many items have to gather, at the least, for a second batch to leave while one is in flight; 0 is never. It
	// leaves with half of the most that were unanswered lately, or with maxItems. So those who wait for their answers fill two
	// batches of about the same size, which take turns, and who sends little sends few batches. Lately, not now: the callers of
	// an answered batch come back one by one, and half of what is there by then would split them unevenly.
	second int

	mu   sync.Mutex
	keys map[string]*gathering[T] // those with a sender
	idle chan struct{}            // closed when no key is present any more; nil unless somebody waits
}

// gathering is what a groupCommit knows of a key.
type gathering[T any] struct {
	items   []T
	senders int // 1, or 2
	sent    int // items in flight
	peak    int // the most items, gathered and in flight, that a batch saw when it left, lately; at most 2*maxItems
}

// add hands items over. It does not wait.
func (g *groupCommit[T]) add(key string, items ...T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.keys == nil {
		g.keys = make(map[string]*gathering[T])
	}
	k := g.keys[key]
	if k == nil {
		k = new(gathering[T])
		g.keys[key] = k
	}
	k.items = append(k.items, items...)
	if k.senders == 0 || k.senders == 1 && g.isSecond(k) {
		k.senders++
		go g.run(key, k)
	}
}

// isSecond says whether enough has gathered for two batches to be in flight.
func (g *groupCommit[T]) isSecond(k *gathering[T]) bool {
	return g.second > 0 && len(k.items) >= max(g.second, (k.peak+1)/2)
}

// wait returns nil when nothing has gathered and nothing is on its way, or the error of ctx when that ends first.
func (g *groupCommit[T]) wait(ctx context.Context) error {
	g.mu.Lock()
	if len(g.keys) == 0 {
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
	if k := g.keys[key]; k != nil {
		return slices.Clone(k.items)
	}
	return nil
}

// run sends what has gathered for a key until there is nothing left for it. It is one of the key's goroutines.
func (g *groupCommit[T]) run(key string, k *gathering[T]) {
	returned := false
	defer func() {
		if !returned {
			go g.run(key, k) // Goexit in send cannot be stopped: the key goes to a new goroutine
		}
	}()
	for batch := g.take(key, k); batch != nil; batch = g.take(key, k) {
		g.deliver(key, k, batch)
	}
	returned = true
}

// deliver sends a batch and counts it as answered, also when send calls Goexit.
func (g *groupCommit[T]) deliver(key string, k *gathering[T], batch []T) {
	defer func() {
		g.mu.Lock()
		k.sent -= len(batch)
		g.mu.Unlock()
	}()
	g.send(key, batch)
}

// take removes the next batch of a key, or ends a sender and returns nil.
func (g *groupCommit[T]) take(key string, k *gathering[T]) []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(k.items) == 0 || k.senders == 2 && !g.isSecond(k) {
		k.senders--
		if k.senders == 0 {
			g.forget(key)
		}
		return nil
	}
	n := cutBatch(k.items, g.maxItems, g.maxBytes, g.size)
	batch := k.items[:n:n]
	k.items = k.items[n:]
	if len(k.items) == 0 {
		k.items = nil // so that the array does not grow for ever
	}
	k.sent += n
	k.peak = min(max(k.sent+len(k.items), k.peak-1-k.peak/16), 2*g.maxItems) // the rest of a burst is forgotten after 40 batches
	return batch
}

// forget drops a key without a sender. g.mu is held.
func (g *groupCommit[T]) forget(key string) {
	delete(g.keys, key)
	if g.idle != nil && len(g.keys) == 0 {
		close(g.idle)
		g.idle = nil
	}
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
