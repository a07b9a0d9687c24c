package scheduler

// A pass is a point on the scale by which queues take turns: the lowest goes first. Each task moves its queue up by a
// stride divided by the queue's weight, so that over time queues get tasks in proportion to their weights.
//
// A pass does not overflow. Only a claim moves one up, so none is above stride times the tasks and claims of the whole
// process: 2^64 is reached after 2^48 of them, which at a million per second takes nine years, and at the hundred
// thousand that one process can do, ninety.
type pass uint64

const stride = 1 << 16

// after returns where a queue of the given weight stands that stood at p and had a claim of n tasks. A claim of none
// counts as one task: it has cost the store a call, and the others a turn.
func (p pass) after(n, weight int) pass {
	return p + max(pass(max(n, 1))*stride/pass(weight), 1)
}

// less returns the pass n tasks of weight 1 before p.
func (p pass) less(n int) pass {
	return p - min(p, pass(n)*stride)
}
