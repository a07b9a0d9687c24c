package worker

import (
	"context"
	"sync"
)

// Pool runs one function over items, at most a fixed number of them at a time. Items beyond wait and are started in
// the order in which they were added.
//
// A goroutine is started when an item finds a free place, goes on to the next item without a pause, and ends when
// nothing waits: an idle pool holds no goroutine and needs no Close. Who stops one withdraws what waits and waits for
// what runs.
//
// All methods are safe for concurrent use, and may be called by the function that the pool runs (Wait would wait for
// itself, though).
type Pool[T any] struct {
	run  func(T)
	size int

	mu      sync.Mutex
	waiting fifo[T]       // empty unless running == size
	running int           // items that run, which is also the number of goroutines
	idle    chan struct{} // closed when nothing runs; nil while nobody asks
}

// NewPool returns a pool that runs at most size items at a time; a size below 1 means 1.
//
// A panic that run lets out ends the process, as it does on any goroutine. An item whose run calls runtime.Goexit, as
// a test's FailNow does, has ended.
func NewPool[T any](size int, run func(T)) *Pool[T] {
	return &Pool[T]{run: run, size: max(size, 1)}
}

// Add starts items, or has them wait. It never blocks; the caller bounds what waits.
func (p *Pool[T]) Add(items ...T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, item := range items {
		if p.running < p.size {
			p.running++
			go p.work(item)
		} else {
			p.waiting.push(item)
		}
	}
}

// Withdraw takes back the waiting items for which want is true, in their order; a nil want means all. An item is
// either returned or run, never both. want is called under the pool's lock and must not call the pool.
func (p *Pool[T]) Withdraw(want func(T) bool) []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.remove(want)
}

// Waiting returns how many items have not been started.
func (p *Pool[T]) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.len()
}

// Running returns how many items have been started and have not ended.
func (p *Pool[T]) Running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// Wait blocks until nothing runs and nothing waits, if only for an instant, and returns nil; or until ctx ends, and
// returns its cause.
func (p *Pool[T]) Wait(ctx context.Context) error {
	p.mu.Lock()
	if p.running == 0 {
		p.mu.Unlock()
		return nil
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()

	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// work runs item and then whatever waits. It is a goroutine, counted in running; it ends by itself.
func (p *Pool[T]) work(item T) {
	returned := false
	defer func() {
		// Goexit in run cannot be stopped: the place goes to a new goroutine.
		if returned {
			return
		}
		if next, ok := p.next(); ok {
			go p.work(next)
		}
	}()
	for ok := true; ok; item, ok = p.next() {
		p.run(item)
	}
	returned = true
}

// next ends the item of the calling goroutine and hands it another one, or gives its place up.
func (p *Pool[T]) next() (item T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting.len() > 0 {
		return p.waiting.pop(), true
	}
	p.running--
	if p.running == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
	return item, false
}
