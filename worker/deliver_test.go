package worker

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestDeliver(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-Order")+" "+string(body))
	}))
	defer srv.Close()
	d := newTestDeliverer(t, nil)

	got := d.Deliver(t.Context(), Request{
		URL: srv.URL + "/hook?a=1#there", Header: http.Header{"X-Order": {"7"}}, Body: []byte("payload"),
	})
	want := Result{Status: http.StatusAccepted, Snippet: "POST /hook?a=1 7 payload"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestWireFormat compares what is sent, byte by byte. What it reads at once has also been written at once.
func TestWireFormat(t *testing.T) {
	type lines []string
	tests := []struct {
		name    string
		request Request
		want    lines
	}{
		{"POST", Request{Body: []byte("abc")},
			lines{"POST /p?q HTTP/1.1", "Host: HOST", "User-Agent: dispatch", "Content-Length: 3", "", "abc"}},
		{"POST, empty", Request{},
			lines{"POST /p?q HTTP/1.1", "Host: HOST", "User-Agent: dispatch", "Content-Length: 0", "", ""}},
		{"POST with an Idempotency-Key", Request{Header: http.Header{"Idempotency-Key": {"k"}}, Body: []byte("abc")},
			lines{"POST /p?q HTTP/1.1", "Host: HOST", "User-Agent: dispatch", "Content-Length: 3",
				"Idempotency-Key: k", "", "abc"}},
		{"POST with an Idempotency-Key, empty", Request{Header: http.Header{"Idempotency-Key": {"k"}}},
			lines{"POST /p?q HTTP/1.1", "Host: HOST", "User-Agent: dispatch", "Idempotency-Key: k",
				"content-length: 0", "", ""}},
		{"PUT, empty", Request{Method: "PUT"},
			lines{"PUT /p?q HTTP/1.1", "Host: HOST", "User-Agent: dispatch", "content-length: 0", "", ""}},
		{"PUT", Request{Method: "PUT", Body: []byte("abc")},
			lines{"PUT /p?q HTTP/1.1", "Host: HOST", "User-Agent: dispatch", "Content-Length: 3", "", "abc"}},
		{"GET", Request{Method: "GET"},
			lines{"GET /p?q HTTP/1.1", "Host: HOST", "User-Agent: dispatch", "", ""}},
		{"GET with a body", Request{Method: "GET", Body: []byte("abc")},
			lines{"GET /p?q HTTP/1.1", "Host: HOST", "User-Agent: dispatch", "Content-Length: 3", "", "abc"}},
		{"HEAD", Request{Method: "HEAD"},
			lines{"HEAD /p?q HTTP/1.1", "Host: HOST", "User-Agent: dispatch", "", ""}},
		{"DELETE", Request{Method: "DELETE"},
			lines{"DELETE /p?q HTTP/1.1", "Host: HOST", "User-Agent: dispatch", "", ""}},
		{"names as they are spelled", Request{Header: http.Header{"x-lower": {"1"}, "X-CloudTasks-TaskName": {"t", "u"}}},
			lines{"POST /p?q HTTP/1.1", "Host: HOST", "User-Agent: dispatch", "Content-Length: 0",
				"X-CloudTasks-TaskName: t", "X-CloudTasks-TaskName: u", "x-lower: 1", "", ""}},
		{"one User-Agent, in any spelling", Request{Header: http.Header{"user-agent": {"mine"}}},
			lines{"POST /p?q HTTP/1.1", "Host: HOST", "User-Agent: mine", "Content-Length: 0", "", ""}},
	}
	heads := make(chan string, 1)
	r := newReceiver(t, func(c *conn) {
		for {
			var head strings.Builder
			if _, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, &head))); err != nil {
				return
			}
			heads <- head.String()
			c.say(noContent)
		}
	})
	for _, client := range []*http.Client{nil, {Transport: &http.Transport{DisableCompression: true}}} {
		d := NewDeliverer(Options{Client: client, Egress: Egress{AllowPrivate: true}})
		defer d.Close()
		if client != nil {
			defer client.CloseIdleConnections()
		}
		for _, tt := range tests {
			name := tt.name
			if client != nil {
				name += ", caller's client"
			}
			t.Run(name, func(t *testing.T) {
				tt.request.URL = r.url() + "/p?q"
				if res := d.Deliver(t.Context(), tt.request); res.Status != http.StatusNoContent {
					t.Fatalf("got %+v", res)
				}
				want := strings.ReplaceAll(strings.Join(tt.want, "\r\n"), "HOST", r.addr)
				if got := await(t, heads, "request"); got != want {
					t.Errorf("sent\n%q, want\n%q", got, want)
				}
			})
		}
	}
}

func TestBasicAuthorization(t *testing.T) {
	got := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- strings.Join(r.Header.Values("Authorization"), ",")
	}))
	defer srv.Close()
	d := newTestDeliverer(t, nil)
	target := strings.Replace(srv.URL, "http://", "http://Aladdin:open%20sesame@", 1)

	d.Deliver(t.Context(), Request{URL: target})
	if got := await(t, got, "request"); got != "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==" {
		t.Errorf("user information became %q", got)
	}
	d.Deliver(t.Context(), Request{URL: target, Header: http.Header{"authorization": {"Bearer x"}}})
	if got := await(t, got, "request"); got != "Bearer x" {
		t.Errorf("beside a header, user information became %q", got)
	}
}

func TestWhatCannotBeSent(t *testing.T) {
	const target = "http://127.0.0.1:1/"
	tests := map[string]Request{
		"no URL":                  {},
		"no scheme":               {URL: "127.0.0.1/"},
		"other scheme":            {URL: "ftp://127.0.0.1/"},
		"no host":                 {URL: "http:///path"},
		"no host but a port":      {URL: "http://:80/"},
		"opaque":                  {URL: "http:path"},
		"space in the host":       {URL: "http://a b/"},
		"quote in the host":       {URL: `http://a"b/`},
		"port is no number":       {URL: "http://127.0.0.1:http/"},
		"port 0":                  {URL: "http://127.0.0.1:0/"},
		"port too high":           {URL: "http://127.0.0.1:65536/"},
		"control character":       {URL: "http://127.0.0.1/\n"},
		"bad escape":              {URL: "http://127.0.0.1/%zz"},
		"method with a space":     {URL: target, Method: "GET /"},
		"method with a line":      {URL: target, Method: "GET\r\n"},
		"CONNECT":                 {URL: target, Method: "CONNECT"},
		"empty header name":       {URL: target, Header: http.Header{"": {"a"}}},
		"header name with a line": {URL: target, Header: http.Header{"A\r\nB": {"a"}}},
		"header name, not ASCII":  {URL: target, Header: http.Header{"É": {"a"}}},
		"value with a line":       {URL: target, Header: http.Header{"A": {"ok", "a\r\nB: c"}}},
		"value with a NUL":        {URL: target, Header: http.Header{"A": {"a\x00"}}},
		"Host":                    {URL: target, Header: http.Header{"Host": {"other"}}},
		"host":                    {URL: target, Header: http.Header{"host": {"other"}}},
		"content-length":          {URL: target, Header: http.Header{"content-length": {"5"}}},
		"Content-Length":          {URL: target, Header: http.Header{"Content-Length": {"5"}}},
		"transfer-encoding":       {URL: target, Header: http.Header{"transfer-encoding": {"chunked"}}},
		"TRAILER":                 {URL: target, Header: http.Header{"TRAILER": {"A"}}},
	}
	d := newTestDeliverer(t, nil)
	for name, r := range tests {
		t.Run(name, func(t *testing.T) {
			if got := d.Deliver(t.Context(), r); got.Kind != KindConfig || got.Err == nil || got.Status != 0 {
				t.Errorf("got %+v, want %q", got, KindConfig)
			}
		})
	}
	t.Run("no context", func(t *testing.T) {
		//lint:ignore SA1012 it must not panic
		if got := d.Deliver(nil, Request{URL: target}); got.Kind != KindConfig {
			t.Errorf("got %+v, want %q", got, KindConfig)
		}
	})
	t.Run("user agent", func(t *testing.T) {
		bad := NewDeliverer(Options{UserAgent: "a\r\nb"})
		if got := bad.Deliver(t.Context(), Request{URL: target}); got.Kind != KindConfig {
			t.Errorf("got %+v, want %q", got, KindConfig)
		}
	})
}

func TestRefusedAndUnresolved(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	d := newTestDeliverer(t, nil)

	if got := d.Deliver(t.Context(), Request{URL: "http://" + listener.Addr().String()}); got.Kind != KindConnect {
		t.Errorf("nobody listens: got %+v, want %q", got, KindConnect)
	}
	// The name is too long for the DNS: it fails without asking anyone.
	long := "http://" + strings.Repeat(strings.Repeat("a", 60)+".", 5) + "invalid/"
	if got := d.Deliver(t.Context(), Request{URL: long}); got.Kind != KindDNS {
		t.Errorf("no such name: got %+v, want %q", got, KindDNS)
	}
}

// movable is a context whose deadline is kept by its owner: it says one instant and ends at another.
type movable struct{ context.Context }

func (movable) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }

// TestOwnDeadline: a context that is cancelled for its deadline is a timeout, and its Deadline method means nothing.
func TestOwnDeadline(t *testing.T) {
	seen := make(chan struct{}, 1)
	r := newReceiver(t, func(c *conn) {
		if _, ok := c.request(); ok {
			seen <- struct{}{}
		}
	})
	d := newTestDeliverer(t, nil)
	stop := errors.New("stop")

	for cause, want := range map[error]Kind{context.DeadlineExceeded: KindTimeout, stop: KindCancelled} {
		parent, cancel := context.WithCancelCause(t.Context())
		results := make(chan Result, 1)
		go func() { results <- d.Deliver(movable{parent}, Request{URL: r.url()}) }()
		await(t, seen, "request")
		cancel(cause)
		if got := await(t, results, "result"); got.Kind != want || !errors.Is(got.Err, cause) {
			t.Errorf("cancelled with %v: got %+v, want %q", cause, got, want)
		}
		await(t, r.gone, "end of the connection")
	}
}
