package faultproxy

import (
	"time"
)

// Proxy passes connections on to one server and fails on demand. Its methods may be called from several goroutines, and
// faults add up: a proxy can be slow and lose replies. The caller owns it and must Close it.
type Proxy struct {
}

// Listen opens a proxy for the server at target, host:port. An empty target is allowed: until SetTarget names one,
// connections are reset. The proxy listens on the loopback interface, on a port below those of outgoing
// connections: otherwise somebody could be given the port while connections are refused.
func Listen(target string) (*Proxy, error) { panic("not yet") }

// Addr is where clients connect: host:port. It stays the same until Close.
func (p *Proxy) Addr() string { panic("not yet") }

// URL is Addr in the form that go-redis parses.
func (p *Proxy) URL() string { panic("not yet") }

// SetTarget names the server of new connections. Open ones stay where they are: call Cut to move them.
func (p *Proxy) SetTarget(addr string) { panic("not yet") }

// Cut resets all connections. New ones are served.
func (p *Proxy) Cut() { panic("not yet") }

// Refuse refuses new connections, as a host does on which nobody listens. Open ones go on: call Cut to end them.
func (p *Proxy) Refuse() { panic("not yet") }

// Accept undoes Refuse. It fails if another process has taken the port meanwhile.
func (p *Proxy) Accept() error { panic("not yet") }

// BlackHole swallows what either side sends, and accepts connections all the same. What is swallowed is gone: switched
// off, connections that are left are cut.
func (p *Proxy) BlackHole(on bool) { panic("not yet") }

// HalfOpen passes requests and swallows replies. Switched off, connections that are left are cut.
func (p *Proxy) HalfOpen(on bool) { panic("not yet") }

// Delay lets everything arrive d later, in each direction. It costs no throughput. 0 switches it off.
func (p *Proxy) Delay(d time.Duration) { panic("not yet") }

// Throttle bounds each direction of all connections together. 0 switches it off.
func (p *Proxy) Throttle(bytesPerSecond int) { panic("not yet") }

// Lose changes what is lost. The zero Loss ends it.
func (p *Proxy) Lose(l Loss) { panic("not yet") }

// Stats are the counts since Listen.
func (p *Proxy) Stats() Stats { panic("not yet") }

// Close ends everything, connections of replicas included, and returns when nothing of the proxy runs any more.
func (p *Proxy) Close() { panic("not yet") }

// Stats count what went through a proxy. Connections of replicas count as dials only.
type Stats struct {
	Dials        int64 // connections that were accepted
	Requests     int64 // commands that arrived, lost ones included
	LostRequests int64 // that did not reach the server: dropped by Lose, or answered with its Error
	LostReplies  int64 // of commands that ran: dropped by Lose, or replaced by its Error
}
