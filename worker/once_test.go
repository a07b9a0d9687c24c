package worker

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// newForgetful returns a receiver that answers the first request of its first connection and hangs up on the second,
// after it has read it: the one moment in which net/http repeats requests. Further connections are answered. It
// reports each request it sees.
func newForgetful(t *testing.T) (*receiver, <-chan string) {
	seen := make(chan string, 10)
	first := make(chan struct{}, 1)
	first <- struct{}{}
	r := newReceiver(t, func(c *conn) {
		limit := 1000
		select {
		case <-first:
			limit = 1
		default:
		}
		for n := 0; ; n++ {
			req, ok := c.request()
			if !ok {
				return
			}
			seen <- req.Method
			if n == limit {
				c.Close()
				return
			}
			c.say(noContent)
		}
	})
	return r, seen
}

// TestOneCallIsOneRequest: on a reused connection that breaks after the request was read, the receiver is not asked
// again, whatever the request looks like.
func TestOneCallIsOneRequest(t *testing.T) {
	key := http.Header{"Idempotency-Key": {"k"}}
	xKey := http.Header{"X-Idempotency-Key": {"k"}}
	tests := []struct {
		name    string
		request Request
	}{
		{"GET", Request{Method: "GET"}},
		{"GET with a body", Request{Method: "GET", Body: []byte("abc")}},
		{"HEAD", Request{Method: "HEAD"}},
		{"OPTIONS", Request{Method: "OPTIONS"}},
		{"TRACE", Request{Method: "TRACE"}},
		{"PUT, empty", Request{Method: "PUT"}},
		{"PUT", Request{Method: "PUT", Body: []byte("abc")}},
		{"DELETE", Request{Method: "DELETE"}},
		{"PATCH, empty", Request{Method: "PATCH"}},
		{"POST, empty", Request{}},
		{"POST", Request{Body: []byte("abc")}},
		{"POST with a key, empty", Request{Header: key}},
		{"POST with a key", Request{Header: key, Body: []byte("abc")}},
		{"POST with an X- key, empty", Request{Header: xKey}},
		{"POST with an X- key", Request{Header: xKey, Body: []byte("abc")}},
		{"POST with a large body", Request{Header: key, Body: bytes.Repeat([]byte("x"), 100_000)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { testOnce(t, nil, tt.request) })
		t.Run(tt.name+", caller's client", func(t *testing.T) { testOnce(t, &http.Client{}, tt.request) })
	}
}

func testOnce(t *testing.T, client *http.Client, request Request) {
	r, seen := newForgetful(t)
	if client != nil {
		client.Transport = new(http.Transport)
		defer client.CloseIdleConnections()
	}
	d := NewDeliverer(Options{Client: client, Egress: Egress{AllowPrivate: true}})
	defer d.Close()
	request.URL = r.url()

	if got := d.Deliver(t.Context(), request); got.Kind != "" {
		t.Fatalf("first call: %+v", got)
	}
	if got := d.Deliver(t.Context(), request); got.Kind != KindConnect {
		t.Errorf("second call: got %+v, want %q", got, KindConnect)
	}
	if got := d.Deliver(t.Context(), request); got.Kind != "" {
		t.Errorf("third call: %+v", got)
	}
	if len(seen) != 3 || len(r.conns) != 2 {
		t.Errorf("three calls made %d requests on %d connections, want 3 on 2", len(seen), len(r.conns))
	}
}

// TestNetHTTPRepeats shows that the receiver above is a trap: without precautions it sees a request more than there
// were calls. If this fails after an update of Go, once.go may be shorter.
func TestNetHTTPRepeats(t *testing.T) {
	r, seen := newForgetful(t)
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for range 2 {
		resp, err := client.Get(r.url())
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if len(seen) != 3 {
		t.Errorf("two calls of net/http made %d requests, want 3", len(seen))
	}
}

// A request that gets a header of ours is sent with a map of its own: the caller's is only read.
func TestHeaderOfTheCallerIsNotWrittenTo(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	d := NewDeliverer(Options{Egress: Egress{AllowPrivate: true}})
	defer d.Close()
	for _, header := range []http.Header{{"User-Agent": {"a"}}, {"User-Agent": {"a"}, "user-agent": {"b"}}, {}} {
		before := header.Clone()
		for range 2 {
			if res := d.Deliver(t.Context(), Request{Method: "PUT", URL: srv.URL, Header: header}); res.Kind != "" {
				t.Fatal(res.Err)
			}
		}
		if !maps.EqualFunc(header, before, slices.Equal[[]string]) {
			t.Errorf("the header has become %v", header)
		}
	}
}

func TestTargetsAreBounded(t *testing.T) {
	var known targets
	for i := range 3 * maxTargets {
		u, err := known.parse(fmt.Sprintf("http://host:/%d", i%(2*maxTargets)))
		if err != nil || u.Host != "host" {
			t.Fatal(u, err)
		}
		u.Host = "changed" // it is the caller's
	}
	if len(known.parsed) > maxTargets {
		t.Errorf("%d URLs are remembered", len(known.parsed))
	}
	for range 2 {
		u, err := known.parse("http://host:/again")
		if err != nil || u.Host != "host" {
			t.Error(u, err)
		}
		u.Host = "changed"
	}
}
