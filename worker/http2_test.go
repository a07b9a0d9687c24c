package worker

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// newHTTP2Server starts a TLS server that speaks HTTP/2 and HTTP/1.1.
func newHTTP2Server(t *testing.T, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(handle)
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = quiet
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// TestVersions: what net/http never repeats goes over HTTP/2, all else over HTTP/1.1, and a caller's client decides
// for itself. Over either version an empty body is no body.
func TestVersions(t *testing.T) {
	srv := newHTTP2Server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, r.Proto+" "+r.Method+" "+string(body))
		if r.ContentLength != int64(len(body)) || r.TransferEncoding != nil {
			t.Errorf("%s %s: %d bytes with Content-Length %d and Transfer-Encoding %q",
				r.Proto, r.Method, len(body), r.ContentLength, r.TransferEncoding)
		}
	})
	own := newTestDeliverer(t, srv)
	callers := NewDeliverer(Options{Client: srv.Client()})

	key := http.Header{"Idempotency-Key": {"k"}}
	tests := []struct {
		request            Request
		wantOwn, wantOther string
	}{
		{Request{Body: []byte("abc")}, "HTTP/2.0 POST abc", "HTTP/2.0 POST abc"},
		{Request{}, "HTTP/2.0 POST ", "HTTP/2.0 POST "},
		{Request{Method: "PATCH"}, "HTTP/2.0 PATCH ", "HTTP/2.0 PATCH "},
		{Request{Method: "GET"}, "HTTP/1.1 GET ", "HTTP/2.0 GET "},
		{Request{Method: "PUT"}, "HTTP/1.1 PUT ", "HTTP/2.0 PUT "},
		{Request{Method: "DELETE"}, "HTTP/1.1 DELETE ", "HTTP/2.0 DELETE "},
		{Request{Header: key}, "HTTP/1.1 POST ", "HTTP/2.0 POST "},
		{Request{Header: key, Body: []byte("abc")}, "HTTP/1.1 POST abc", "HTTP/2.0 POST abc"},
	}
	for _, tt := range tests {
		tt.request.URL = srv.URL
		for range 2 {
			if got := own.Deliver(t.Context(), tt.request); got.Snippet != tt.wantOwn {
				t.Errorf("got %+v, want %q", got, tt.wantOwn)
			}
			if got := callers.Deliver(t.Context(), tt.request); got.Snippet != tt.wantOther {
				t.Errorf("caller's client: got %+v, want %q", got, tt.wantOther)
			}
		}
	}
}

// TestOneCallIsOneRequestOverTLS: a receiver that speaks HTTP/2 and hangs up on a connection, after it has read the second
// request on it, is not asked again, over either version.
func TestOneCallIsOneRequestOverTLS(t *testing.T) {
	type conn struct {
		net.Conn
		requests atomic.Int64
	}
	seen := make(chan string, 10)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		seen <- r.Proto
		if c := r.Context().Value(connKey{}).(*conn); c.requests.Add(1) == 2 {
			c.Close()
			<-r.Context().Done()
		}
		w.WriteHeader(204)
	}))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = quiet
	srv.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, &conn{Conn: c.(*tls.Conn).NetConn()})
	}
	srv.StartTLS()
	defer srv.Close()

	key, body := http.Header{"Idempotency-Key": {"k"}}, []byte("abc")
	for _, tt := range []struct {
		request      Request
		own, callers string // the version; "" is not promised
	}{
		{Request{}, "HTTP/2.0", "HTTP/2.0"},
		{Request{Body: body}, "HTTP/2.0", "HTTP/2.0"},
		{Request{Header: key}, "HTTP/1.1", ""},
		{Request{Header: key, Body: body}, "HTTP/1.1", "HTTP/2.0"},
		{Request{Method: "PUT", Body: body}, "HTTP/1.1", "HTTP/2.0"},
		{Request{Method: "GET"}, "HTTP/1.1", ""},
		{Request{Method: "DELETE"}, "HTTP/1.1", ""},
	} {
		tt.request.URL = srv.URL
		for name, c := range map[string]struct {
			d       *Deliverer
			version string
		}{
			"own client":      {newTestDeliverer(t, srv), tt.own},
			"caller's client": {NewDeliverer(Options{Client: newHTTP2Client(t, srv)}), tt.callers},
		} {
			if c.version == "" {
				continue
			}
			for i, want := range []Kind{"", KindConnect, ""} {
				if got := c.d.Deliver(t.Context(), tt.request); got.Kind != want {
					t.Errorf("%s, %s, call %d: got %+v, want %q", name, tt.request.Method, i+1, got, want)
				}
				if version := await(t, seen, "request"); version != c.version || len(seen) != 0 {
					t.Errorf("%s, %s, call %d: came over %s and %d times more, want %s", name, tt.request.Method, i+1, version, len(seen), c.version)
				}
			}
		}
	}
}

type connKey struct{}

// newHTTP2Client returns a client with connections of its own.
func newHTTP2Client(t *testing.T, srv *httptest.Server) *http.Client {
	transport := NewTransport(Egress{AllowPrivate: true})
	transport.TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestHostileHTTP2(t *testing.T) {
	lines := strings.Repeat("b", 4096)
	tests := []struct {
		name   string
		handle http.HandlerFunc
		want   Result // without Err
	}{
		{"hangs before the header", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			Result{Kind: KindTimeout}},
		{"hangs in the body", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "ab")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, Result{Status: 200, Kind: KindTimeout, Snippet: "ab", Truncated: true}},
		{"resets before the header", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			Result{Kind: KindConnect}},
		{"resets in the body", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "ab")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, Result{Status: 200, Snippet: "ab", Truncated: true}},
		{"sends a body without end", func(w http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; _, err = io.WriteString(w, lines) {
			}
		}, Result{Status: 200, Snippet: lines[:maxSnippet], Truncated: true}},
		{"sends a long header", func(w http.ResponseWriter, _ *http.Request) {
			for i := range 20 {
				w.Header().Add("A", lines+string(rune('a'+i)))
			}
		}, Result{Kind: KindConnect}},
		{"floods informational responses", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("A", lines)
			for range 100 {
				w.WriteHeader(http.StatusEarlyHints)
			}
		}, Result{Kind: KindConnect}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{}, 10)
			srv := newHTTP2Server(t, func(w http.ResponseWriter, r *http.Request) {
				defer func() { ended <- struct{}{} }()
				if r.ProtoMajor != 2 {
					t.Errorf("came over %s", r.Proto)
				}
				tt.handle(w, r)
			})
			limit := margin
			if tt.want.Kind == KindTimeout {
				limit = answered // what does not arrive before, the receiver does not see the end of
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			got := newTestDeliverer(t, srv).Deliver(ctx, Request{URL: srv.URL, Body: []byte("abc")})
			if failed := tt.want.Kind != ""; (got.Err != nil) != failed {
				t.Errorf("the error is %v", got.Err)
			}
			if got.Err = nil; got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			await(t, ended, "end of the stream")
		})
	}
}

// TestHTTP2SendsAgain pins what net/http does when a receiver resets the stream of a request: it believes one that
// says that it has not looked at it (7, REFUSED_STREAM) or does not understand it (1, PROTOCOL_ERROR), and no other.
func TestHTTP2SendsAgain(t *testing.T) {
	certified := newHTTP2Server(t, nil)
	for _, tt := range []struct {
		code     byte
		kind     Kind
		requests int
	}{{7, "", 2}, {1, "", 2}, {2, KindConnect, 1}, {8, KindConnect, 1}} {
		for _, body := range []string{"", "abc"} {
			seen := make(chan struct{}, 10)
			r := newReceiver(t, func(c *conn) { resetFirst(tls.Server(c, certified.TLS), tt.code, seen) })
			got := newTestDeliverer(t, certified).Deliver(t.Context(), Request{URL: "https://" + r.addr, Body: []byte(body)})
			if got.Kind != tt.kind || len(seen) != tt.requests {
				t.Errorf("code %d, body %q: got %+v after %d requests, want %q after %d",
					tt.code, body, got, len(seen), tt.kind, tt.requests)
			}
		}
	}
}

// resetFirst speaks just enough HTTP/2 to reset the first request with code and to answer all others with 204.
func resetFirst(c net.Conn, code byte, seen chan<- struct{}) {
	const headers, reset, settings, endStreamAndHeaders, ack = 1, 3, 4, 5, 1
	send := func(kind, flags byte, stream []byte, payload ...byte) {
		frame := append([]byte{0, 0, byte(len(payload)), kind, flags}, stream...)
		c.Write(append(frame, payload...))
	}
	none := make([]byte, 4)
	io.CopyN(io.Discard, c, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
	send(settings, 0, none)
	for {
		var head [9]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		io.CopyN(io.Discard, c, int64(head[0])<<16|int64(head[1])<<8|int64(head[2]))
		switch kind, flags, stream := head[3], head[4], head[5:]; {
		case kind == settings && flags&ack == 0:
			send(settings, ack, none)
		case kind == headers:
			seen <- struct{}{}
			if len(seen) == 1 {
				send(reset, 0, stream, 0, 0, 0, code)
			} else {
				send(headers, endStreamAndHeaders, stream, 0x89) // the ninth of HPACK's static table is :status: 204
			}
		}
	}
}

// TestHeaderLongerThanHTTP2Allows: what never left this side is the fault of the request and says nothing of the host.
func TestHeaderLongerThanHTTP2Allows(t *testing.T) {
	var seen atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog, srv.Config.MaxHeaderBytes = quiet, 4096
	srv.StartTLS()
	t.Cleanup(srv.Close)
	for name, d := range map[string]*Deliverer{"own": newTestDeliverer(t, srv), "caller's": NewDeliverer(Options{Client: srv.Client()})} {
		seen.Store(0)
		if got := d.Deliver(t.Context(), Request{URL: srv.URL}); got.Kind != "" {
			t.Fatalf("%s client: got %+v", name, got)
		}
		for range defaultThreshold {
			got := d.Deliver(t.Context(), Request{URL: srv.URL, Header: http.Header{"X-Long": {strings.Repeat("a", 20_000)}}})
			if got.Kind != KindConfig || got.Permanent || got.Err == nil {
				t.Errorf("%s client: got %+v, want %q", name, got, KindConfig)
			}
		}
		if n := d.breaker.tracked.Load(); n != 0 || seen.Load() != 1 {
			t.Errorf("%s client: %d hosts are taken for silent, %d requests were seen", name, n, seen.Load())
		}
	}
}
