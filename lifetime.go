package dispatch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

var errNeverStarted = errors.New("dispatch: stopped before it was started")

// lifetime is the life of a dispatcher: new, started, stopping, stopped. It owns the dispatcher's long-running
// goroutines and three contexts, which end one after another.
type lifetime struct {
	// loops ends when Stop begins: nothing new is looked for.
	loops    context.Context
	endLoops context.CancelFunc
	// reports ends when everything that can be settled is: claims and settles in flight use it.
	reports    context.Context
	endReports context.CancelFunc
	// beats ends last: until then the process is alive.
	beats    context.Context
	endBeats context.CancelFunc

	draining atomic.Bool // the stop has begun

	mu       sync.Mutex
	state    lifeState
	atStop   func() bool    // called when the stop begins
	group    sync.WaitGroup // the loops
	late     sync.WaitGroup // what runs until reports ends
	finished chan struct{}  // closed when stopped
	err      error          // set before finished is closed
}

type lifeState int

const (
	lifeNew lifeState = iota
	lifeStarted
	lifeStopping
)

func (l *lifetime) init() {
	l.loops, l.endLoops = context.WithCancel(context.Background())
	l.reports, l.endReports = context.WithCancel(context.Background())
	l.beats, l.endBeats = context.WithCancel(context.Background())
	l.finished = make(chan struct{})
}

// start says whether this is the first start, and there was no stop before it; then it calls launch, which starts the
// loops and returns what is to be called when the stop begins. A stop that comes meanwhile waits for that.
func (l *lifetime) start(launch func() (atStop func() bool)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != lifeNew {
		return false
	}
	l.atStop = launch()
	l.state = lifeStarted
	return true
}

// goLoop runs f until it returns, which it does soon after its context ends.
func (l *lifetime) goLoop(f func(context.Context)) {
	l.group.Go(func() { f(l.loops) })
}

// goLate runs f until it returns, which it does soon after reports ends.
func (l *lifetime) goLate(f func(context.Context)) {
	l.late.Go(func() { f(l.reports) })
}

// stop begins the stop, once: drain runs on a goroutine of its own and says how it went.
func (l *lifetime) stop(drain func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining.Store(true)
	switch l.state {
	case lifeNew:
		l.state = lifeStopping
		l.err = errNeverStarted
		l.endAll()
		close(l.finished)
	case lifeStarted:
		l.state = lifeStopping
		l.atStop()
		go func() {
			l.err = drain()
			l.endAll()
			close(l.finished)
		}()
	}
}

func (l *lifetime) endAll() {
	l.endLoops()
	l.endReports()
	l.endBeats()
}

// wait blocks until the dispatcher is stopped.
func (l *lifetime) wait() error {
	<-l.finished
	return l.err
}
