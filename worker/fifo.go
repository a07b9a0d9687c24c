package worker

// fifo is a first in, first out queue in a ring. The zero value is empty. It keeps no reference to what has left it.
type fifo[T any] struct {
	ring []T // its length is 0 or a power of two
	head int // index of the first item
	n    int // number of items
}

const (
	minRing = 16
	// keptRing is the largest ring that is kept when the queue is empty, for a burst to leave no trace.
	keptRing = 1024
)

func (q *fifo[T]) len() int { return q.n }

// at returns the place of the i-th item; i may be len, for the first free place, if there is one.
func (q *fifo[T]) at(i int) *T { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

func (q *fifo[T]) push(item T) {
	if q.n == len(q.ring) {
		grown := make([]T, max(2*q.n, minRing))
		copied := copy(grown, q.ring[q.head:])
		copy(grown[copied:], q.ring[:q.head])
		q.ring, q.head = grown, 0
	}
	*q.at(q.n) = item
	q.n++
}

// pop removes the first item. The queue is not empty.
func (q *fifo[T]) pop() T {
	item := *q.at(0)
	clear(q.ring[q.head : q.head+1])
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	q.trim()
	return item
}

// remove removes and returns the items for which want is true, nil meaning all; the others keep their order.
func (q *fifo[T]) remove(want func(T) bool) (removed []T) {
	kept := 0
	for i := range q.n {
		item := *q.at(i)
		if want == nil || want(item) {
			removed = append(removed, item)
		} else {
			*q.at(kept) = item
			kept++
		}
	}
	var none T
	for i := kept; i < q.n; i++ {
		*q.at(i) = none
	}
	q.n = kept
	q.trim()
	return removed
}

func (q *fifo[T]) trim() {
	if q.n == 0 && len(q.ring) > keptRing {
		q.ring, q.head = nil, 0
	}
}
