package scheduler

// heap is a binary min-heap of queues in the order of less. It is container/heap without the interface: a queue knows
// its index, so that it can be moved or removed from the middle without a search.
//
// Invariant: items[i].index == i, and no item is less than its parent.
type heap struct {
	less  func(a, b *queue) bool
	items []*queue
}

// min returns the first queue, or nil.
func (h *heap) min() *queue {
	if len(h.items) == 0 {
		return nil
	}
	return h.items[0]
}

func (h *heap) push(q *queue) {
	h.items = append(h.items, q)
	h.up(len(h.items)-1, q)
}

// remove takes q out, which is in the heap.
func (h *heap) remove(q *queue) {
	n := len(h.items) - 1
	last := h.items[n]
	h.items[n] = nil // a queue that is forgotten must not be kept alive by the array
	h.items = h.items[:n]
	if last != q {
		last.index = q.index
		h.items[q.index] = last
		h.fix(last)
	}
}

// fix restores the order after the key of q has changed.
func (h *heap) fix(q *queue) {
	if i := q.index; !h.up(i, q) {
		h.down(i, q)
	}
}

// up puts q, which is at i or about to be, as near to the root as it belongs, and reports whether that is above i.
func (h *heap) up(i int, q *queue) bool {
	start := i
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(q, h.items[parent]) {
			break
		}
		h.set(i, h.items[parent])
		i = parent
	}
	h.set(i, q)
	return i < start
}

// down puts q, which is at i, as far from the root as it belongs.
func (h *heap) down(i int, q *queue) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if right := child + 1; right < len(h.items) && h.less(h.items[right], h.items[child]) {
			child = right
		}
		if !h.less(h.items[child], q) {
			break
		}
		h.set(i, h.items[child])
		i = child
	}
	h.set(i, q)
}

func (h *heap) set(i int, q *queue) {
	h.items[i] = q
	q.index = i
}
