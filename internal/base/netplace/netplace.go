// Package netplace says where an address is: on the public internet, in a private network, on this machine.
package netplace

import (
	"encoding/binary"
	"net/netip"
	"strings"
)

// IsLocalName reports whether a name means this machine: localhost and the names below it.
func IsLocalName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// privateRanges are networks that are not the public internet, with what they are as the end of a sentence.
var privateRanges = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this machine"},
	{netip.MustParsePrefix("127.0.0.0/8"), "this machine"},
	{netip.MustParsePrefix("10.0.0.0/8"), "in a private network"},
	{netip.MustParsePrefix("172.16.0.0/12"), "in a private network"},
	{netip.MustParsePrefix("192.168.0.0/16"), "in a private network"},
	{netip.MustParsePrefix("100.64.0.0/10"), "in the network of a provider"},
	{netip.MustParsePrefix("169.254.0.0/16"), "in the network of this link"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("198.18.0.0/15"), "in a network for tests"},
	{netip.MustParsePrefix("224.0.0.0/4"), "for many receivers"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::/128"), "this machine"},
	{netip.MustParsePrefix("::1/128"), "this machine"},
	// translated to IPv4, in a way that only the network knows
	{netip.MustParsePrefix("64:ff9b:1::/48"), "in a private network"},
	{netip.MustParsePrefix("100::/64"), "reserved"},
	{netip.MustParsePrefix("fc00::/7"), "in a private network"},
	{netip.MustParsePrefix("fe80::/10"), "in the network of this link"},
	{netip.MustParsePrefix("fec0::/10"), "in a private network"},
	{netip.MustParsePrefix("ff00::/8"), "for many receivers"},
}

// DescribePrivate returns what an address is, if it is not one of the public internet, as the end of a sentence that
// begins with "which is"; "" if it is one. An address of IPv6 that holds one of IPv4 is what that one is.
func DescribePrivate(at netip.Addr) string {
	at = at.WithZone("")
	for _, each := range append(embeddedAddrs(at), at.Unmap()) {
		for _, r := range privateRanges {
			if r.prefix.Contains(each) {
				return r.what
			}
		}
	}
	return ""
}

// embeddedAddrs returns the addresses of IPv4 to which routers or the system may pass on what is sent to an address of
// IPv6: mapped and compatible ones, those of NAT64, 6to4, Teredo and ISATAP.
func embeddedAddrs(at netip.Addr) (list []netip.Addr) {
	if !at.Is6() {
		return nil
	}
	b := at.As16()
	v4 := func(i int) netip.Addr { return netip.AddrFrom4([4]byte(b[i : i+4])) }
	high := binary.BigEndian.Uint64(b[:8])
	interfaceID := binary.BigEndian.Uint32(b[8:12])
	switch {
	case at.Is4In6(), high == 0 && interfaceID == 0 && binary.BigEndian.Uint32(b[12:]) > 1:
		list = append(list, v4(12))
	case high == 0x0064ff9b_00000000 && interfaceID == 0:
		list = append(list, v4(12))
	case b[0] == 0x20 && b[1] == 0x02:
		list = append(list, v4(2))
	case high>>32 == 0x20010000:
		list = append(list, v4(4), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
	}
	if interfaceID&^0x0200_0000 == 0x00005efe {
		list = append(list, v4(12))
	}
	return list
}

// DescribePrivateHost returns what [DescribePrivate] does of a host, as far as its text says: an address, or a name of
// this machine.
func DescribePrivateHost(host string) string {
	if at, err := netip.ParseAddr(host); err == nil {
		return DescribePrivate(at)
	}
	if IsLocalName(host) {
		return "this machine"
	}
	return ""
}

// IsWebPort reports whether a port is one of the web, which a permission for a host means without naming it.
func IsWebPort(port int) bool { return port == 80 || port == 443 }

// IsThisMachine reports whether the host of an address means this machine, as far as its text says.
func IsThisMachine(host string) bool {
	at, err := netip.ParseAddr(host)
	return IsLocalName(host) || err == nil && at.Unmap().IsLoopback()
}

// NamesAddress reports whether a host is a text for an address itself, so that a permission for the host is one for the
// address, wherever that is: the host is the address, or a name of this machine and the address is its loopback.
func NamesAddress(host string, at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	named, err := netip.ParseAddr(host)
	return err == nil && named.Unmap().WithZone("") == at || IsLocalName(host) && at.IsLoopback()
}
