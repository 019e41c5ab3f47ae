package permission

import (
	"net"
	"strconv"
	"strings"

	"raddle.dev/internal/base/netplace"
)

// DecideHost decides about a host that a command of a tool wants to connect to while it runs, as it would if a call had
// declared the host. The rules that count are those about the tool as such and those of the kind host: any
// host(example.com). A port other than 80 and 443 must be in the pattern of a rule that allows it, any
// host(example.com:8080); rules that deny or ask without a port are about all ports.
func (p *Policy) DecideHost(tool, host string, port int) Decision {
	n := portNeed(host, port)
	m := matcher{tool: tool, shell: true, home: p.Home}
	d := p.judgeNeeds(m, []need{n})
	d.Does = "connect to " + n.text
	return d
}

// portNeed returns a need for a connection to a port of a host.
func portNeed(host string, port int) need {
	n := need{kind: network, text: net.JoinHostPort(host, strconv.Itoa(port)), fallback: Ask, why: "is on the network", changes: true}
	n.hosts = []string{n.text, host}
	if netplace.IsWebPort(port) {
		n.text, n.hosts = host, []string{host, n.text}
	} else {
		n.named |= itsPort
	}
	if what := netplace.DescribePrivateHost(host); what != "" {
		n.named = n.named | itsPlace
		n.why = "is " + what
	}
	return n
}

// boxHostNeed returns a need for a host that the commands of a call reach from the box: a name, with a port if it is
// none of the web.
func boxHostNeed(host string) need {
	if name, port, err := net.SplitHostPort(host); err == nil {
		if number, err := strconv.Atoi(port); err == nil {
			return portNeed(name, number)
		}
	}
	return portNeed(strings.Trim(host, "[]"), 443)
}

// namesPort reports whether a pattern names the port of a host, which is written with it.
func namesPort(pattern, host string) bool {
	port := host[strings.LastIndexByte(host, ':'):]
	return matchesWildcard(strings.ToLower(pattern), host) && (strings.HasSuffix(pattern, port) || strings.HasSuffix(pattern, ":*"))
}
