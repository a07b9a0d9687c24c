package worker

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long a test waits for what must happen; it is never used up unless the test fails.
const patience = 10 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newTestDeliverer returns a Deliverer that reaches loopback, trusts srv, if it is not nil, and is closed when the test ends.
func newTestDeliverer(t testing.TB, srv *httptest.Server) *Deliverer {
	t.Helper()
	d := NewDeliverer(Options{Egress: Egress{AllowPrivate: true}})
	t.Cleanup(d.Close)
	if srv != nil {
		roots := x509.NewCertPool()
		roots.AddCert(srv.Certificate())
		for _, transport := range d.transports {
			transport.TLSClientConfig = &tls.Config{RootCAs: roots}
		}
	}
	return d
}

// receiver is a server without manners: it does to each connection what serve says.
type receiver struct {
	addr string
	// conns has one entry for each connection made.
	conns chan struct{}
	// gone has one entry for each connection that the other side has ended.
	gone chan struct{}
}

// newReceiver starts a receiver that ends with the test. serve is called on a goroutine per connection; when it
// returns, the connection stays open until the other side closes it.
func newReceiver(t testing.TB, serve func(c *conn)) *receiver {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{addr: listener.Addr().String(), conns: make(chan struct{}, 100), gone: make(chan struct{}, 100)}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			r.conns <- struct{}{}
			all.Go(func() {
				stop := context.AfterFunc(ctx, func() { c.Close() })
				defer stop()
				defer c.Close()
				serve(&conn{TCPConn: c.(*net.TCPConn), r: bufio.NewReader(c)})
				io.Copy(io.Discard, c)
				r.gone <- struct{}{}
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		cancel()
		all.Wait()
	})
	return r
}

func (r *receiver) url() string { return "http://" + r.addr }

// conn is the receiver's end of a connection.
type conn struct {
	*net.TCPConn
	r *bufio.Reader
}

// request reads one request with its body. It returns false when the other side has closed the connection.
func (c *conn) request() (*http.Request, bool) {
	req, err := http.ReadRequest(c.r)
	if err != nil {
		return nil, false
	}
	io.Copy(io.Discard, req.Body)
	return req, true
}

// say writes text and returns whether anyone listens.
func (c *conn) say(text string) bool {
	_, err := io.WriteString(c, text)
	return err == nil
}

// answering returns a serve function that answers each request of a connection with text.
func answering(text string) func(*conn) {
	return func(c *conn) {
		for {
			if _, ok := c.request(); !ok || !c.say(text) {
				return
			}
		}
	}
}

// await waits for one entry of ch.
func await[T any](t testing.TB, ch <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(patience):
		t.Fatalf("no %s within %v", what, patience)
	}
	return v
}

const noContent = "HTTP/1.1 204 No Content\r\n\r\n"
