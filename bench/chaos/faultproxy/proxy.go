package faultproxy

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Ports are taken from below the range that the kernel hands to outgoing connections.
const (
	portFrom = 16_000
	portTo   = 32_000

	dialLimit = 2 * time.Second // until the server accepts
)

// Proxy passes connections on to one server and fails on demand. Its methods may be called from several goroutines, and
// faults add up: a proxy can be slow and lose replies. The caller owns it and must Close it.
type Proxy struct {
	addr               string
	judge              judge
	upwards, downwards bottleneck // to the server, to the clients
	stats              counters
	group              sync.WaitGroup // of everything that Listen and Accept started

	mu       sync.Mutex
	target   string
	listener net.Listener // nil while connections are refused
	links    map[*link]struct{}
	faults   weather
	closed   bool
}

// weather is what all connections of clients suffer.
type weather struct {
	dark  bool          // nothing arrives
	mute  bool          // replies do not arrive
	delay time.Duration // of what arrives
}

// counters are Stats while they grow.
type counters struct{ dials, requests, lostRequests, lostReplies atomic.Int64 }

// Listen opens a proxy for the server at target, host:port. An empty target is allowed: until SetTarget names one,
// connections are reset. The proxy listens on the loopback interface, on a port below those of outgoing
// connections: otherwise somebody could be given the port while connections are refused.
func Listen(target string) (*Proxy, error) {
	for range 100 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(portFrom+rand.IntN(portTo-portFrom)))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue // taken
		}
		p := &Proxy{addr: addr, target: target, listener: l, links: map[*link]struct{}{}}
		p.group.Go(func() { p.serve(l) })
		return p, nil
	}
	return nil, errors.New("faultproxy: no free port in 100 attempts")
}

// Addr is where clients connect: host:port. It stays the same until Close.
func (p *Proxy) Addr() string { return p.addr }

// URL is Addr in the form that go-redis parses.
func (p *Proxy) URL() string { return "redis://" + p.addr + "/0" }

// SetTarget names the server of new connections. Open ones stay where they are: call Cut to move them.
func (p *Proxy) SetTarget(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

// Close ends everything, connections of replicas included, and returns when nothing of the proxy runs any more. It may be
// called more than once.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	for k := range p.links {
		k.sever()
	}
	p.mu.Unlock()
	p.group.Wait()
}

// Stats count what went through a proxy. Connections of replicas count as dials only.
type Stats struct {
	Dials        int64 // connections that were accepted
	Requests     int64 // commands that arrived, lost ones included
	LostRequests int64 // that did not reach the server: dropped by Lose, or answered with its Error
	LostReplies  int64 // of commands that ran: dropped by Lose, or replaced by its Error
}

// Stats are the counts since Listen. What a black hole or a half-open connection swallows is not in them.
func (p *Proxy) Stats() Stats {
	return Stats{
		Dials:        p.stats.dials.Load(),
		Requests:     p.stats.requests.Load(),
		LostRequests: p.stats.lostRequests.Load(),
		LostReplies:  p.stats.lostReplies.Load(),
	}
}

// serve accepts connections until l is closed.
func (p *Proxy) serve(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		p.stats.dials.Add(1)
		p.group.Go(func() { p.open(client) })
	}
}

// open makes a connection of a client a link and carries it until it ends.
func (p *Proxy) open(client net.Conn) {
	p.mu.Lock()
	target, dark := p.target, p.faults.dark
	p.mu.Unlock()
	var server net.Conn
	if !dark { // a black hole answers for servers that are gone as well
		var err error
		if server, err = net.DialTimeout("tcp", target, dialLimit); err != nil {
			reset(client)
			return
		}
	}
	k := newLink(p, client, server)
	switch {
	case !p.add(k):
	case server == nil:
		io.Copy(io.Discard, client) // until it is cut
	default:
		k.carry()
	}
	k.sever()
	p.remove(k)
}

// add lists a link. One that began in a black hole that is over meanwhile would have been cut, and is.
func (p *Proxy) add(k *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || k.server == nil && !p.faults.dark {
		return false
	}
	p.links[k] = struct{}{}
	return true
}

func (p *Proxy) remove(k *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, k)
}
