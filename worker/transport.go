package worker

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// maxHeaderBytes is how much of a response's header is read, informational responses (1xx) included.
	maxHeaderBytes = 64 << 10
	// maxIdlePerHost keeps the connections of a thousand deliveries at once to one receiver; with fewer, connections
	// would be closed and dialed again all the time. maxIdle bounds what many receivers add up to.
	maxIdlePerHost = 1024
	maxIdle        = 2048
	// idleTimeout is below the 60 s after which many servers and balancers drop a connection that idles, so that it is
	// this side that closes it, when no request can be on its way.
	idleTimeout = 45 * time.Second
	// dialTimeout and tlsTimeout bound what no context does: net/http goes on connecting for a request that has ended,
	// in case another one needs the connection.
	dialTimeout = 15 * time.Second
	tlsTimeout  = 10 * time.Second
	// pingAfter is how long an HTTP/2 connection in use may be silent before it is asked for a sign of life. HTTP/1.1
	// connections are watched by TCP keep-alive.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
)

// NewTransport returns the transport that a Deliverer without a Client makes, for use in a client of one's own. It
// dials only what e allows: a request that may not be made fails with an *EgressError, to be found with errors.As. If
// e.Validate returns an error, all requests fail with it.
//
// It speaks HTTP/2 and HTTP/1.1, decompresses nothing, reads at most 64 KiB of a response's header, gives up a dial
// after 15 s and a TLS handshake after 10 s, and keeps at most 1024 idle connections per host and 2048 in all, for 45 s
// each. It has no limit on the time until the response, which is the context's, and no proxy but that of e.
//
// Whoever sets its DialContext or DialTLSContext replaces the guard, and whoever sets its Proxy moves it: see Egress.
func NewTransport(e Egress) *http.Transport {
	return newTransport(newGuard(e))
}

// newTransport returns the transport of requests that may go over any version of HTTP.
func newTransport(g *guard) *http.Transport {
	return &http.Transport{
		Proxy:                  g.egress.Proxy,
		DialContext:            g.dial,
		DisableCompression:     true, // a small response must not become a large one
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		MaxResponseHeaderBytes: maxHeaderBytes,
		TLSHandshakeTimeout:    tlsTimeout,
		HTTP2: &http.HTTP2Config{
			// A receiver can send this much before anyone reads; the default is 4 MiB per request.
			MaxReceiveBufferPerStream: maxBodyBytes,
			PingTimeout:               pingTimeout,
			SendPingTimeout:           pingAfter,
		},
	}
}

// newHTTP1Transport is newTransport without HTTP/2; see once.go for what it is good for.
func newHTTP1Transport(g *guard) *http.Transport {
	t := newTransport(g)
	t.ForceAttemptHTTP2 = false
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	return t
}

// guard dials what its Egress allows.
type guard struct {
	egress  Egress
	invalid error // what Validate says
	dialer  net.Dialer
}

func newGuard(e Egress) *guard {
	e.Allow, e.Deny, e.Ports = slices.Clone(e.Allow), slices.Clone(e.Deny), slices.Clone(e.Ports)
	g := &guard{egress: e}
	if err := e.Validate(); err != nil {
		g.invalid = configErrorf("%s", strings.TrimPrefix(err.Error(), "worker: "))
	}
	g.dialer = net.Dialer{Timeout: dialTimeout, ControlContext: g.control} // with keep-alive, as by default
	return g
}

// anyAllowed is the key of an *atomic.Bool in the context of a dial: whether one of the host's addresses was allowed.
type anyAllowed struct{}

// dial is the DialContext of a transport. A host may have several addresses, of which the dialer tries all and reports
// one. The dial is refused only if all of them were: if one was allowed and did not answer, it may another time.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if g.invalid != nil {
		return nil, g.invalid
	}
	var allowed atomic.Bool
	conn, err := g.dialer.DialContext(context.WithValue(ctx, anyAllowed{}, &allowed), network, address)
	if refused, ok := errors.AsType[*EgressError](err); ok && allowed.Load() {
		err = errors.New("no answer from the addresses that are allowed; " + strings.TrimPrefix(refused.Error(), "worker: "))
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return conn, err
}

// control is called with the very address that is about to be connected to, when the socket is there and nothing has
// been sent: the one place where a URL's spelling and the DNS have had all their say.
func (g *guard) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	if refused := g.egress.decide(dialed(address)); refused != nil {
		return refused
	}
	if allowed, ok := ctx.Value(anyAllowed{}).(*atomic.Bool); ok {
		allowed.Store(true)
	}
	return nil
}

// dialed reads an address as net prints it. The zone, which may be any text, is cut off first: netip takes none beside
// IPv4. What cannot be read is the zero address, which nothing allows.
func dialed(address string) netip.AddrPort {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}
	}
	host, _, _ = strings.Cut(host, "%")
	addr, errAddr := netip.ParseAddr(host)
	port, errPort := strconv.ParseUint(service, 10, 16)
	if errAddr != nil || errPort != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr, uint16(port))
}

// oneHop returns a client like c that does not follow redirects. The copy is shallow: connections, cookies and limits
// stay those of c.
func oneHop(c *http.Client) *http.Client {
	base := c.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	hop := *c
	hop.Transport = noLocation{base}
	return &hop
}

// noLocation hides from http.Client where a redirect leads. CheckRedirect would be asked too late: a Location that
// cannot be parsed is an error before it, and the status would be lost.
type noLocation struct{ http.RoundTripper }

func (t noLocation) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if resp != nil && resp.StatusCode/100 == 3 {
		resp.Header.Del("Location")
	}
	return resp, err
}
