package dispatch

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"
)

// idAlphabet has 64 characters in the order of their bytes, so that IDs sort like the numbers they stand for.
const idAlphabet = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"

// idSource generates task IDs of 20 characters: 42 bits of milliseconds and 78 random bits. IDs made in the same
// millisecond count up from the first one by random steps, so that the IDs of one source always rise.
type idSource struct {
	mu     sync.Mutex
	millis uint64
	high   uint16 // 14 random bits
	low    uint64 // 64 random bits that count up
	pool   [512]byte
	left   int // unread bytes of pool, at its end
}

func (s *idSource) next(now time.Time) TaskID {
	s.mu.Lock()
	millis := uint64(now.UnixMilli()) & (1<<42 - 1)
	if millis > s.millis {
		s.millis = millis
		s.high = binary.BigEndian.Uint16(s.random(2)) >> 2
		s.low = binary.BigEndian.Uint64(s.random(8)) >> 1 // the top bit leaves room to count
	} else {
		s.low += 1 + uint64(binary.BigEndian.Uint32(s.random(4)))
	}
	millis, high, low := s.millis, s.high, s.low
	s.mu.Unlock()

	var id [20]byte
	head := millis<<14 | uint64(high) // 56 bits, followed by the 64 of low: 120, 6 a character
	for i := range 9 {
		id[i] = idAlphabet[head>>(50-6*i)&63]
	}
	id[9] = idAlphabet[(head&3)<<4|low>>60]
	for i := range 10 {
		id[10+i] = idAlphabet[low>>(54-6*i)&63]
	}
	return TaskID(id[:])
}

// random returns n random bytes. s.mu is held.
func (s *idSource) random(n int) []byte {
	if s.left < n {
		rand.Read(s.pool[:])
		s.left = len(s.pool)
	}
	b := s.pool[len(s.pool)-s.left:][:n]
	s.left -= n
	return b
}
