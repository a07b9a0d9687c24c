package scheduler

// heap is a binary min-heap of queues that keep their index, so that any of them can be moved or taken out.
type heap struct {
	items []*queue
	less  func(a, b *queue) bool
}

// first is the least queue, or nil.
func (h *heap) first() *queue {
	if len(h.items) == 0 {
		return nil
	}
	return h.items[0]
}

func (h *heap) add(q *queue) {
	q.index = len(h.items)
	h.items = append(h.items, q)
	h.up(q.index)
}

func (h *heap) remove(q *queue) {
	i, last := q.index, len(h.items)-1
	h.swap(i, last)
	h.items[last] = nil
	h.items = h.items[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
}

func (h *heap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(h.items[i], h.items[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *heap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			return
		}
		if right := child + 1; right < len(h.items) && h.less(h.items[right], h.items[child]) {
			child = right
		}
		if !h.less(h.items[child], h.items[i]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

func (h *heap) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].index, h.items[j].index = i, j
}
