package fetch

import "net/netip"

// A class is the kind of network that an address belongs to.
type class int

const (
	public  class = iota
	private       // a private network or this machine, where a document server may run
	special       // link-local, metadata, multicast or reserved: no document server runs there
)

// nat64 is the prefix under which an IPv6-only network reaches IPv4 (RFC 6052).
// Its name servers also translate public addresses, so the class is that of the
// IPv4 address inside.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// classes maps prefixes to classes; the first prefix that matches counts. It
// follows the IANA registries of special-purpose addresses. IPv4 addresses
// without a match are public, IPv6 addresses only within 2000::/3.
var classes = []struct {
	prefix netip.Prefix
	class  class
}{
	// Cloud providers serve credentials at these addresses.
	{netip.MustParsePrefix("100.100.100.200/32"), special},
	{netip.MustParsePrefix("168.63.129.16/32"), special},
	{netip.MustParsePrefix("fd00:ec2::/32"), special},

	{netip.MustParsePrefix("10.0.0.0/8"), private},
	{netip.MustParsePrefix("100.64.0.0/10"), private}, // carrier-grade NAT, private overlays
	{netip.MustParsePrefix("127.0.0.0/8"), private},
	{netip.MustParsePrefix("172.16.0.0/12"), private},
	{netip.MustParsePrefix("192.168.0.0/16"), private},
	{netip.MustParsePrefix("::1/128"), private},
	{netip.MustParsePrefix("fc00::/7"), private},

	{netip.MustParsePrefix("0.0.0.0/8"), special},
	{netip.MustParsePrefix("169.254.0.0/16"), special},  // link-local, metadata
	{netip.MustParsePrefix("192.0.0.0/24"), special},    // protocol assignments
	{netip.MustParsePrefix("192.0.2.0/24"), special},    // documentation
	{netip.MustParsePrefix("192.88.99.0/24"), special},  // 6to4 relays
	{netip.MustParsePrefix("198.18.0.0/15"), special},   // benchmarking
	{netip.MustParsePrefix("198.51.100.0/24"), special}, // documentation
	{netip.MustParsePrefix("203.0.113.0/24"), special},  // documentation
	{netip.MustParsePrefix("224.0.0.0/4"), special},     // multicast
	{netip.MustParsePrefix("240.0.0.0/4"), special},     // reserved, broadcast
	{netip.MustParsePrefix("2001::/23"), special},       // protocol assignments, Teredo, benchmarking
	{netip.MustParsePrefix("2001:db8::/32"), special},   // documentation
	{netip.MustParsePrefix("2002::/16"), special},       // 6to4: contains an IPv4 address
	{netip.MustParsePrefix("3fff::/20"), special},       // documentation
}

var globalUnicast = netip.MustParsePrefix("2000::/3")

// classOf returns the class of an address. For an IPv6 address that contains an
// IPv4 address, it is the class of the latter.
func classOf(a netip.Addr) class {
	if !a.IsValid() || a.Zone() != "" {
		return special
	}
	a = a.Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, c := range classes {
		if c.prefix.Contains(a) {
			return c.class
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return special
	}
	return public
}
