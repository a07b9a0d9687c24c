package worker

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFIFOAgainstSlice walks a queue and a slice through the same random steps.
func TestFIFOAgainstSlice(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 14))
	var q fifo[int]
	var model []int
	last := 0
	for step := range 100_000 {
		switch action := random.IntN(1000); {
		case action < 500+step/1000%2*100: // phases of growth and of decline
			last++
			q.push(last)
			model = append(model, last)
		case action < 990:
			if len(model) == 0 {
				continue
			}
			if got := q.pop(); got != model[0] {
				t.Fatalf("step %d: popped %d, want %d", step, got, model[0])
			}
			model = model[1:]
		case action < 999:
			divisor := 1 + random.IntN(5)
			want := func(i int) bool { return i%divisor == 0 }
			var removed, kept []int
			for _, i := range model {
				if want(i) {
					removed = append(removed, i)
				} else {
					kept = append(kept, i)
				}
			}
			if got := q.remove(want); !slices.Equal(got, removed) {
				t.Fatalf("step %d: removed %v, want %v", step, got, removed)
			}
			model = kept
		default:
			if got := q.remove(nil); !slices.Equal(got, model) {
				t.Fatalf("step %d: removed %v, want %v", step, got, model)
			}
			model = nil
		}
		if q.len() != len(model) {
			t.Fatalf("step %d: %d items, want %d", step, q.len(), len(model))
		}
	}
}

// TestFIFOForgets: what has left the queue can be collected, and a burst leaves no large ring behind.
func TestFIFOForgets(t *testing.T) {
	var q fifo[*int]
	fill := func(n int) {
		for range n {
			q.push(new(int))
		}
	}
	check := func(what string) {
		t.Helper()
		held := 0
		for _, p := range q.ring {
			if p != nil {
				held++
			}
		}
		if held != q.len() {
			t.Errorf("after %s: %d references to %d items", what, held, q.len())
		}
	}
	fill(100)
	for range 60 {
		q.pop()
	}
	check("pop")
	fill(70)
	check("going round")
	i := 0
	q.remove(func(*int) bool { i++; return i%3 != 0 })
	check("remove")
	q.remove(nil)
	check("remove of all")
	fill(10 * keptRing)
	for q.len() > 0 {
		q.pop()
	}
	if len(q.ring) != 0 {
		t.Errorf("a burst left a ring of %d", len(q.ring))
	}
}
