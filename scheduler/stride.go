package scheduler

// A pass is a point on the scale by which ready queues take turns: the lowest goes first. Each task moves its queue up
// by a stride, divided by the queue's weight, so that over time queues get tasks in proportion to their weights.
//
// A pass does not overflow. No pass moves but by leasing, so none is ever above stride times the number of tasks and
// claims of the process: 2^64 is reached after 2^48 of them, which at a million per second takes nine years, and at
// the hundred thousand that one process can do, ninety.
type pass uint64

const stride = 1 << 16

// after returns the pass of a queue of the given weight that stood at p and had a claim of n tasks. A claim that leased
// nothing counts as one task: it has cost the store a call, and the others a turn.
func (p pass) after(n, weight int) pass {
	return p + max(pass(max(n, 1))*stride/pass(weight), 1)
}
