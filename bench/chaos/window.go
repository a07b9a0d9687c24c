package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// lateWrite is how long after its answer an ack or an outcome is written, at the very most.
const lateWrite = 500 * time.Millisecond

// window is a time of which a failover may have forgotten what queues were told: what only the primary had.
type window struct {
	from, to int64
	queues   []string // nil means all
	stored   bool     // enqueues too, and not only what workers do
}

// MayForget opens a window. What workers did in it may be done again; with stored, enqueues that were acknowledged in it may be
// lost.
func (r *Run) MayForget(from, to time.Time, stored bool, queues []string) {
	told := "all queues"
	if queues != nil {
		told = fmt.Sprint(queues)
	}
	r.Note("what %s were told from %v on may be forgotten, for %v", told, from.UnixMicro(), to.Sub(from))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.windows = append(r.windows, window{from.UnixMicro(), to.UnixMicro(), queues, stored})
}

// Forgotten says whether an event is in a window, and fits Bound.MayLose. An enqueue is in it if its call was: what the old primary
// has answered may have been on its way to the caller for as long as other parts of the call took.
func (r *Run) Forgotten(e audit.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.windows, func(w window) bool {
		began := e.At
		if e.Kind == audit.KindAck {
			if !w.stored {
				return false
			}
			began = min(e.Asked, e.At)
		}
		return w.from <= e.At && began <= w.to && (w.queues == nil || slices.Contains(w.queues, e.Queue))
	})
}
