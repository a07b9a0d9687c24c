package worker

import (
	"net"
	"net/http"
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

// newTransport returns the transport of requests that may go over any version of HTTP. It has no limit on the time
// until the response, because that is the caller's context, and no proxy: what the environment names would see every
// payload, and would be all that a check of addresses sees.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout} // with keep-alive, as by default
	return &http.Transport{
		DialContext:            dialer.DialContext,
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
func newHTTP1Transport() *http.Transport {
	t := newTransport()
	t.ForceAttemptHTTP2 = false
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	return t
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
