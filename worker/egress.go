package worker

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
)

// Egress says where requests may go. The zero value is the public Internet only: no loopback, private, link-local or
// otherwise special address, no cloud metadata service, and no proxy.
//
// It is applied to the address that is about to be dialed, after all names are resolved, so no spelling of a host and
// no change in the DNS goes around it. The first that applies decides: Deny, Allow, AllowPrivate, then what kind of
// address it is. Ports decides beside all of these. IPv4 addresses mapped to IPv6 are taken for what they are, IPv4,
// and zones are ignored.
//
// An Egress never changes for a connection that has been made: to change it is to make another transport.
type Egress struct {
	// Allow is what may be reached besides public addresses; none by default. Write IPv4 as IPv4: ::/0 holds no IPv4
	// address. To allow a range that translates to IPv4, such as NAT64's 64:ff9b::/96, allows every address behind it.
	Allow []netip.Prefix
	// Deny is what must not be reached, whatever else is allowed; none by default.
	Deny []netip.Prefix
	// AllowPrivate allows loopback (127.0.0.0/8, ::1) and private networks (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16,
	// fc00::/7); false by default. It does not allow link-local addresses and cloud metadata services: 169.254.169.254
	// and fd00:ec2::254 need an entry in Allow, as do shared addresses (100.64.0.0/10).
	AllowPrivate bool
	// Ports are the only ones that may be reached. None means all except a few of services that are well known and not
	// HTTP: 21, 22, 23, 25, 53, 110, 143, 389, 445, 465, 587, 1433, 3306, 3389, 5432, 6379, 11211 and 27017. Allow
	// opens no port.
	Ports []uint16
	// Proxy chooses the proxy of a request, as in http.Transport; nil, the default, means none. The environment is
	// never asked; http.ProxyFromEnvironment here does so. It moves the guard: the proxy's own address and port must be
	// allowed, and where the proxy goes is the proxy's to restrict. Requests for which it returns nil are guarded.
	Proxy func(*http.Request) (*url.URL, error)
}

// Validate returns an error for what cannot be meant: a prefix that is not valid, has bits beyond its length or is an
// IPv4 one mapped to IPv6, which would match nothing, and port 0. The zero value is valid.
func (e Egress) Validate() error {
	for _, list := range []struct {
		name     string
		prefixes []netip.Prefix
	}{{"Allow", e.Allow}, {"Deny", e.Deny}} {
		for i, p := range list.prefixes {
			switch {
			case !p.IsValid():
				return fmt.Errorf("worker: Egress.%s[%d] is not a valid prefix", list.name, i)
			case p.Addr().Is4In6():
				return fmt.Errorf("worker: Egress.%s %v never matches: write it as a prefix of IPv4", list.name, p)
			case p != p.Masked():
				return fmt.Errorf("worker: Egress.%s %v has bits beyond its length: write %v, or a longer prefix", list.name, p, p.Masked())
			}
		}
	}
	if slices.Contains(e.Ports, 0) {
		return fmt.Errorf("worker: Egress.Ports has port 0")
	}
	return nil
}

// EgressError is the refusal of an Egress: nothing was sent, not even to open a connection. errors.As finds it in the
// errors of net/http. Its text holds the address, never the URL or the host's name.
type EgressError struct {
	// Address is what was about to be dialed, without a zone and not mapped to IPv6; the zero Addr if it could not be
	// read.
	Address netip.Addr
	// Port is the port of that address, 0 if it could not be read.
	Port uint16
	// Rule is why it was refused: the kind of address, such as "private address", "port", or the entry of Egress.Deny.
	Rule string

	remedy string // the end of the text: what would allow the address
}

// Error names the rule and the setting that allows the address.
func (e *EgressError) Error() string {
	text := fmt.Sprintf("worker: egress to %v is refused (%s)", netip.AddrPortFrom(e.Address, e.Port), e.Rule)
	if e.remedy != "" {
		text += ": " + e.remedy
	}
	return text
}

// decide returns nil if the address may be dialed. It takes any spelling that netip has for it.
func (e *Egress) decide(to netip.AddrPort) *EgressError {
	addr, port := to.Addr().WithZone("").Unmap(), to.Port()
	refusal := func(rule, remedy string) *EgressError { return &EgressError{addr, port, rule, remedy} }
	if !addr.IsValid() {
		return refusal("unreadable address", "nothing in Egress allows it")
	}
	if p, ok := holding(e.Deny, addr); ok {
		return refusal(fmt.Sprintf("Egress.Deny %v", p), "allow it by taking it out of Egress.Deny")
	}
	if _, ok := holding(e.Allow, addr); !ok {
		if r := special(addr); r != nil && !(e.AllowPrivate && r.scope == scopePrivate) {
			remedy := fmt.Sprintf("allow it with Egress.Allow %v", netip.PrefixFrom(addr, addr.BitLen()))
			if r.scope == scopePrivate {
				remedy += " or Egress.AllowPrivate"
			}
			return refusal(r.name, remedy)
		}
	}
	if !e.allowsPort(port) {
		return refusal("port", fmt.Sprintf("allow it with Egress.Ports %d", port))
	}
	return nil
}

// allowsPort leaves port 0, which nobody listens on, to the system.
func (e *Egress) allowsPort(port uint16) bool {
	if len(e.Ports) > 0 {
		return slices.Contains(e.Ports, port)
	}
	return !slices.Contains(deniedPorts, port)
}

// special returns the row of specialRanges for an address, nil if the address is public.
func special(addr netip.Addr) *rangeRule {
	for i := range specialRanges {
		if specialRanges[i].prefix.Contains(addr) {
			return &specialRanges[i]
		}
	}
	return nil
}

// holding returns the first of the prefixes that holds addr.
func holding(prefixes []netip.Prefix, addr netip.Addr) (netip.Prefix, bool) {
	for _, p := range prefixes {
		if p.Contains(addr) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}
