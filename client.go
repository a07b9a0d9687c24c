package dispatch

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dispatchkit/dispatch/cluster"
)

// conflictTries bounds a call that reads, decides and writes, when others write at the same time.
const conflictTries = 10

// Client enqueues tasks and administers queues. It holds no goroutine while no call runs and needs no Close. It is safe
// for concurrent use.
type Client struct {
	store    Store
	acked    Store // what the caller is told of is written through it; the store itself, unless there is a Durability
	registry cluster.Store
	log      *slog.Logger
	clock    clockwork.Clock
	strict   bool
	keep     retention

	patience time.Duration // for one call to the store that enqueues

	ids       idSource
	enqueues  groupCommit[*enqueuing]
	announces groupCommit[announcing]
	// overdueAt is when an overdue queue was last announced again, in ns: at most once a second.
	overdueAt atomic.Int64
	fleet     fleetView
	waits     waitHub
	// trace is the hook TraceContext, or nil.
	trace func(context.Context) (traceparent, tracestate string)
	// hear tells the dispatcher of this process, if there is one, of a hint without the way through the store.
	hear func([]Hint)
}

// NewClient makes a client of a store. The error is a *FieldError.
func NewClient(store Store, o ClientOptions) (*Client, error) {
	if isNil(store) {
		return nil, fieldErrorf("Store", "is nil")
	}
	if o.Registry != nil && isNil(o.Registry) {
		return nil, fieldErrorf("ClientOptions.Registry", "is a nil pointer")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	keep := Options{DedupWindow: o.DedupWindow, RetentionFailed: o.RetentionFailed}.withDefaults()
	if err := keep.validate(); err != nil {
		return nil, within("ClientOptions", "Options", err)
	}
	c := newClient(store, o.Registry, o.Logger, clockwork.NewRealClock(), o.StrictQueues, keep.retention())
	if err := c.setDurability(o.Durability); err != nil {
		return nil, within("ClientOptions.Durability", "Durability", err)
	}
	c.trace = o.TraceContext
	return c, nil
}

func newClient(store Store, registry cluster.Store, log *slog.Logger, clock clockwork.Clock, strict bool, keep retention) *Client {
	if registry == nil {
		registry = store
	}
	c := &Client{
		store: store, acked: store, patience: enqueuePatience, registry: registry, log: log, clock: clock, strict: strict, keep: keep,
		hear: func([]Hint) {},
	}
	c.enqueues = groupCommit[*enqueuing]{
		send: c.sendEnqueues, maxItems: enqueueBatchTasks, maxBytes: enqueueBatchBytes, size: (*enqueuing).size,
		second: enqueueSecond,
	}
	c.announces = groupCommit[announcing]{
		send: c.sendAnnounces, maxItems: announceBatchHints, maxBytes: 1, size: func(announcing) int { return 0 },
	}
	c.waits = waitHub{store: store, log: newLogger(log), clock: clock}
	return c
}

// setDurability is called before the client is used.
func (c *Client) setDurability(d Durability) (err error) {
	d = d.withDefaults()
	c.patience += d.Timeout
	c.acked, err = d.ackedBy(c.store)
	return err
}
