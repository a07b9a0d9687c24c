package worker

import "net/netip"

// scope is what it takes, besides an entry in Egress.Allow, to reach a range.
type scope int

const (
	// scopeNever is a range that only Allow opens.
	scopeNever scope = iota
	// scopePrivate is a range that AllowPrivate opens too.
	scopePrivate
)

// rangeRule is one range that is not the public Internet.
type rangeRule struct {
	prefix netip.Prefix
	name   string
	scope  scope
}

// specialRanges are the addresses that are not the public Internet: the special-purpose registries of IANA, and what
// clouds use of their own. It is a table of its own because the methods of netip.Addr know less than half of it. The
// first row that holds an address counts, so the special ones come first.
//
// No row is there to judge an IPv4 address inside an IPv6 one: what translates or tunnels is refused as a whole,
// because the address behind it may be any.
var specialRanges = []rangeRule{
	// Who answers here hands out the credentials of the machine. It is refused although the range around it is private.
	{netip.MustParsePrefix("fd00:ec2::/32"), nameMetadata, scopeNever},          // AWS, with DNS and time
	{netip.MustParsePrefix("fd20:ce::254/128"), nameMetadata, scopeNever},       // Google Cloud
	{netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), nameMetadata, scopeNever}, // Oracle Cloud
	{netip.MustParsePrefix("fd00:42::42/128"), nameMetadata, scopeNever},        // Scaleway
	{netip.MustParsePrefix("168.63.129.16/32"), nameMetadata, scopeNever},       // Azure; public by its number
	{netip.MustParsePrefix("100.100.100.200/32"), nameMetadata, scopeNever},     // Alibaba Cloud
	{netip.MustParsePrefix("192.0.0.192/32"), nameMetadata, scopeNever},         // Oracle Cloud, classic
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local address", scopeNever}, // metadata of most clouds
	{netip.MustParsePrefix("fe80::/10"), "link-local address", scopeNever},      // metadata of some
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback address", scopePrivate},
	{netip.MustParsePrefix("::1/128"), "loopback address", scopePrivate},
	{netip.MustParsePrefix("10.0.0.0/8"), "private address", scopePrivate},          // RFC 1918
	{netip.MustParsePrefix("172.16.0.0/12"), "private address", scopePrivate},       // RFC 1918
	{netip.MustParsePrefix("192.168.0.0/16"), "private address", scopePrivate},      // RFC 1918
	{netip.MustParsePrefix("fc00::/7"), "private address", scopePrivate},            // RFC 4193
	{netip.MustParsePrefix("0.0.0.0/8"), "address of this host", scopeNever},        // 0.0.0.0 reaches loopback
	{netip.MustParsePrefix("100.64.0.0/10"), "shared address", scopeNever},          // carrier-grade NAT, RFC 6598
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignment", scopeNever},      // RFC 6890
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation address", scopeNever},    // TEST-NET-1
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay", scopeNever},             // RFC 7526
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmark address", scopeNever},       // RFC 2544
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation address", scopeNever}, // TEST-NET-2
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation address", scopeNever},  // TEST-NET-3
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast address", scopeNever},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast address", scopeNever},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved address", scopeNever},

	{netip.MustParsePrefix("::/96"), "IPv4-compatible address", scopeNever}, // with ::, which reaches loopback
	{netip.MustParsePrefix("64:ff9b::/96"), "NAT64 address", scopeNever},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "NAT64 address", scopeNever},
	{netip.MustParsePrefix("100::/64"), "discard address", scopeNever},
	{netip.MustParsePrefix("2001::/32"), "Teredo address", scopeNever},
	{netip.MustParsePrefix("2001::/23"), "protocol assignment", scopeNever}, // benchmarks, ORCHID
	{netip.MustParsePrefix("2001:db8::/32"), "documentation address", scopeNever},
	{netip.MustParsePrefix("2002::/16"), "6to4 address", scopeNever},
	{netip.MustParsePrefix("3fff::/20"), "documentation address", scopeNever},
	{netip.MustParsePrefix("5f00::/16"), "segment routing address", scopeNever},
	{netip.MustParsePrefix("fec0::/10"), "site-local address", scopeNever},
	{netip.MustParsePrefix("ff00::/8"), "multicast address", scopeNever},
	// All that is assigned for the public Internet is in 2000::/3, between these.
	{netip.MustParsePrefix("::/3"), nameUnassigned, scopeNever},
	{netip.MustParsePrefix("4000::/2"), nameUnassigned, scopeNever},
	{netip.MustParsePrefix("8000::/1"), nameUnassigned, scopeNever},
}

const (
	nameMetadata   = "cloud metadata address"
	nameUnassigned = "unassigned address"
)

// deniedPorts are ports of services that are not HTTP, and that do harm with what an HTTP request looks like to them:
// mail, databases, caches, remote shells. It is a second line, for services on public addresses.
var deniedPorts = []uint16{
	21, 22, 23, 25, 53, 110, 143, 389, 445, 465, 587, // FTP, SSH, Telnet, SMTP, DNS, POP3, IMAP, LDAP, SMB, submission
	1433, 3306, 3389, 5432, 6379, 11211, 27017, // SQL Server, MySQL, RDP, PostgreSQL, Redis, memcached, MongoDB
}
