package redisstore

import (
	"crypto/rand"
	"slices"
	"sync"
)

// lanes number the calls of one store that change tasks or queues for a client, so that one that runs twice is known:
// the second run may come when the tasks of the first have long been worked off. A call has its lane to itself, and the
// numbers in a lane rise.
type lanes struct {
	name string // unique to this store

	mu     sync.Mutex
	free   []int // lanes that nobody is in, sorted from the highest
	opened int   // lanes so far
	number int64 // of the last call
}

func newLanes() lanes { return lanes{name: rand.Text()[:13]} }

// enter takes the lowest lane that is free, so that there are no more of them than calls at once.
func (l *lanes) enter() (lane int, number int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	if n := len(l.free); n > 0 {
		lane = l.free[n-1]
		l.free = l.free[:n-1]
		return lane, l.number
	}
	l.opened++
	return l.opened - 1, l.number
}

func (l *lanes) leave(lane int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, _ := slices.BinarySearchFunc(l.free, lane, func(a, b int) int { return b - a })
	l.free = slices.Insert(l.free, at, lane)
}
