package netproxy

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"raddle.dev/internal/base/netplace"
)

// A Destination is where a program wants to connect to.
type Destination struct {
	Host string // as ParseHost returns it
	Port int
	// Private is what the host is, if it is this machine or lies in a private network, as the end of a sentence that
	// begins with "which is".
	Private string
	// Name is the name for which the address Host was found, if that is what is judged: the name alone was allowed
	// before.
	Name string
}

// newDestination returns a destination.
func newDestination(host string, port int) Destination {
	return Destination{Host: host, Port: port, Private: netplace.DescribePrivateHost(host)}
}

// String returns the host with its port.
func (to Destination) String() string { return net.JoinHostPort(to.Host, strconv.Itoa(to.Port)) }

// narrowestRule returns the narrowest rule that allows the destination.
func (to Destination) narrowestRule() string {
	if netplace.IsWebPort(to.Port) {
		return "any host(" + to.Host + ")"
	}
	return "any host(" + to.String() + ")"
}

// A Ruling is what a judge decides about a destination. The zero value refuses it.
type Ruling struct {
	Allowed bool
	// Named says that a rule or an answer means this very destination: its address or the name of this machine, and its
	// port. Without it the proxy connects to no private place and to ports 80 and 443 only. What
	// permission.Policy.DecideHost allows is named where it must be.
	Named bool
	// Reason is which rule or answer decided, or what a person can do, as a sentence for the program that asked and for
	// the log.
	Reason string
}

// parseTarget splits a host with a port. usual is the port if the text has none; 0: it must have one.
func parseTarget(text string, usual int) (Destination, error) {
	host := text
	port := ""
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		host = text[:i]
		port = text[i+1:]
	} else if usual == 0 {
		return Destination{}, errors.New("it has no port: write host:port")
	} else {
		port = strconv.Itoa(usual)
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if host, ok = strings.CutSuffix(inner, "]"); !ok || !strings.Contains(host, ":") {
			return Destination{}, errors.New("its brackets hold no address of IPv6")
		}
	} else if strings.Contains(host, ":") {
		return Destination{}, errors.New("an address of IPv6 must be in brackets, as in [::1]:443")
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || strings.HasPrefix(port, "0") {
		return Destination{}, errors.New("its port must be a number from 1 to 65535")
	}
	host, err = ParseHost(host)
	if err != nil {
		return Destination{}, err
	}
	return newDestination(host, int(number)), nil
}

// ParseHost returns a host in the one form in which it is judged and connected to: a name in lower case, as DNS has it
// (xn--…) and without a dot at its end, or an address as [netip.Addr] writes it, where one of IPv4 inside of IPv6 is
// one of IPv4. It refuses what programs read in different ways: addresses as one number, in octal or hexadecimal
// numbers or with parts left out, zones, and characters that no host has.
func ParseHost(text string) (string, error) {
	if strings.Contains(text, ":") {
		at, err := netip.ParseAddr(text)
		switch {
		case err != nil:
			return "", errors.New("it is not an address of IPv6")
		case at.Zone() != "":
			return "", errors.New("an address with a zone is not reached through a proxy")
		}
		return at.Unmap().String(), nil
	}
	host := text
	if strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		var err error
		if host, err = idna.Lookup.ToASCII(text); err != nil || !utf8.ValidString(text) {
			return "", errors.New("its name has characters that no name of a host has")
		}
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || len(host) > 253 {
		return "", errors.New("a name must have between 1 and 253 characters")
	}
	if at, err := netip.ParseAddr(host); err == nil {
		return at.String(), nil
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", errors.New("a name consists of parts with letters, digits and hyphens, with dots between them")
		}
	}
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "", errors.New("an address must be written as four decimal numbers, as in 192.0.2.1")
	}
	return host, nil
}

// cleanText returns a text as it may be in a line of a header and in a log: in printable ASCII, and short. It does not
// change its own result.
func cleanText(text string) string {
	const longest = 500 // in bytes
	quoted := strconv.QuoteToASCII(text)
	quoted = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
	if len(quoted) > longest {
		quoted = quoted[:longest-3] + "..."
	}
	return quoted
}
