package worker

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestEgressDecide(t *testing.T) {
	closed, private := Egress{}, Egress{AllowPrivate: true}
	lists := Egress{
		Allow: prefixes("10.0.0.0/8", "169.254.169.254/32", "fd00:ec2::254/128", "64:ff9b::/96", "203.0.113.7/32"),
		Deny:  prefixes("10.1.0.0/16", "93.184.216.0/24", "2606:2800::/32"),
	}
	all := Egress{Allow: prefixes("0.0.0.0/0", "::/0")}
	ports := Egress{Ports: []uint16{443, 22}, Allow: prefixes("10.0.0.0/8")}
	denyAll := Egress{Deny: prefixes("0.0.0.0/0"), Allow: prefixes("0.0.0.0/0", "::/0"), AllowPrivate: true}

	tests := []struct {
		egress Egress
		to     string
		want   string // the rule; "" means allowed
	}{
		{closed, "93.184.216.34:80", ""},
		{closed, "93.184.216.34:65535", ""},
		{closed, "[2606:2800:220:1::1]:443", ""},
		{closed, "[::ffff:93.184.216.34]:443", ""},
		{closed, "[2606:2800:220:1::1%eth0]:443", ""},
		{closed, "1.1.1.1:80", ""},
		{closed, "100.63.255.255:80", ""}, {closed, "100.128.0.0:80", ""},
		{closed, "172.15.255.255:80", ""}, {closed, "172.32.0.0:80", ""},
		{closed, "168.63.129.15:80", ""}, {closed, "168.63.129.17:80", ""},
		{closed, "198.17.255.255:80", ""}, {closed, "198.20.0.0:80", ""},
		{closed, "223.255.255.255:80", ""}, {closed, "[2001:200::]:80", ""},
		{closed, "[2001:1ff:ffff::]:80", "protocol assignment"},
		{closed, "[100::1]:80", "discard address"}, {closed, "[5f00::1]:80", "segment routing address"},
		{closed, "[4000::]:80", nameUnassigned}, {closed, "[1fff::]:80", nameUnassigned},

		{private, "127.0.0.1:80", ""}, {private, "[::1]:80", ""}, {private, "10.0.0.1:80", ""},
		{private, "192.168.255.255:80", ""}, {private, "[fd12::1]:80", ""},
		{private, "169.254.169.254:80", "link-local address"}, {private, "169.254.170.2:80", "link-local address"},
		{private, "[fe80::1%eth0]:80", "link-local address"}, {private, "[fd00:ec2::254]:80", nameMetadata},
		{private, "[fd00:ec2::23]:80", nameMetadata}, {private, "[fd20:ce::254]:80", nameMetadata},
		{private, "[fd00:c1::a9fe:a9fe]:80", nameMetadata}, {private, "[fd00:42::42]:80", nameMetadata},
		{private, "100.100.100.200:80", nameMetadata}, {private, "100.64.0.1:80", "shared address"},
		{private, "168.63.129.16:80", nameMetadata}, {private, "0.0.0.0:80", "address of this host"},
		{private, "[::]:80", "IPv4-compatible address"}, {private, "[64:ff9b::a00:1]:80", "NAT64 address"},
		{private, "127.0.0.1:6379", "port"}, {private, "10.0.0.1:22", "port"},

		{lists, "10.2.0.1:80", ""}, {lists, "10.1.0.1:80", "Egress.Deny 10.1.0.0/16"},
		{lists, "[::ffff:10.1.0.1]:80", "Egress.Deny 10.1.0.0/16"},
		{lists, "93.184.216.34:80", "Egress.Deny 93.184.216.0/24"},
		{lists, "[2606:2800::1%eth0]:80", "Egress.Deny 2606:2800::/32"},
		{lists, "169.254.169.254:80", ""}, {lists, "169.254.169.253:80", "link-local address"},
		{lists, "[fd00:ec2::254]:80", ""}, {lists, "[64:ff9b::a9fe:a9fe]:80", ""}, {lists, "203.0.113.7:80", ""},
		{lists, "203.0.113.8:80", "documentation address"}, {lists, "192.168.0.1:80", "private address"},
		{lists, "10.2.0.1:25", "port"},

		{all, "255.255.255.255:80", ""}, {all, "[fe80::1%eth0]:80", ""}, {all, "0.0.0.0:80", ""}, {all, "127.0.0.1:53", "port"},
		{ports, "93.184.216.34:443", ""}, {ports, "93.184.216.34:22", ""}, {ports, "93.184.216.34:80", "port"},
		{ports, "10.0.0.1:443", ""}, {ports, "10.0.0.1:8443", "port"}, {ports, "127.0.0.1:443", "loopback address"},
		{denyAll, "1.1.1.1:80", "Egress.Deny 0.0.0.0/0"}, {denyAll, "[::ffff:1.1.1.1]:80", "Egress.Deny 0.0.0.0/0"},
		{denyAll, "[::1]:80", ""},
	}
	for _, tt := range tests {
		rule := ""
		if refused := tt.egress.decide(netip.MustParseAddrPort(tt.to)); refused != nil {
			rule = refused.Rule
		}
		if rule != tt.want {
			t.Errorf("%s: got %q, want %q", tt.to, rule, tt.want)
		}
	}
	for _, port := range deniedPorts {
		if got := closed.decide(netip.AddrPortFrom(netip.MustParseAddr("1.1.1.1"), port)); got == nil || got.Rule != "port" {
			t.Errorf("port %d: got %v", port, got)
		}
	}
}

// TestDialed: what net prints is read, with any zone; all else is refused.
func TestDialed(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:80": "127.0.0.1:80", "[::1]:80": "[::1]:80", "[fe80::1%eth0]:80": "[fe80::1]:80",
		"127.0.0.1%lo:80": "127.0.0.1:80", "[::ffff:10.0.0.1]:1": "[::ffff:10.0.0.1]:1", "[fe80::1%a:b%c]:80": "[fe80::1]:80",
	} {
		if got := dialed(text); got.String() != want {
			t.Errorf("%q: got %v, want %s", text, got, want)
		}
	}
	g := newGuard(Egress{Allow: prefixes("0.0.0.0/0", "::/0"), AllowPrivate: true})
	for _, text := range []string{"", ":80", "[]:80", "/run/socket", "@abstract", "host:80", "1.2.3.4", "1.2.3.4:http", "1.2.3.4:65536",
		"1.2.3.4:-1", "%eth0:80", "[fe80::1%a]b]:80", "127.1:80", "0x7f.1:80"} {
		err := g.control(t.Context(), "tcp4", text, nil)
		if refused, ok := errors.AsType[*EgressError](err); !ok || refused.Rule != "unreadable address" || refused.Error() == "" {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestEgressErrorText(t *testing.T) {
	deny := Egress{Deny: prefixes("10.0.0.0/8")}
	ports := Egress{Ports: []uint16{443}}
	tests := []struct {
		egress   Egress
		to, want string
	}{
		{Egress{}, "10.1.2.3:8080", "worker: egress to 10.1.2.3:8080 is refused (private address): " +
			"allow it with Egress.Allow 10.1.2.3/32 or Egress.AllowPrivate"},
		{Egress{}, "[fe80::1%eth0]:80", "worker: egress to [fe80::1]:80 is refused (link-local address): " +
			"allow it with Egress.Allow fe80::1/128"},
		{deny, "10.1.2.3:8080", "worker: egress to 10.1.2.3:8080 is refused (Egress.Deny 10.0.0.0/8): " +
			"allow it by taking it out of Egress.Deny"},
		{ports, "1.1.1.1:80", "worker: egress to 1.1.1.1:80 is refused (port): allow it with Egress.Ports 80"},
	}
	for _, tt := range tests {
		err := error(tt.egress.decide(netip.MustParseAddrPort(tt.to)))
		if err.Error() != tt.want {
			t.Errorf("got\n%q, want\n%q", err, tt.want)
		}
		wrapped := &url.Error{Op: "Post", URL: "http://" + canary, Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
		res := failed(Result{}, wrapped)
		if res.Kind != KindConfig || !res.Permanent || res.Err != err || Classify(0, wrapped) != KindConfig {
			t.Errorf("got %+v", res)
		}
	}
	if got := (&EgressError{Rule: "mine"}).Error(); !strings.HasSuffix(got, "is refused (mine)") {
		t.Errorf("got %q", got)
	}
}

func TestEgressValidate(t *testing.T) {
	for _, good := range []Egress{
		{}, {AllowPrivate: true}, {Allow: prefixes("0.0.0.0/0", "::/0", "10.1.2.3/32", "fd00::/8"), Deny: prefixes("::1/128"), Ports: []uint16{1, 65535}},
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for want, bad := range map[string]Egress{
		"worker: Egress.Allow[1] is not a valid prefix": {Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), {}}},
		"worker: Egress.Deny ::ffff:10.0.0.0/104 never matches: write it as a prefix of IPv4": {
			Deny: prefixes("::ffff:10.0.0.0/104")},
		"worker: Egress.Allow 10.1.2.3/8 has bits beyond its length: write 10.0.0.0/8, or a longer prefix": {
			Allow: prefixes("10.1.2.3/8")},
		"worker: Egress.Ports has port 0": {Ports: []uint16{80, 0}},
	} {
		if err := bad.Validate(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// naiveRanges is specialRanges once more, as first and last addresses, to compare with by another method.
var naiveRanges = []struct {
	first, last string
	private     bool
}{
	{"0.0.0.0", "0.255.255.255", false}, {"10.0.0.0", "10.255.255.255", true}, {"100.64.0.0", "100.127.255.255", false},
	{"127.0.0.0", "127.255.255.255", true}, {"168.63.129.16", "168.63.129.16", false},
	{"169.254.0.0", "169.254.255.255", false}, {"172.16.0.0", "172.31.255.255", true},
	{"192.0.0.0", "192.0.0.255", false}, {"192.0.2.0", "192.0.2.255", false}, {"192.88.99.0", "192.88.99.255", false},
	{"192.168.0.0", "192.168.255.255", true}, {"198.18.0.0", "198.19.255.255", false},
	{"198.51.100.0", "198.51.100.255", false}, {"203.0.113.0", "203.0.113.255", false},
	{"224.0.0.0", "255.255.255.255", false},

	{"::", "::", false}, {"::1", "::1", true}, {"::2", "::fffe:ffff:ffff", false},
	{"::1:0:0:0", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false}, // from the end of ::ffff:0:0/96
	{"2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", false},
	{"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", false}, {"2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false},
	{"3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", false},
	{"4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false},
	{"fd00:ec2::", "fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff", false}, {"fd20:ce::254", "fd20:ce::254", false},
	{"fd00:c1::a9fe:a9fe", "fd00:c1::a9fe:a9fe", false}, {"fd00:42::42", "fd00:42::42", false},
	{"fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true},
	{"fe00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false},
}

// naive is decide without netip and with net.IP, whose 16 bytes are the same for IPv4 mapped and not.
func naive(ip net.IP, port uint16, allow, deny *net.IPNet, private bool) bool {
	// An IPNet takes the IPv6 form of an IPv4 address as IPv4, so families never mix here either.
	if deny.Contains(ip) || slices.Contains(deniedPorts, port) {
		return false
	}
	if allow.Contains(ip) {
		return true
	}
	for _, r := range naiveRanges {
		if bytes.Compare(net.ParseIP(r.first), ip) <= 0 && bytes.Compare(ip, net.ParseIP(r.last)) <= 0 {
			return r.private && private
		}
	}
	return true
}

func FuzzEgress(f *testing.F) {
	for _, r := range naiveRanges {
		for _, text := range []string{r.first, r.last} {
			ip := net.ParseIP(text).To16()
			before, after := slices.Clone([]byte(ip)), slices.Clone([]byte(ip))
			for i := 15; i >= 0; i-- {
				if before[i]--; before[i] != 255 {
					break
				}
			}
			for i := 15; i >= 0; i-- {
				if after[i]++; after[i] != 0 {
					break
				}
			}
			for _, seed := range [][]byte{before, ip, after} {
				other := []byte{9, 9, 9, 9}
				f.Add(seed, uint16(80), uint8(32), uint8(32), true, other, other)
				f.Add(seed, uint16(80), uint8(32), uint8(32), false, other, other)
				f.Add(seed, uint16(22), uint8(96), uint8(96), false, after, before)
				f.Add(seed, uint16(80), uint8(32), uint8(96), true, seed, before)
			}
		}
	}
	f.Fuzz(func(t *testing.T, addr []byte, port uint16, allowBits, denyBits uint8, private bool, allow, deny []byte) {
		ip, ok := netip.AddrFromSlice(addr)
		if !ok {
			return
		}
		e := Egress{AllowPrivate: private}
		allowNet, okAllow := fuzzPrefix(&e.Allow, allow, allowBits)
		denyNet, okDeny := fuzzPrefix(&e.Deny, deny, denyBits)
		if !okAllow || !okDeny {
			return
		}
		want := naive(net.IP(addr).To16(), port, allowNet, denyNet, private)
		zoned := ip
		if ip.Is6() {
			zoned = ip.WithZone("eth0")
		}
		for _, ip := range []netip.Addr{ip, ip.Unmap(), netip.AddrFrom16(ip.As16()), zoned} {
			text := netip.AddrPortFrom(ip, port).String()
			refused := e.decide(dialed(text))
			if (refused == nil) != want {
				t.Fatalf("%s with %+v: got %v, want allowed %v", text, e, refused, want)
			}
			if refused != nil && !strings.Contains(refused.Error(), "Egress.") {
				t.Fatalf("%s: %v", text, refused)
			}
		}
	})
}

// fuzzPrefix adds a prefix to the list and returns it as net has it. False is one that Validate refuses.
func fuzzPrefix(list *[]netip.Prefix, addr []byte, bits uint8) (*net.IPNet, bool) {
	ip, ok := netip.AddrFromSlice(addr)
	if !ok {
		return nil, false
	}
	ip = ip.Unmap()
	p := netip.PrefixFrom(ip, int(bits)%(ip.BitLen()+1)).Masked()
	if p.Addr().Is4In6() {
		return nil, false
	}
	*list = append(*list, p)
	_, n, err := net.ParseCIDR(fmt.Sprint(p))
	return n, err == nil
}
