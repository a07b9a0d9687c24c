package faultproxy

import (
	"net"
	"sync"
	"time"
)

// lane is one direction of a link: what is sent into it arrives in order, later and slower if the network is. It holds
// as much as is sent, as Redis does for a client that does not read: a lane that made its sender wait would
// let a client wait for ever that writes a long pipeline before it reads.
type lane struct {
	to    net.Conn
	done  <-chan struct{} // closed when the link has ended
	speed *bottleneck     // shared with the other links

	ready chan struct{} // has room for one: something is in queue
	mu    sync.Mutex
	queue []packet
}

// packet is what arrives at once.
type packet struct {
	due  time.Time // it arrives no earlier
	data []byte
	free bool // of the bound of the speed
	last bool // then the link ends
}

func newLane(to net.Conn, done <-chan struct{}, speed *bottleneck) *lane {
	return &lane{to: to, done: done, speed: speed, ready: make(chan struct{}, 1)}
}

// send appends a packet, whose data belong to the lane from now on.
func (l *lane) send(p packet) {
	l.mu.Lock()
	l.queue = append(l.queue, p)
	l.mu.Unlock()
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// run delivers until the last packet, or until the link has ended. The side that it writes to then finds the end of the stream.
func (l *lane) run() {
	for {
		select {
		case <-l.ready:
		case <-l.done:
			return
		}
		l.mu.Lock()
		queue := l.queue
		l.queue = nil
		l.mu.Unlock()
		for _, p := range queue {
			if !l.deliver(p) {
				return
			}
		}
	}
}

// deliver writes one packet, in pieces if the speed is bounded, and says whether more may follow.
func (l *lane) deliver(p packet) bool {
	if !l.wait(p.due) {
		return false
	}
	for data := p.data; len(data) > 0; {
		n := len(data)
		if !p.free {
			var passed time.Time
			if n, passed = l.speed.reserve(n); !l.wait(passed) {
				return false
			}
		}
		if _, err := l.to.Write(data[:n]); err != nil {
			return false
		}
		data = data[n:]
	}
	if tcp, ok := l.to.(*net.TCPConn); ok && p.last {
		tcp.CloseWrite()
	}
	return !p.last
}

// wait returns at t, and says whether the link is still there.
func (l *lane) wait(t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.done:
		return false
	}
}

// bottleneck bounds the speed of several lanes together. The zero value does not.
type bottleneck struct {
	mu   sync.Mutex
	rate int       // bytes per second; 0: no bound
	free time.Time // when what was reserved has passed
}

func (b *bottleneck) set(rate int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rate, b.free = rate, time.Time{}
}

// reserve says how many of n bytes go next, and when they have passed. A piece takes at most 20 ms, so that lanes share the
// speed and a change of it is soon felt.
func (b *bottleneck) reserve(n int) (piece int, passed time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rate <= 0 {
		return n, time.Time{}
	}
	piece = min(n, max(1, b.rate/50))
	if now := time.Now(); b.free.Before(now) {
		b.free = now
	}
	b.free = b.free.Add(time.Duration(piece) * time.Second / time.Duration(b.rate))
	return piece, b.free
}
