package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/bench/chaos/faultproxy"
	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/redisstore"
)

// leaseClient works on tasks with the store alone: it claims, extends and settles, and now and then sweeps what others have left.
// What it has settled it may settle again. It belongs to one goroutine.
type leaseClient struct {
	number int
	store  *redisstore.Store
	proxy  *faultproxy.Proxy // its own
	random *rand.Rand
	book   *leaseBook

	worker cluster.WorkerID
	seq    int64
	held   []heldLease
}

// heldLease is a lease that a client takes for its own, or has read to sweep it.
type heldLease struct {
	dispatch.Leased
	swept bool
}

// leaseFor is the timeout of the tasks, and leaseGrace what a claim adds to it.
const (
	leaseFor   = 20 * time.Millisecond
	leaseGrace = 20 * time.Millisecond
)

// run works until over says so.
func (c *leaseClient) run(ctx context.Context, over func() bool) error {
	c.disturb()
	for !over() && ctx.Err() == nil {
		if c.random.IntN(6) == 0 {
			c.disturb()
		}
		var err error
		switch n := c.random.IntN(10); {
		case n < 1:
			err = c.sweep(ctx)
		case len(c.held) == 0 || n < 4:
			err = c.claim(ctx)
		case n < 6:
			err = c.extend(ctx)
		default:
			err = c.settle(ctx)
		}
		if err != nil {
			return fmt.Errorf("client %d: %w", c.number, err)
		}
		if c.random.IntN(5) == 0 {
			Sleep(ctx, time.Duration(c.random.IntN(50))*time.Millisecond) // so that leases end
		}
	}
	return nil
}

// disturb changes what the client's network does: it loses a part of the requests or of the replies, late or not.
func (c *leaseClient) disturb() {
	share, random := 0.05+0.3*c.random.Float64(), rand.New(rand.NewPCG(c.random.Uint64(), 0))
	c.proxy.Lose(faultproxy.Loss{
		Reply: c.random.IntN(2) == 0, Match: func(faultproxy.Request) bool { return random.Float64() < share },
	})
	c.proxy.Delay(time.Duration(max(c.random.IntN(20)-10, 0)) * time.Millisecond)
}

// bounded bounds a call; once in a while so that it may be given up before there is an answer.
func (c *leaseClient) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := 5 * time.Second
	if c.random.IntN(20) == 0 && c.book.mayGiveUp(&c.book.unknown) {
		limit = time.Duration(1+c.random.IntN(30)) * time.Millisecond
	}
	return context.WithTimeout(ctx, limit)
}

// isUnanswered says of an error that the call may have taken effect, or may still.
func isUnanswered(err error) bool {
	return errors.Is(err, dispatch.ErrUncertain) || errors.Is(err, context.DeadlineExceeded)
}

// claim asks for tasks, again under the same number until there is an answer. Once in a while it dies instead: under its next name
// it knows nothing of what it may have been given.
func (c *leaseClient) claim(ctx context.Context) error {
	c.seq++
	r := dispatch.ClaimRequest{Queue: c.book.queue, Worker: c.worker, Seq: c.seq, Budget: 1 + c.random.IntN(3), Grace: leaseGrace}
	for op := (audit.Op{Client: c.number, Call: c.book.now(), Kind: audit.OpClaim}); ; r.Repeat = true {
		if r.Repeat {
			op.Again = c.book.now()
		}
		reply, err := c.store.Claim(ctx, r)
		switch {
		case err == nil:
			op.Return, op.Known = c.book.now(), true
			c.book.claimed(op, reply.Leased)
			for _, l := range reply.Leased {
				c.held = append(c.held, heldLease{l, false})
			}
			return nil
		case !isUnanswered(err) || ctx.Err() != nil:
			return err
		case c.random.IntN(20) == 0 && c.book.mayGiveUp(&c.book.unknownClaims):
			c.book.addToAll(op)
			c.worker, c.seq, c.held = c.worker+"x", 0, nil
			return nil
		}
	}
}

// sweep reads leases that have ended.
func (c *leaseClient) sweep(ctx context.Context) error {
	leases, _, err := c.store.ExpiredLeases(ctx, c.book.queue, 1+c.random.IntN(3))
	for _, l := range leases {
		c.held = append(c.held, heldLease{l, true})
	}
	return err
}

// pick is one of the leases, mostly one of the newest: the others are not current any more.
func (c *leaseClient) pick() int {
	if n := len(c.held); n > 2 && c.random.IntN(4) > 0 {
		return n - 1 - c.random.IntN(2)
	}
	return c.random.IntN(len(c.held))
}

func (c *leaseClient) extend(ctx context.Context) error {
	l := &c.held[c.pick()]
	op := audit.Op{Client: c.number, Call: c.book.now(), Kind: audit.OpExtend, Token: l.Lease.Token}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	applied, err := c.store.Extend(ctx, c.book.queue, []dispatch.Extension{{ID: l.Task.ID, Lease: l.Lease, For: leaseFor + leaseGrace}})
	_, err = c.answered(l, op, applied, err)
	return err
}

// settle gives a task back, or ends it, and forgets the lease in half of the cases.
func (c *leaseClient) settle(ctx context.Context) error {
	i := c.pick()
	l := c.held[i]
	if c.random.IntN(2) == 0 {
		c.held = slices.Delete(c.held, i, i+1)
	}
	item := dispatch.Settlement{ID: l.Task.ID, Lease: l.Lease, Outcome: dispatch.Released}
	op := audit.Op{Client: c.number, Call: c.book.now(), Kind: audit.OpSettle, Token: l.Lease.Token}
	if op.Final = !l.swept && c.random.IntN(8) == 0; op.Final {
		item.Outcome = dispatch.Succeeded
		c.book.event(audit.KindEnd, &l.Leased, audit.EndOK)
	}
	c.seq++
	r := dispatch.SettleRequest{Queue: c.book.queue, Worker: c.worker, Seq: c.seq, Items: []dispatch.Settlement{item}}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	reply, err := c.store.Settle(ctx, r)
	op, err = c.answered(&l, op, reply.Applied, err)
	switch {
	case op.Applied:
		c.book.event(audit.KindOutcome, &l.Leased, string(item.Outcome))
	case op.Final && !op.Known:
		c.book.event(audit.KindOutcome, &l.Leased, audit.OutcomeDiscarded)
	}
	return err
}

// answered writes a call down as what it came to.
func (c *leaseClient) answered(l *heldLease, op audit.Op, applied []bool, err error) (audit.Op, error) {
	op.Return = c.book.now()
	switch {
	case err == nil:
		op.Known, op.Applied = true, applied[0]
	case !isUnanswered(err):
		return op, err
	}
	c.book.add(l.Task.ID, op)
	if op.Applied && l.swept && op.Kind == audit.OpSettle {
		c.book.mu.Lock()
		c.book.tally.Swept++
		c.book.mu.Unlock()
	}
	return op, nil
}
