package storetest

import (
	"slices"

	"github.com/dispatchkit/dispatch/cluster"
)

// call is a call of a store that is on its way.
type call struct {
	steps []step
	// learn reads from the store, after the last step, what the model cannot know.
	learn func(lost bool)
	// alone keeps the others out once the last step was made: the model has done all then, and the server has not.
	alone bool

	begun bool // the last step was made
	lost  int  // answers
}

// step is a transition of the store that a call goes by, and what it is in the model, which comes just before each time the
// server does it. again says that the server has done it for this call before, and that the answer was lost.
type step struct {
	transition string
	model      func(again bool)
	again      bool
}

// by is a call that goes by one transition.
func by(transition string, model func(again bool)) *call {
	return &call{steps: []step{{transition: transition, model: model}}}
}

// sent makes a call. One of a client that goes through at once is one step of the model, too.
func sent[T any](r *random, c *call, make func() T) T {
	if r.store == r.plain {
		for _, s := range c.steps {
			s.model(false)
		}
		reply := make()
		if c.learn != nil {
			c.learn(false)
		}
		return reply
	}
	r.current = c
	defer func() { r.current = nil }()
	return make()
}

// between is where a request of one of the clients waits: others make calls, then the server does what it asks, and sometimes
// nobody hears of that.
func (r *random) between(transition string, send func()) (lost bool) {
	c := r.current
	if c == nil || r.Failed() {
		send()
		return false
	}
	if !c.begun || !c.alone {
		r.others()
	}
	i := slices.IndexFunc(c.steps, func(s step) bool { return s.transition == transition })
	if i >= 0 {
		c.steps[i].model(c.steps[i].again)
		c.begun = c.begun || i == len(c.steps)-1
	}
	send()
	if lost = c.lost < 3 && r.IntN(4) == 0; lost {
		c.lost++
		r.did("  the answer of %s is lost", transition)
	}
	if i >= 0 {
		c.steps[i].again = lost
		if c.learn != nil {
			r.aside(func() { c.learn(lost) })
		}
	}
	return lost
}

// aside does something while a call is on its way.
func (r *random) aside(f func()) {
	store, c := r.store, r.current
	r.store, r.current = r.plain, nil
	f()
	r.store, r.current = store, c
}

// others have calls made by other clients.
func (r *random) others() {
	for r.IntN(2) == 0 && !r.Failed() {
		r.aside(func() {
			r.did("  meanwhile")
			r.nested = true
			r.step()
			r.nested = false
			r.compare()
		})
	}
}

// worker picks one that has no call on its way, if there is one.
func (r *random) worker() (w cluster.WorkerID, free bool) {
	idle := slices.DeleteFunc(slices.Clone(workers), func(w cluster.WorkerID) bool { return r.busy[w] })
	if len(idle) == 0 {
		return "", false
	}
	return pick(r, idle), true
}
