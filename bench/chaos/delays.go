package main

import (
	"slices"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// pickUp is how a task came from its producer to a handler: when its enqueue was acknowledged, and when it was first started.
type pickUp struct {
	queue          string
	acked, started time.Time
}

func (p pickUp) delay() time.Duration { return p.started.Sub(p.acked) }

// pickUps are those of the tasks whose enqueue was acknowledged between two instants, and which were due at once and have started,
// in the order of their starts.
func pickUps(h *audit.History, from, to time.Time) []pickUp {
	acked := map[audit.TaskKey]int64{}
	var out []pickUp
	for i := range h.Events {
		e := &h.Events[i]
		between := from.UnixMicro() <= e.At && e.At <= to.UnixMicro()
		if between && e.Kind == audit.KindAck && e.Result == audit.AckStored && e.NotBefore == 0 {
			acked[e.Task()] = e.At
		}
	}
	for i := range h.Events { // a start may be written before its ack
		e := &h.Events[i]
		at, ok := acked[e.Task()]
		if e.Kind != audit.KindStart || !ok {
			continue
		}
		delete(acked, e.Task())
		out = append(out, pickUp{e.Queue, time.UnixMicro(at), time.UnixMicro(e.At)})
	}
	return out
}

// ofQueues keeps the pickUps of some queues, by queue.
func ofQueues(all []pickUp, queues []string) map[string][]pickUp {
	out := map[string][]pickUp{}
	for _, p := range all {
		if slices.Contains(queues, p.queue) {
			out[p.queue] = append(out[p.queue], p)
		}
	}
	return out
}
