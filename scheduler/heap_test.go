package scheduler

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestHeap takes queues in and out of a heap at random, and changes their keys.
func TestHeap(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 71))
	h := heap{less: lower}
	var in, out []*queue
	for range 200 {
		out = append(out, new(queue))
	}
	take := func(from *[]*queue) *queue {
		i := random.IntN(len(*from))
		q := (*from)[i]
		*from = slices.Delete(*from, i, i+1)
		return q
	}
	for step := range 20_000 {
		switch action := random.IntN(3); {
		case action == 0 && len(out) > 0:
			q := take(&out)
			q.pass = pass(random.IntN(100))
			h.push(q)
			in = append(in, q)
		case action == 1 && len(in) > 0:
			q := take(&in)
			h.remove(q)
			out = append(out, q)
		case action == 2 && len(in) > 0:
			q := in[random.IntN(len(in))]
			q.pass = pass(random.IntN(100))
			h.fix(q)
		}
		if err := h.check(); err != nil || len(h.items) != len(in) {
			t.Fatalf("step %d: %d items, want %d: %v", step, len(h.items), len(in), err)
		}
		for _, q := range in {
			if q.pass < h.min().pass {
				t.Fatalf("step %d: min is not the least", step)
			}
		}
	}
}
