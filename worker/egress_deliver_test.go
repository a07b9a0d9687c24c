package worker

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// spelling is a host in a URL and what it comes to.
type spelling struct {
	host string
	// resolved is what a resolver that takes everything, such as getaddrinfo, makes of the host, "" if net/http needs
	// none. The host that it is asked for may be another than the URL's: lower case, ASCII.
	asked, resolved string
	// rule is the rule that refuses it; "" means that it does not resolve.
	rule string
}

var spellings = []spelling{
	{host: "127.0.0.1", rule: "loopback address"},
	{host: "127.255.255.254", rule: "loopback address"},
	{host: "[::1]", rule: "loopback address"},
	{host: "[0:0:0:0:0:0:0:1]", rule: "loopback address"},
	{host: "[::ffff:127.0.0.1]", rule: "loopback address"},
	{host: "[::ffff:7f00:1]", rule: "loopback address"},
	{host: "[::FFFF:127.0.0.1]", rule: "loopback address"},
	{host: "[0:0:0:0:0:ffff:127.0.0.1]", rule: "loopback address"},
	{host: "[::ffff:127.0.0.1%25lo]", rule: "loopback address"},
	{host: "[::1%25lo]", rule: "loopback address"},
	{host: "localhost", asked: "localhost", resolved: "127.0.0.1", rule: "loopback address"},
	{host: "LOCALHOST", asked: "localhost", resolved: "127.0.0.1", rule: "loopback address"},
	{host: "localhost.", asked: "localhost", resolved: "127.0.0.1", rule: "loopback address"},
	{host: "user:secret@127.0.0.1", rule: "loopback address"},
	{host: "example.com@127.0.0.1", rule: "loopback address"},
	{host: "①②⑦.0.0.1", rule: "loopback address"},
	{host: "127。0。0。1", rule: "loopback address"},
	{host: "127.0.0。1", rule: "loopback address"},
	{host: "１２７.０.０.１", rule: "loopback address"},
	{host: "１２７．０．０．１", rule: "loopback address"},
	{host: "１６９.254.１６９.254", rule: "link-local address"},
	{host: "0x7f000001", asked: "0x7f000001", resolved: "127.0.0.1", rule: "loopback address"},
	{host: "0x7f.0x0.0x0.0x1", asked: "0x7f.0x0.0x0.0x1", resolved: "127.0.0.1", rule: "loopback address"},
	{host: "0x7F.1", asked: "0x7f.1", resolved: "127.0.0.1", rule: "loopback address"},
	// The resolver of Go takes these for no names at all; TestNumericHosts asks that of the system.
	{host: "127.1"}, {host: "127.0.1"}, {host: "2130706433"}, {host: "017700000001"}, {host: "0177.0.0.1"}, {host: "0251.0376.0251.0376"}, {host: "2852039166"}, {host: "127.0.0.01"},
	{host: "0"}, {host: "127.0.0.1."}, {host: "127.0.0.256"}, {host: "[::ffff:127.1]"}, {host: "%31%32%37.0.0.1"}, {host: "127%2e0%2E0%2e1"}, {host: `127.0.0.1\@example.com`},

	{host: "loopback.test", asked: "loopback.test", resolved: "127.0.0.1", rule: "loopback address"},
	{host: "loopback6.test", asked: "loopback6.test", resolved: "::1", rule: "loopback address"},
	{host: "ＬＯＣＡＬＨＯＳＴ", asked: "localhost", resolved: "127.0.0.1", rule: "loopback address"},
	{host: "0xa9fea9fe", asked: "0xa9fea9fe", resolved: "169.254.169.254", rule: "link-local address"},
	{host: "nat64.test", asked: "nat64.test", resolved: "64:ff9b::a9fe:a9fe", rule: "NAT64 address"},
	{host: "mapped.test", asked: "mapped.test", resolved: "::ffff:127.0.0.1", rule: "loopback address"},
	{host: "127.0.0.1.nip.test", asked: "127.0.0.1.nip.test", resolved: "127.0.0.1", rule: "loopback address"},
	{host: "metadata.test", asked: "metadata.test", resolved: "169.254.169.254", rule: "link-local address"},
	{host: "metadata.google.internal", asked: "metadata.google.internal", resolved: "169.254.169.254", rule: "link-local address"},

	{host: "0.0.0.0", rule: "address of this host"},
	{host: "0.1.2.3", rule: "address of this host"},
	{host: "[::]", rule: "IPv4-compatible address"},
	{host: "[::ffff:0.0.0.0]", rule: "address of this host"},
	{host: "[::127.0.0.1]", rule: "IPv4-compatible address"},
	{host: "[::ffff:0:127.0.0.1]", rule: nameUnassigned},

	{host: "169.254.169.254", rule: "link-local address"},
	{host: "[::ffff:169.254.169.254]", rule: "link-local address"},
	{host: "[::ffff:a9fe:a9fe]", rule: "link-local address"},
	{host: "[64:ff9b::a9fe:a9fe]", rule: "NAT64 address"},
	{host: "[64:ff9b::127.0.0.1]", rule: "NAT64 address"},
	{host: "[64:ff9b:1::a9fe:a9fe]", rule: "NAT64 address"},
	{host: "[2002:a9fe:a9fe::1]", rule: "6to4 address"},
	{host: "[2002:7f00:1::]", rule: "6to4 address"},
	{host: "[2002:0a00:0001:0:0:0:0:1%25eth0]", rule: "6to4 address"},
	{host: "[::ffff:a00:1]", rule: "private address"},
	{host: "[::ffff:192.168.0.1%25eth0]", rule: "private address"},
	{host: "[2001:0:5ef5:79fb::80ff:fffe]", rule: "Teredo address"},
	{host: "[fd00:ec2::254]", rule: nameMetadata},
	{host: "[fd20:ce::254]", rule: nameMetadata},
	{host: "[FD00:0EC2:0::254%25eth0]", rule: nameMetadata},
	{host: "[fe80::1]", rule: "link-local address"},
	{host: "[fe80::1%25eth0]", rule: "link-local address"},
	{host: "[fe80::a9fe:a9fe%25no%20such%20zone]", rule: "link-local address"},
	{host: "[fec0::1]", rule: "site-local address"},
	{host: "100.100.100.200", rule: nameMetadata},
	{host: "100.64.0.1", rule: "shared address"},
	{host: "168.63.129.16", rule: nameMetadata},
	{host: "192.0.0.192", rule: nameMetadata},
	{host: "192.0.0.8", rule: "protocol assignment"},

	{host: "10.1.2.3", rule: "private address"},
	{host: "172.31.255.255", rule: "private address"},
	{host: "192.168.0.1", rule: "private address"},
	{host: "[fc00::1]", rule: "private address"},
	{host: "192.0.2.1", rule: "documentation address"},
	{host: "[2001:db8::1]", rule: "documentation address"},
	{host: "198.18.0.1", rule: "benchmark address"},
	{host: "224.0.0.1", rule: "multicast address"},
	{host: "[ff02::1]", rule: "multicast address"},
	{host: "240.0.0.1", rule: "reserved address"},
	{host: "255.255.255.255", rule: "broadcast address"},
}

// TestEgressSpellings: whatever it is called, what is not public is not reached.
func TestEgressSpellings(t *testing.T) {
	r := newReceiver(t, answering(noContent))
	_, port, _ := net.SplitHostPort(r.addr)
	dns := new(fakeDNS)
	for _, s := range spellings {
		if s.asked != "" {
			dns.set(s.asked, s.resolved)
		}
	}
	d := newGuarded(t, Egress{}, dns)
	for _, s := range spellings {
		t.Run(s.host, func(t *testing.T) {
			for _, method := range []string{"GET", "POST"} { // over both transports
				target := fmt.Sprintf("http://%s:%s/?%s", s.host, port, canary)
				got := d.Deliver(t.Context(), Request{Method: method, URL: target})
				if s.rule == "" {
					if got.Kind != KindDNS && got.Kind != KindConfig || got.Permanent {
						t.Errorf("got %+v, want a failure to resolve", got)
					}
					continue
				}
				expectRefusal(t, got, s.rule, "Egress.Allow ")
			}
		})
	}
	if n := len(r.conns); n != 0 {
		t.Errorf("the receiver saw %d connections", n)
	}
}

// expectRefusal checks a result that refuses, by rule, and whose text has remedy in it.
func expectRefusal(t *testing.T, got Result, rule, remedy string) {
	t.Helper()
	refused, ok := got.Err.(*EgressError)
	if !ok || got.Kind != KindConfig || !got.Permanent || got.Status != 0 || got.Snippet != "" {
		t.Fatalf("got %+v, want a refusal", got)
	}
	if refused.Rule != rule || !strings.Contains(refused.Error(), remedy) || strings.Contains(refused.Error(), canary) {
		t.Errorf("got rule %q and %q, want rule %q and %q", refused.Rule, refused, rule, remedy)
	}
	if refused.Address.Is4In6() || refused.Address.Zone() != "" || refused.Port == 0 {
		t.Errorf("got address %v and port %d", refused.Address, refused.Port)
	}
}

// TestNumericHosts asks the resolver of the system for what some take for addresses. None of these asks the DNS.
func TestNumericHosts(t *testing.T) {
	r := newReceiver(t, answering(noContent))
	_, port, _ := net.SplitHostPort(r.addr)
	d := NewDeliverer(Options{})
	defer d.Close()
	for _, host := range []string{"127.1", "127.0.1", "2130706433", "017700000001", "0177.0.0.1", "127.0.0.01", "0"} {
		got := d.Deliver(t.Context(), Request{URL: "http://" + host + ":" + port})
		t.Logf("%s: %s %v", host, got.Kind, got.Err)
		if got.Kind != KindDNS && !got.Permanent {
			t.Errorf("%s: got %+v", host, got)
		}
	}
	if n := len(r.conns); n != 0 {
		t.Errorf("the receiver saw %d connections", n)
	}
}

// TestNumericHostsInC is TestNumericHosts with getaddrinfo, which takes all of them, where there is one.
func TestNumericHostsInC(t *testing.T) {
	test := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNumericHosts$", "-test.v")
	test.Env = append(os.Environ(), "GODEBUG=netdns=cgo")
	out, err := test.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestEgressByDefault: a Deliverer with no settings at all reaches no loopback address, over neither of its transports.
func TestEgressByDefault(t *testing.T) {
	r := newReceiver(t, answering(noContent))
	d := NewDeliverer(Options{})
	defer d.Close()
	for _, method := range []string{"GET", "POST"} {
		for _, scheme := range []string{"http", "https"} {
			got := d.Deliver(t.Context(), Request{Method: method, URL: scheme + "://" + r.addr})
			expectRefusal(t, got, "loopback address", "Egress.AllowPrivate")
		}
	}
	if n := len(r.conns); n != 0 {
		t.Errorf("the receiver saw %d connections", n)
	}
}

// TestEgressRedirect: a Deliverer does not follow, and a client that does is refused.
func TestEgressRedirect(t *testing.T) {
	e := Egress{Allow: prefixes("127.0.0.1/32")}
	for _, status := range []int{301, 302, 303, 307, 308} {
		r := newReceiver(t, answering(fmt.Sprintf("HTTP/1.1 %d \r\nLocation: http://127.0.0.2/?%s\r\nContent-Length: 0\r\n\r\n", status, canary)))
		d := newGuarded(t, e, nil)
		if got := d.Deliver(t.Context(), Request{URL: r.url()}); got.Status != status || got.Kind != KindNon2xx || got.Permanent {
			t.Errorf("got %+v, want status %d", got, status)
		}
		client := &http.Client{Transport: NewTransport(e)}
		_, err := client.Get(r.url())
		client.CloseIdleConnections()
		if refused, ok := errors.AsType[*EgressError](err); !ok || refused.Address.String() != "127.0.0.2" {
			t.Errorf("a client that follows: %v", err)
		}
		if _, ok := errors.AsType[*url.Error](err); !ok || Classify(0, err) != KindConfig {
			t.Errorf("a client that follows: %#v is %q", err, Classify(0, err))
		}
	}
}

// TestEgressCallersClient: a client of one's own is not guarded, unless by its transport.
func TestEgressCallersClient(t *testing.T) {
	r := newReceiver(t, answering(noContent))
	bare, guarded := new(http.Transport), NewTransport(Egress{})
	defer bare.CloseIdleConnections()
	if got := NewDeliverer(Options{Client: &http.Client{Transport: bare}}).Deliver(t.Context(), Request{URL: r.url()}); got.Kind != "" {
		t.Errorf("not guarded: got %+v", got)
	}
	d := NewDeliverer(Options{Client: &http.Client{Transport: guarded}, Egress: Egress{AllowPrivate: true}})
	expectRefusal(t, d.Deliver(t.Context(), Request{URL: r.url() + "/?" + canary}), "loopback address", "Egress.AllowPrivate")
	if n := len(r.conns); n != 1 {
		t.Errorf("the receiver saw %d connections, want 1", n)
	}
}
