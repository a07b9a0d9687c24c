package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
)

// claiming is a claim on its way, and again until it is answered.
type claiming struct {
	*random
	request dispatch.ClaimRequest

	sent       bool // before this claiming began
	remembered bool // by the store: it answers the same, as far as the leases still stand
	missing    bool // the queue
	repeated   bool // this time it is answered from memory, with want
	want       []string
	n          int
	block      dispatch.Block
	wait       time.Duration
	ready      []*modelTask
	leased     []dispatch.Leased
	reply      *dispatch.ClaimReply
}

func (c *claiming) make() {
	r, w := c.random, c.request.Worker
	r.busy[w] = true
	defer delete(r.busy, w)
	for {
		var err error
		way := by("claim", c.model)
		way.learn = c.learn
		c.reply = sent(r, way, func() (reply *dispatch.ClaimReply) {
			reply, err = r.store.Claim(r.ctx, c.request)
			return reply
		})
		switch {
		case r.Failed():
			return
		case errors.Is(err, dispatch.ErrUncertain) && r.store != r.plain:
			c.request = again(c.request)
			continue
		case c.missing:
			r.fails("claim", err, dispatch.ErrQueueNotFound)
			return
		}
		r.ok(err)
		c.check()
		return
	}
}

// model is what the store does with the claim.
func (c *claiming) model(bool) {
	m := c.random.model
	c.repeated = false
	if c.missing = !m.exists; c.missing {
		return
	}
	if c.sent && c.remembered {
		c.repeated, c.want = true, nil
		for _, l := range c.leased {
			if m.current(l.Task.ID, l.Lease) != nil {
				c.want = append(c.want, string(l.Task.ID))
			}
		}
		return
	}
	c.ready = m.ready()
	c.n, c.block, c.wait = m.claim(c.request.Budget)
	c.sent, c.remembered = true, c.n > 0 || c.request.Repeat
}

// learn finds out what a claim has leased whose answer is lost.
func (c *claiming) learn(lost bool) {
	if !lost || c.missing || c.repeated {
		return
	}
	r := c.random
	var leased []dispatch.Leased
	for _, l := range r.held(c.request.Worker) {
		if l.Lease.Token > r.model.lastToken {
			leased = append(leased, l)
		}
	}
	slices.SortFunc(leased, byToken)
	c.take(leased, func(l *dispatch.Leased, t *modelTask) {
		l.At, l.Urgent = r.start.Add(r.model.now), t.urgent // which only the answer to a claim tells
	})
	r.compare()
}

// take has the model lease what the store has leased: it decides only which of two tasks comes first that are due at the same
// moment.
func (c *claiming) take(leased []dispatch.Leased, check func(*dispatch.Leased, *modelTask)) {
	r := c.random
	equal(r.env, "leased", len(leased), c.n)
	if r.Failed() {
		return
	}
	for i := range leased {
		l := &leased[i]
		t := r.model.tasks[string(l.Task.ID)]
		if t == nil || t.state != dispatch.TaskWaiting || t.rank() != c.ready[i].rank() {
			r.Fatalf("task %s was leased, which is %+v", l.Task.ID, t)
		}
		check(l, t)
	}
	for _, l := range slices.SortedFunc(slices.Values(leased), byToken) {
		if l.Lease.Token <= r.model.lastToken {
			r.Errorf("token %d after %d", l.Lease.Token, r.model.lastToken)
		}
		r.model.lastToken = l.Lease.Token
	}
	r.model.leased(leased)
	r.given = append(r.given, leased...)
	c.leased = leased
}

// check compares the answer, which has arrived.
func (c *claiming) check() {
	r := c.random
	if c.repeated {
		equal(r.env, "leased again", leasedIDs(c.reply.Leased), c.want)
		for _, l := range c.reply.Leased {
			equal(r.env, "lease", l.Lease, r.model.tasks[string(l.Task.ID)].lease.Lease)
		}
		return
	}
	for _, l := range c.reply.Leased {
		r.ok(l.Err)
	}
	c.take(c.reply.Leased, func(l *dispatch.Leased, t *modelTask) { r.leasedAs(*l, t) })
	equal(r.env, "block", c.reply.Block, c.block)
	equal(r.env, "wait", c.reply.Wait, c.wait)
	next, leaseEnd := r.model.waits()
	r.sameWait("next", c.reply.Next, next)
	r.sameWait("lease end", c.reply.LeaseEnd, leaseEnd)
}
