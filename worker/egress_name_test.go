package worker

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// TestEgressRebinding: a name that was allowed and leads elsewhere the next time is refused then. A connection that was
// made while it was allowed stays what it is.
func TestEgressRebinding(t *testing.T) {
	r := newReceiver(t, answering(noContent))
	_, port, _ := net.SplitHostPort(r.addr)
	dns := new(fakeDNS)
	d := newGuarded(t, Egress{Allow: prefixes("127.0.0.1/32")}, dns)
	request := Request{URL: "http://flips.test:" + port + "/?" + canary}

	dns.set("flips.test", "127.0.0.1")
	for range 2 {
		if got := d.Deliver(t.Context(), request); got.Kind != "" {
			t.Fatalf("got %+v", got)
		}
		dns.set("flips.test", "127.0.0.2")
	}
	if n := len(r.conns); n != 1 {
		t.Errorf("two calls made %d connections, want 1", n)
	}
	for _, addr := range []string{"127.0.0.2", "169.254.169.254", "::ffff:10.0.0.1", "64:ff9b::7f00:1"} {
		dns.set("flips.test", addr)
		d.Close()
		if got := d.Deliver(t.Context(), request); !got.Permanent {
			t.Errorf("%s: got %+v", addr, got)
		}
	}
	// The connection to one name is not used for another, even at the same address.
	dns.set("flips.test", "127.0.0.1")
	dns.set("other.test", "127.0.0.3")
	d.Deliver(t.Context(), request)
	request.URL = strings.Replace(request.URL, "flips", "other", 1)
	expectRefusal(t, d.Deliver(t.Context(), request), "loopback address", "127.0.0.3/32 or Egress.AllowPrivate")
	if n := len(r.conns); n != 2 {
		t.Errorf("the receiver saw %d connections, want 2", n)
	}
}

// TestEgressSeveralAddresses: of a host with several addresses those that are allowed are tried, and only a host
// without one is refused for good.
func TestEgressSeveralAddresses(t *testing.T) {
	r := newReceiver(t, answering(noContent))
	_, port, _ := net.SplitHostPort(r.addr)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	_, closedPort, _ := net.SplitHostPort(closed.Addr().String())

	dns := new(fakeDNS)
	dns.set("mixed.test", "127.0.0.2", "127.0.0.1", "127.0.0.3")
	dns.set("mixed6.test", "::1", "127.0.0.1")
	dns.set("refused.test", "127.0.0.2", "::1", "127.0.0.3")
	d := newGuarded(t, Egress{Allow: prefixes("127.0.0.1/32")}, dns)

	for _, name := range []string{"mixed.test", "mixed6.test"} {
		if got := d.Deliver(t.Context(), Request{URL: "http://" + name + ":" + port}); got.Kind != "" {
			t.Errorf("%s: got %+v", name, got)
		}
		got := d.Deliver(t.Context(), Request{URL: "http://" + name + ":" + closedPort})
		if got.Kind != KindConnect || got.Permanent || got.Err == nil {
			t.Errorf("%s, nobody listens: got %+v, want %q", name, got, KindConnect)
		}
		t.Log(got.Err)
	}
	got := d.Deliver(t.Context(), Request{URL: "http://refused.test:" + port})
	expectRefusal(t, got, "loopback address", "Egress.AllowPrivate")
}

// TestEgressProxy: the environment has no say; a proxy that is configured must itself be allowed, and what is behind
// it is out of the guard's sight.
func TestEgressProxy(t *testing.T) {
	seen := make(chan string, 10)
	proxy := newReceiver(t, func(c *conn) {
		for {
			req, ok := c.request()
			if !ok {
				return
			}
			seen <- req.Method + " " + req.RequestURI
			c.say(noContent)
		}
	})
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, proxy.url())
	}
	request := Request{URL: "http://10.9.9.9/x"}
	expectRefusal(t, newGuarded(t, Egress{}, nil).Deliver(t.Context(), request), "private address", "10.9.9.9/32")

	target, _ := url.Parse(proxy.url())
	e := Egress{Proxy: http.ProxyURL(target)}
	for _, scheme := range []string{"http", "https"} {
		request := Request{URL: scheme + "://10.9.9.9/x"}
		expectRefusal(t, newGuarded(t, e, nil).Deliver(t.Context(), request), "loopback address", "127.0.0.1/32")
	}
	if n := len(proxy.conns); n != 0 {
		t.Errorf("the proxy saw %d connections", n)
	}
	e.Allow = prefixes("127.0.0.1/32")
	d := newGuarded(t, e, nil)
	if got := d.Deliver(t.Context(), request); got.Kind != "" {
		t.Errorf("through the proxy: got %+v", got)
	}
	if got := await(t, seen, "request"); got != "POST http://10.9.9.9/x" {
		t.Errorf("the proxy saw %q", got)
	}
}

// TestEgressIsCopied: what the caller does with the slices afterwards changes nothing.
func TestEgressIsCopied(t *testing.T) {
	r := newReceiver(t, answering(noContent))
	e := Egress{Allow: prefixes("192.0.2.0/24"), Deny: prefixes("127.0.0.0/8")}
	d := NewDeliverer(Options{Egress: e})
	defer d.Close()
	e.Allow[0], e.Deny[0] = netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("192.0.2.0/24")
	expectRefusal(t, d.Deliver(t.Context(), Request{URL: r.url()}), "Egress.Deny 127.0.0.0/8", "Egress.Deny")
}

// TestEgressInvalid: what Validate refuses opens nothing.
func TestEgressInvalid(t *testing.T) {
	r := newReceiver(t, answering(noContent))
	d := NewDeliverer(Options{Egress: Egress{AllowPrivate: true, Ports: []uint16{0}}})
	defer d.Close()
	got := d.Deliver(t.Context(), Request{URL: r.url()})
	if got.Kind != KindConfig || got.Permanent || got.Err == nil || got.Err.Error() != "worker: Egress.Ports has port 0" {
		t.Errorf("got %+v", got)
	}
	if n := len(r.conns); n != 0 {
		t.Errorf("the receiver saw %d connections", n)
	}
}
