package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"raddle.dev/internal/base/netplace"
)

// An exchange is what a tool sends for one call: a request, and those that follow redirections.
type exchange struct {
	tool     string
	judge    func(u *url.URL) error // says why the call may not fetch an address; nil: no one judges
	anywhere bool                   // the program that uses this package has named the host: its address may be any
	stopped  error                  // the redirection that was not followed, and why; nil: none
}

// judgeURL returns what judges the addresses of a call whose argument name is an address; nil: no one does.
func (h Host) judgeURL(name string) func(u *url.URL) error {
	if h.permit == nil || h.permit.Judge == nil {
		return nil
	}
	return func(u *url.URL) error {
		args, err := json.Marshal(map[string]string{name: u.String()})
		if err != nil {
			return err
		}
		return h.permit.Judge(args, h.permit.Granted)
	}
}

// mostRedirects is how many redirections are followed.
const mostRedirects = 10

// checkRedirect decides about a redirection. Each is judged as an address of its own.
func (ex *exchange) checkRedirect(next *http.Request, via []*http.Request) error {
	next.Header.Del("Referer") // it may have a key
	from := via[0].URL
	to := next.URL
	switch {
	case len(via) >= mostRedirects:
		ex.stopped = fmt.Errorf("%s, and has redirected %d times before: it is not followed", to.Redacted(), mostRedirects)
	case ex.judge == nil && to.Host != from.Host:
		ex.stopped = fmt.Errorf("another host: fetch %s", to)
	case ex.judge == nil && to.Scheme != from.Scheme:
		ex.stopped = fmt.Errorf("another scheme: fetch %s", to)
	case ex.judge != nil:
		if err := ex.judge(to); err != nil {
			ex.stopped = fmt.Errorf("%s, which was not fetched: %w. Fetch that address with a call of its own, so that it can be decided about; the rule %s allows it",
				to, err, ruleForURL(ex.tool, to))
		}
	}
	if ex.stopped != nil {
		return http.ErrUseLastResponse
	}
	return nil
}

// ruleForURL returns a rule for an address, without its query.
func ruleForURL(tool string, u *url.URL) string {
	return tool + "(" + u.Scheme + "://" + u.Host + u.Path + ")"
}

// A guardedTransport sends requests, and connects to this machine and to private networks only if the address or the
// name of this machine was permitted as such. It looks at the address that it connects to, so that a name cannot mean
// one address when it is checked and another one afterwards.
//
// Behind a proxy it is the proxy that looks up names. The proxy's own address is the user's choice and is not looked
// at; the names of requests are looked up here, too, and judged by the answer, if there is one.
type guardedTransport struct {
	base     http.RoundTripper // nil: http.DefaultTransport
	resolver *net.Resolver     // nil: that of the system
	exchange *exchange
}

// RoundTrip implements [http.RoundTripper]. Each request has a connection of its own, because permission for one is
// none for the next.
func (g *guardedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := g.base
	if base == nil {
		base = http.DefaultTransport
	}
	t, ok := base.(*http.Transport)
	if !ok || g.exchange.anywhere {
		return base.RoundTrip(req)
	}
	own := g.base != nil && (t.DialContext != nil || t.DialTLSContext != nil)
	if own {
		return base.RoundTrip(req)
	}
	t = t.Clone()
	t.DisableKeepAlives = true
	dialer := &net.Dialer{Timeout: dialTimeout, Resolver: g.resolver}
	proxied, err := g.usesProxy(t, req)
	switch {
	case err != nil:
		return nil, err
	case proxied:
		if err := g.checkName(req.Context(), req.URL); err != nil {
			return nil, err
		}
	default:
		dialer.Control = func(_, address string, _ syscall.RawConn) error { return g.checkAddress(req.URL, address) }
	}
	t.DialContext = dialer.DialContext
	return t.RoundTrip(req)
}

// dialTimeout bounds the time until a connection is there.
const dialTimeout = fetchTimeout / 4

func (g *guardedTransport) usesProxy(t *http.Transport, req *http.Request) (bool, error) {
	if t.Proxy == nil {
		return false, nil
	}
	proxy, err := t.Proxy(req)
	return proxy != nil, err
}

// checkName looks up the host of an address, and returns an error if one of its addresses may not be reached. A name
// that cannot be looked up here is left to the proxy.
func (g *guardedTransport) checkName(ctx context.Context, u *url.URL) error {
	resolver := g.resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	if at, err := netip.ParseAddr(u.Hostname()); err == nil {
		return g.checkIP(u, at, u.Port())
	}
	list, err := resolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return nil
	}
	for _, at := range list {
		if err := g.checkIP(u, at, u.Port()); err != nil {
			return err
		}
	}
	return nil
}

// checkAddress returns an error if a request may not connect to an address with a port.
func (g *guardedTransport) checkAddress(u *url.URL, address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("the address %s cannot be read: %w", address, err)
	}
	return g.checkIP(u, at.Addr(), u.Port())
}

// checkIP returns an error if a request to u may not connect to an address. A permission for the address itself, or for
// the name of this machine, is one to connect to it; for any other name, a rule must name the address that the name
// has.
func (g *guardedTransport) checkIP(u *url.URL, at netip.Addr, port string) error {
	what := netplace.DescribePrivate(at)
	if what == "" || netplace.NamesAddress(u.Hostname(), at) {
		return nil
	}
	there := *u
	there.User, there.Host = nil, at.Unmap().WithZone("").String()
	if strings.Contains(there.Host, ":") {
		there.Host = "[" + there.Host + "]"
	}
	if port != "" {
		there.Host += ":" + port
	}
	if g.exchange.judge != nil && g.exchange.judge(&there) == nil {
		return nil
	}
	return &privateAddressError{
		host: u.Hostname(),
		at:   at,
		what: what,
		rule: ruleForURL(g.exchange.tool, &url.URL{Scheme: there.Scheme, Host: there.Host, Path: "/*"}),
	}
}

// A privateAddressError says that a name leads into a private network.
type privateAddressError struct {
	host string
	at   netip.Addr
	what string
	rule string
}

func (e *privateAddressError) Error() string {
	return fmt.Sprintf("%s has the address %s, which is %s; only a rule that names the address allows that, such as %s", e.host, e.at, e.what, e.rule)
}
