package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeDNS answers look-ups. Names end in a dot.
type fakeDNS struct {
	mu      sync.Mutex
	records map[string][]netip.Addr
}

// set makes a name have these addresses.
func (f *fakeDNS) set(name string, addrs ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.records == nil {
		f.records = map[string][]netip.Addr{}
	}
	var all []netip.Addr
	for _, a := range addrs {
		all = append(all, netip.MustParseAddr(a))
	}
	f.records[strings.ToLower(name)+"."] = all
}

// newGuarded returns a Deliverer with e whose names are looked up in dns.
func newGuarded(t testing.TB, e Egress, dns *fakeDNS) *Deliverer {
	t.Helper()
	d := NewDeliverer(Options{Egress: e})
	t.Cleanup(d.Close)
	g := newGuard(e)
	g.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return &dnsConn{dns: dns}, nil
	}}
	for _, transport := range d.transports {
		transport.DialContext = g.dial
	}
	return d
}

// dnsConn is a connection to a fakeDNS. It is no net.PacketConn, so messages have their length before them.
type dnsConn struct {
	dns *fakeDNS
	out bytes.Buffer
}

func (c *dnsConn) Write(query []byte) (int, error) {
	answer := c.dns.answer(query[2:])
	c.out.Write(binary.BigEndian.AppendUint16(nil, uint16(len(answer))))
	c.out.Write(answer)
	return len(query), nil
}

func (f *fakeDNS) answer(query []byte) []byte {
	const header = 12
	name, at := "", header
	for query[at] != 0 {
		n := int(query[at])
		name += string(query[at+1:at+1+n]) + "."
		at += 1 + n
	}
	question := query[header : at+5] // with type and class
	wantIPv6 := query[at+2] == 28

	f.mu.Lock()
	defer f.mu.Unlock()
	addrs, known := f.records[strings.ToLower(name)]
	var records []byte
	count := byte(0)
	for _, addr := range addrs {
		if addr.Is6() != wantIPv6 {
			continue
		}
		count++
		records = append(records, 0xc0, header, 0, query[at+2], 0, 1, 0, 0, 0, 0, 0, byte(addr.BitLen()/8))
		records = append(records, addr.AsSlice()...)
	}
	code := byte(0)
	if !known {
		code = 3 // NXDOMAIN
	}
	answer := append([]byte{query[0], query[1], 0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0}, question...)
	return append(answer, records...)
}

func (c *dnsConn) Read(p []byte) (int, error) {
	if c.out.Len() == 0 {
		return 0, io.EOF
	}
	return c.out.Read(p)
}

func (*dnsConn) Close() error                     { return nil }
func (*dnsConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*dnsConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*dnsConn) SetDeadline(time.Time) error      { return nil }
func (*dnsConn) SetReadDeadline(time.Time) error  { return nil }
func (*dnsConn) SetWriteDeadline(time.Time) error { return nil }
