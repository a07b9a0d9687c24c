package faultproxy

import (
	"net"
	"time"
)

// Cut resets all connections. New ones are served.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

// cut resets the connections of clients. p.mu must be held.
func (p *Proxy) cut() {
	for k := range p.links {
		if !k.replica.Load() {
			k.sever()
		}
	}
}

// Refuse refuses new connections, as a host does on which nobody listens. Open ones go on: call Cut to end them.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
}

// Accept undoes Refuse. It fails if another process has taken the port meanwhile.
func (p *Proxy) Accept() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return net.ErrClosed
	}
	if p.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	p.listener = l
	p.group.Go(func() { p.serve(l) })
	return nil
}

// BlackHole swallows what either side sends, and accepts connections all the same. What is swallowed is gone: switched
// off, connections that are left are cut.
func (p *Proxy) BlackHole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults.dark && !on {
		p.cut()
	}
	p.faults.dark = on
}

// HalfOpen passes requests and swallows replies. Switched off, connections that are left are cut.
func (p *Proxy) HalfOpen(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults.mute && !on {
		p.cut()
	}
	p.faults.mute = on
}

// Delay lets everything arrive d later, in each direction. It costs no throughput. 0 switches it off.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults.delay = d
}

// Throttle bounds each direction of all connections together. 0 switches it off.
func (p *Proxy) Throttle(bytesPerSecond int) {
	p.upwards.set(bytesPerSecond)
	p.downwards.set(bytesPerSecond)
}

// Lose changes what is lost. The zero Loss ends it. Requests that have passed keep what was decided about them.
func (p *Proxy) Lose(l Loss) { p.judge.set(l) }

// weather is what a connection of a client suffers now.
func (p *Proxy) weather() weather {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults
}
