package worker

import (
	"context"
	"sync"
)

// Pool runs one function over items, at most a fixed number of them at a time, and of each lane at most as many as Bound
// has said. Items beyond wait in their lanes, and the lanes take turns; the items of a lane are started in the order in which
// they were added. So the many of one lane do not stand in the way of another's.
//
// A goroutine goes on from item to item without a pause, and ends when none may start: an idle pool holds no goroutine and
// needs no Close. Who stops one withdraws what waits and waits for what runs. Each goroutine has the next one started before
// it runs its first item, if there is more to do, and there is always only one on its way. So items that take no time are
// run by few goroutines, and items that take long have each their own at once.
//
// All methods are safe for concurrent use, and may be called by the function that the pool runs (Wait would wait for
// itself, though).
type Pool[T any] struct {
	run     func(T)
	size    int
	initial int // bound of new lanes

	mu      sync.Mutex
	lanes   map[string]*lane[T] // those with items, and a few more
	turns   fifo[*lane[T]]      // those in which items wait, by turn; none of them may start one
	waiting int                 // items in lanes
	running int                 // items that run, or are started
	started fifo[started[T]]    // items that have their place, and no goroutine has got to them yet
	coming  bool                // a goroutine was started that has not got to its first item
	idle    chan struct{}       // closed when nothing runs; nil while nobody asks
}

// lane is what a pool knows of the items that were added under one name.
type lane[T any] struct {
	name    string
	bound   int
	running int
	waiting fifo[T]
}

// started is an item that has a place.
type started[T any] struct {
	lane *lane[T]
	item T
}

// keptLanes is how many lanes are kept when they are empty; more leave no trace.
const keptLanes = 64

// NewPool returns a pool that runs at most size items at a time; a size below 1 means 1. bound is how many items of a lane
// run at once of which Bound has said nothing; it may be 0.
//
// A panic that run lets out ends the process, as it does on any goroutine. An item whose run calls runtime.Goexit, as
// a test's FailNow does, has ended.
func NewPool[T any](size, bound int, run func(T)) *Pool[T] {
	return &Pool[T]{run: run, size: max(size, 1), initial: bound, lanes: make(map[string]*lane[T])}
}

// Add starts items, or has them wait in a lane. It never blocks; the caller bounds what waits.
func (p *Pool[T]) Add(name string, items ...T) {
	if len(items) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lane(name)
	if l.waiting.len() == 0 {
		p.turns.push(l)
	}
	for _, item := range items {
		l.waiting.push(item)
	}
	p.waiting += len(items)
	p.start()
}

// Bound says how many items of a lane run at once from now on, and returns how many do. Those beyond go on, and nobody
// follows them.
func (p *Pool[T]) Bound(name string, n int) (running int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lane(name)
	l.bound = n
	p.start()
	p.forget(l)
	return l.running
}

// Freeze has no item of a lane start until Bound says how many may, and returns how many run.
func (p *Pool[T]) Freeze(name string) (running int) { return p.Bound(name, 0) }

// Withdraw takes back the waiting items for which want is true, those of each lane in their order; a nil want means all.
// An item is either returned or run, never both. want is called under the pool's lock and must not call the pool.
func (p *Pool[T]) Withdraw(want func(T) bool) (withdrawn []T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns.remove(func(l *lane[T]) bool {
		withdrawn = append(withdrawn, l.waiting.remove(want)...)
		p.forget(l)
		return l.waiting.len() == 0
	})
	p.waiting -= len(withdrawn)
	p.tellIdle()
	return withdrawn
}

// Waiting returns how many items have not been started.
func (p *Pool[T]) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
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
	if p.running == 0 && p.waiting == 0 {
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

// start starts what may start. p.mu is held.
func (p *Pool[T]) start() {
	for l, item, ok := p.take(); ok; l, item, ok = p.take() {
		p.started.push(started[T]{l, item})
	}
	p.follow()
}

// follow has a goroutine come for the items that are started. p.mu is held.
func (p *Pool[T]) follow() {
	if !p.coming && p.started.len() > 0 {
		p.coming = true
		go p.work()
	}
}

// work runs items for as long as any are started.
func (p *Pool[T]) work() {
	s, ok := p.first()
	defer func() {
		if ok { // Goexit in run cannot be stopped: what is started goes to a new goroutine
			p.mu.Lock()
			defer p.mu.Unlock()
			p.end(s.lane)
			p.follow()
		}
	}()
	for ; ok; s, ok = p.next(s.lane) {
		p.run(s.item)
	}
}

// first hands a goroutine that was started its first item, if no other one has got to it.
func (p *Pool[T]) first() (s started[T], ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.coming = false
	return p.pop()
}

// next ends an item of a lane on the calling goroutine and hands it another one, if there is one.
func (p *Pool[T]) next(ended *lane[T]) (s started[T], ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(ended)
	return p.pop()
}

// end ends an item of a lane, and has another one started in its place. p.mu is held.
func (p *Pool[T]) end(ended *lane[T]) {
	ended.running--
	p.running--
	// No second one can start: all places were taken, or those that wait were at their bounds.
	if l, item, ok := p.take(); ok {
		p.started.push(started[T]{l, item})
	}
	p.forget(ended)
	p.tellIdle()
}

// pop hands out the item that was started first, and has somebody come for the rest. p.mu is held.
func (p *Pool[T]) pop() (s started[T], ok bool) {
	if p.started.len() == 0 {
		return s, false
	}
	s = p.started.pop()
	p.follow()
	return s, true
}

// take counts the item as running whose turn it is among those that may start. p.mu is held.
func (p *Pool[T]) take() (l *lane[T], item T, ok bool) {
	for range p.turns.len() {
		l = *p.turns.at(0)
		if ok = p.mayStart(l); ok {
			item = l.waiting.pop()
			p.waiting--
			l.running++
			p.running++
		}
		switch {
		case l.waiting.len() == 0:
			p.turns.pop()
		case p.turns.len() > 1:
			p.turns.push(p.turns.pop())
		}
		if ok {
			return l, item, true
		}
	}
	return nil, item, false
}

// mayStart says whether a lane may start one more item. p.mu is held.
func (p *Pool[T]) mayStart(l *lane[T]) bool { return l.running < l.bound && p.running < p.size }

// lane returns a lane, and makes it if it is new. p.mu is held.
func (p *Pool[T]) lane(name string) *lane[T] {
	l := p.lanes[name]
	if l == nil {
		l = &lane[T]{name: name, bound: p.initial}
		p.lanes[name] = l
	}
	return l
}

// forget drops a lane of which there is nothing to know, if there are many. p.mu is held.
func (p *Pool[T]) forget(l *lane[T]) {
	if len(p.lanes) > keptLanes && l.running == 0 && l.waiting.len() == 0 && l.bound == p.initial {
		delete(p.lanes, l.name)
	}
}

// tellIdle wakes those who wait for an idle pool, when it is. p.mu is held.
func (p *Pool[T]) tellIdle() {
	if p.running == 0 && p.waiting == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}
