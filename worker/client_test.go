package worker

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestRedirectsAreNotFollowed: a redirect is an answer that is not 2xx, wherever it leads.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := newReceiver(t, answering(noContent))
	location := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if location != "" {
			w.Header().Set("Location", location)
		}
		w.WriteHeader(map[string]int{"/301": 301, "/302": 302, "/303": 303, "/304": 304, "/307": 307, "/308": 308}[r.URL.Path])
	}))
	defer srv.Close()
	client := srv.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error {
		t.Error("the client's CheckRedirect was called")
		return nil
	}
	deliverers := map[string]*Deliverer{
		"own client": newTestDeliverer(t, nil), "caller's client": NewDeliverer(Options{Client: client}),
	}
	for name, d := range deliverers {
		for _, location = range []string{other.url(), "/elsewhere", "http://[bad", ""} {
			for path, status := range map[string]int{"/301": 301, "/302": 302, "/303": 303, "/304": 304, "/307": 307, "/308": 308} {
				for _, method := range []string{"GET", "POST"} {
					got := d.Deliver(t.Context(), Request{Method: method, URL: srv.URL + path, Body: []byte("abc")})
					if got.Status != status || got.Kind != KindNon2xx || got.Err != nil {
						t.Errorf("%s, %s, Location %q: got %+v, want status %d", name, method, location, got, status)
					}
				}
			}
		}
	}
	if n := len(other.conns); n != 0 {
		t.Errorf("the other server saw %d connections", n)
	}
}

// TestCallersClient: the client is used as it is, and stays as it is.
func TestCallersClient(t *testing.T) {
	r := newReceiver(t, answering(noContent))
	transport := new(http.Transport)
	client := &http.Client{Transport: transport}
	defer transport.CloseIdleConnections()
	d := NewDeliverer(Options{Client: client})

	for range 2 {
		if got := d.Deliver(t.Context(), Request{URL: r.url()}); got.Kind != "" {
			t.Fatalf("got %+v", got)
		}
		d.Close()
	}
	if len(r.conns) != 1 {
		t.Errorf("two calls made %d connections, want 1: Close must leave a caller's connections alone", len(r.conns))
	}
	if client.Transport != http.RoundTripper(transport) || client.CheckRedirect != nil {
		t.Errorf("the client has become %+v", client)
	}
}

func TestCallersTimeout(t *testing.T) {
	for name, answer := range map[string]string{"before the header": "", "in the body": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, func(c *conn) {
				c.request()
				c.say(answer)
			})
			d := NewDeliverer(Options{Client: &http.Client{Transport: new(http.Transport), Timeout: 50 * time.Millisecond}})
			if got := d.Deliver(t.Context(), Request{URL: r.url()}); got.Kind != KindTimeout || got.Err == nil {
				t.Errorf("got %+v, want %q", got, KindTimeout)
			}
			await(t, r.gone, "end of the connection")
		})
	}
}

// TestCloseEndsIdleConnections: after Close nothing is left, and a later call is served all the same.
func TestCloseEndsIdleConnections(t *testing.T) {
	r := newReceiver(t, answering(noContent))
	d := newTestDeliverer(t, nil)
	for _, method := range []string{"GET", "POST"} {
		for range 2 {
			if got := d.Deliver(t.Context(), Request{Method: method, URL: r.url()}); got.Kind != "" {
				t.Fatalf("got %+v", got)
			}
			d.Close()
			await(t, r.gone, "end of the connection")
		}
	}
}

func TestNoProxy(t *testing.T) {
	for _, transport := range NewDeliverer(Options{}).transports {
		if transport.Proxy != nil {
			t.Error("a proxy may be used")
		}
	}
}
