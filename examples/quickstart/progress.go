package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dispatchkit/dispatch"
)

// tally counts what the dispatcher's observer and the handler see.
type tally struct {
	attempts, retries, succeeded atomic.Int64

	mu    sync.Mutex
	guest map[string]bool
}

func (t *tally) observe(e dispatch.Event) {
	switch e.Outcome {
	case dispatch.Succeeded:
		t.attempts.Add(1)
		t.succeeded.Add(1)
	case dispatch.Retry:
		t.attempts.Add(1)
		t.retries.Add(1)
	}
}

func (t *tally) greeted(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.guest == nil {
		t.guest = make(map[string]bool)
	}
	t.guest[name] = true
}

func (t *tally) names() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.guest)
}

// wait returns when all tasks have succeeded or ctx ends. On a terminal it shows how far they are.
func wait(ctx context.Context, t *tally, live bool) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for t.succeeded.Load() < httpTasks+handlerTasks && ctx.Err() == nil {
		if live {
			fmt.Printf("\r%d of %d delivered, %d to be repeated ", t.succeeded.Load(), httpTasks+handlerTasks, t.retries.Load())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	if live {
		fmt.Print("\r\033[K")
	}
}
