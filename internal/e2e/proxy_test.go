package e2e

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy stands between the processes and one Redis server and fails as networks do. One chunk that it reads is one
// request, near enough: the client writes a command at a time.
type proxy struct {
	addr, target string

	dials    atomic.Int64 // connections that were accepted
	requests atomic.Int64
	dropped  atomic.Int64 // replies

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	links    map[*link]struct{}
	dark     bool                      // what is sent goes nowhere
	delay    time.Duration             // of everything, in each direction
	drop     func(request []byte) bool // whose reply is lost
	closed   bool
	group    sync.WaitGroup
}

// link is one connection of a client and the one that it stands for.
type link struct {
	client, server net.Conn
	doomed         atomic.Bool // its next reply is lost, and the connection with it
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	p := &proxy{target: target, links: map[*link]struct{}{}}
	// Below the range of outgoing connections, so that the port is free again after a refusal.
	for tries := 0; p.listener == nil; tries++ {
		if tries == 100 {
			t.Fatal("no free port in 100 attempts")
		}
		p.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(16_000+rand.IntN(16_000)))
		p.listener, _ = net.Listen("tcp", p.addr)
	}
	p.group.Go(func() { p.serve(p.listener) })
	t.Cleanup(p.close)
	return p
}

func (p *proxy) url() string { return "redis://" + p.addr + "/0" }

func (p *proxy) serve(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		p.dials.Add(1)
		p.group.Go(func() { p.open(client) })
	}
}

func (p *proxy) open(client net.Conn) {
	server, err := net.DialTimeout("tcp", p.target, 2*time.Second)
	if err != nil {
		reset(client)
		return
	}
	k := &link{client: client, server: server}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		reset(client)
		reset(server)
		return
	}
	p.links[k] = struct{}{}
	p.group.Go(func() { p.pump(k, client, server, true) })
	p.group.Go(func() { p.pump(k, server, client, false) })
}

// pump carries one direction of a link until it ends, and the link with it.
func (p *proxy) pump(k *link, from, to net.Conn, request bool) {
	defer p.end(k)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !p.pass(k, buf[:n], to, request) {
			return
		}
	}
}

// pass carries one chunk, and says whether the link goes on.
func (p *proxy) pass(k *link, chunk []byte, to net.Conn, request bool) bool {
	p.mu.Lock()
	dark, delay := p.dark, p.delay
	doom := request && p.drop != nil && p.drop(chunk)
	p.mu.Unlock()
	switch {
	case request:
		p.requests.Add(1)
		if doom {
			k.doomed.Store(true)
		}
	case k.doomed.Load():
		p.dropped.Add(1)
		return false
	}
	if dark {
		return true
	}
	if delay > 0 {
		lasts(delay)
	}
	_, err := to.Write(chunk)
	return err == nil
}

func (p *proxy) end(k *link) {
	p.mu.Lock()
	delete(p.links, k)
	p.mu.Unlock()
	reset(k.client)
	reset(k.server)
}

// reset closes a connection at once: the other side finds it reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}

// cut ends all connections; new ones are served.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.links {
		reset(k.client)
		reset(k.server)
	}
}

// blackHole swallows everything for a while. After it the connections are of no use, and are cut.
func (p *proxy) blackHole(d time.Duration) {
	p.set(func() { p.dark = true })
	lasts(d)
	p.set(func() { p.dark = false })
	p.cut()
}

// slow delays everything for a while.
func (p *proxy) slow(by, d time.Duration) {
	p.set(func() { p.delay = by })
	lasts(d)
	p.set(func() { p.delay = 0 })
}

// lose drops replies for a while: those to requests that which names. The requests have passed.
func (p *proxy) lose(which func(request []byte) bool, d time.Duration) {
	p.set(func() { p.drop = which })
	lasts(d)
	p.set(func() { p.drop = nil })
}

// refuse refuses connections for a while, and ends those that are open.
func (p *proxy) refuse(t testing.TB, d time.Duration) {
	p.listener.Close()
	p.cut()
	lasts(d)
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	p.set(func() { p.listener = l })
	p.group.Go(func() { p.serve(l) })
}

func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *proxy) close() {
	p.set(func() { p.closed = true; p.listener.Close() })
	p.cut()
	p.group.Wait()
}
