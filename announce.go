package dispatch

import (
	"context"
	"maps"
	"slices"
	"time"
)

const (
	announceBatchHints = 500
	announcePatience   = 2 * time.Second
)

// announcing is one hint on its way to all processes.
type announcing struct {
	hint Hint
	done chan struct{} // closed when it was sent, or could not be
}

// announce tells all processes that a queue has something to do, after the store has changed. Announcements made at the
// same moment share one message. The returned channel is closed when it is done.
func (c *Client) announce(h Hint) <-chan struct{} {
	c.hear([]Hint{h})
	return c.tell(h)
}

// tell tells all other processes.
func (c *Client) tell(h Hint) <-chan struct{} {
	a := announcing{hint: h, done: make(chan struct{})}
	c.announces.add("", a)
	return a.done
}

// await waits until an announcement is made or ctx ends. What it announces is stored all the same.
func await(ctx context.Context, announced <-chan struct{}) {
	select {
	case <-announced:
	case <-ctx.Done():
	}
}

// sendAnnounces sends one message. When that fails nothing is lost: the leader looks at every queue now and then. But of
// this process's own queues it takes care itself at once.
func (c *Client) sendAnnounces(_ string, batch []announcing) {
	ctx, cancel := context.WithTimeout(context.Background(), announcePatience)
	defer cancel()
	soonest := make(map[string]Hint, len(batch))
	var hints []Hint
	for _, a := range batch {
		if a.hint.Revoked != 0 { // each counts
			hints = append(hints, a.hint)
			continue
		}
		h, known := soonest[a.hint.Queue]
		if !known || a.hint.Wait < h.Wait {
			h.Queue, h.Wait = a.hint.Queue, a.hint.Wait
		}
		h.Changed, h.HandOver = h.Changed || a.hint.Changed, h.HandOver || a.hint.HandOver
		soonest[h.Queue] = h
	}
	hints = slices.AppendSeq(hints, maps.Values(soonest))
	if err := c.store.Announce(ctx, hints); err != nil {
		c.log.Warn("dispatch: workers could not be told of new tasks; they will find them later",
			"queues", len(hints), "error", err)
		for i := range hints {
			hints[i].HandOver = true
		}
		c.hear(hints)
	}
	for _, a := range batch {
		close(a.done)
	}
}

// overdue says whether the head of a queue has waited so long that its announcement may have been lost with the process
// that should have made it. Then it is made again, for one queue a second.
func (c *Client) overdue(wait time.Duration) bool {
	if wait > -time.Second {
		return false
	}
	now := c.clock.Now().UnixNano()
	last := c.overdueAt.Load()
	return now-last >= int64(time.Second) && c.overdueAt.CompareAndSwap(last, now)
}
