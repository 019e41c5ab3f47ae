package toolbox

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"raddle.dev/internal/base/box"
	"raddle.dev/internal/base/netplace"
	"raddle.dev/internal/base/netproxy"
	"raddle.dev/tool/permission"
)

// A boxNetwork is the network of a run's box: the proxy that reaches the hosts that rules allow.
type boxNetwork struct {
	policy permission.Policy
	tool   string // by which rules know what runs in the box

	mu      sync.Mutex
	refused []string // hosts since TakeRefused was called, each once
}

// maxRefused is how many refused hosts are kept.
const maxRefused = 20

// listVariables returns what names the proxy to programs.
func (n *boxNetwork) listVariables() []string { return netproxy.ListVariables(box.ProxyAddress, "") }

// serveProxy serves the proxy on a listener in the network of the box, to a command that may also reach hosts: names,
// with a port that is none of the web.
func (n *boxNetwork) serveProxy(ctx context.Context, l net.Listener, hosts []string) error {
	judge := func(_ context.Context, to netproxy.Destination) netproxy.Ruling { return n.judgeHost(to, hosts) }
	p := &netproxy.Proxy{Judge: judge, Log: n.noteAttempt}
	return p.Serve(ctx, l)
}

// reachesHost reports whether a destination is one of hosts. A name without a port means the ports of the web.
func reachesHost(hosts []string, to netproxy.Destination) bool {
	return slices.ContainsFunc(hosts, func(host string) bool {
		if strings.EqualFold(strings.Trim(host, "[]"), to.Host) {
			return netplace.IsWebPort(to.Port)
		}
		return strings.EqualFold(host, net.JoinHostPort(to.Host, strconv.Itoa(to.Port)))
	})
}

// judgeHost decides about a destination by the rules, and by the hosts that a command was allowed. No rule that denies
// is overruled.
func (n *boxNetwork) judgeHost(to netproxy.Destination, hosts []string) netproxy.Ruling {
	switch d := n.policy.DecideHost(n.tool, to.Host, to.Port); {
	case d.Verdict == permission.Allow:
		return netproxy.Ruling{Allowed: true, Named: true}
	case d.Verdict == permission.Ask && reachesHost(hosts, to):
		return netproxy.Ruling{Allowed: true, Named: !netplace.IsWebPort(to.Port) || to.Private != ""}
	}
	return netproxy.Ruling{Reason: fmt.Sprintf("The box allows no connection to %s. A rule can: any host(%s)", to, to.Host)}
}

// noteAttempt keeps the name of a host that was refused.
func (n *boxNetwork) noteAttempt(a netproxy.Attempt) {
	if a.Allowed {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	host := a.Host
	if a.Port != 0 && !netplace.IsWebPort(a.Port) {
		host = net.JoinHostPort(host, strconv.Itoa(a.Port))
	}
	if !slices.Contains(n.refused, host) && len(n.refused) < maxRefused {
		n.refused = append(n.refused, host)
	}
}

// TakeRefused returns the hosts that the box has refused since the last call.
func (n *boxNetwork) TakeRefused() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := n.refused
	n.refused = nil
	return taken
}
