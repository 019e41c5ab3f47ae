package netproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"raddle.dev/internal/base/netplace"
)

// A refusedError says why a program may not connect to a destination.
type refusedError struct {
	to     string
	reason string
}

// Error says what was refused, and what a person can do.
func (r *refusedError) Error() string {
	return fmt.Sprintf("the sandbox of raddle does not let this program connect to %s: %s", r.to, r.reason)
}

// judgeDestination returns a *refusedError if the judge does not allow a destination.
func (s *service) judgeDestination(ctx context.Context, to Destination) (Ruling, error) {
	v := s.Judge(ctx, to)
	v.Reason = cleanText(v.Reason)
	shown := to.String()
	if to.Name != "" {
		shown = fmt.Sprintf("%s, which has the address %s", to.Name, to)
	}
	refuse := func(reason string) (Ruling, error) { return v, &refusedError{to: shown, reason: reason} }
	switch {
	case !v.Allowed && v.Reason != "":
		return refuse(v.Reason)
	case !v.Allowed:
		return refuse(fmt.Sprintf("no rule and no answer allows it; the rule %s does", to.narrowestRule()))
	case to.Private != "" && !v.Named:
		return refuse(fmt.Sprintf("it is %s; only a rule that names it allows that, such as %s", to.Private, to.narrowestRule()))
	case !netplace.IsWebPort(to.Port) && !v.Named:
		return refuse(fmt.Sprintf("only the ports 80 and 443 need not be named; the rule %s allows this one", to.narrowestRule()))
	}
	return v, nil
}

// connectProgram judges the destination of an attempt, looks it up, and connects to an address that may be reached.
func (s *service) connectProgram(ctx context.Context, a *openAttempt) (net.Conn, error) {
	v, err := s.judgeDestination(ctx, a.to)
	if err != nil {
		return nil, err
	}
	a.setReason(v.Reason)
	list, err := s.findAddresses(ctx, a.to)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	inner, at, err := s.dialFirst(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be reached: %w", a.to, err)
	}
	a.setAddress(at)
	return &outerConn{Conn: inner, attempt: a}, nil
}

// mostAddresses is how many addresses of a name are tried, and how many private ones the judge is asked about.
const mostAddresses = 8

// findAddresses looks up a destination once, and returns its addresses that may be reached: those on the internet, or
// else the private ones that the judge allows by themselves.
func (s *service) findAddresses(ctx context.Context, to Destination) ([]netip.AddrPort, error) {
	found, err := s.resolveHost(ctx, to.Host)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be found: %w", to.Host, err)
	}
	var public, private []netip.AddrPort
	var refused error
	for _, at := range found {
		at = at.Unmap().WithZone("")
		what := netplace.DescribePrivate(at)
		if what == "" || netplace.NamesAddress(to.Host, at) {
			public = append(public, netip.AddrPortFrom(at, uint16(to.Port)))
			continue
		}
		private = append(private, netip.AddrPortFrom(at, uint16(to.Port)))
	}
	if len(public) > 0 {
		return public[:min(len(public), mostAddresses)], nil
	}
	var allowed []netip.AddrPort
	for _, at := range private[:min(len(private), mostAddresses)] {
		there := newDestination(at.Addr().String(), to.Port)
		there.Name = to.Host
		if _, err := s.judgeDestination(ctx, there); err != nil {
			refused = err
			break
		}
		allowed = append(allowed, at)
	}
	switch {
	case len(allowed) > 0:
		return allowed, nil
	case refused != nil:
		return nil, refused
	}
	return nil, fmt.Errorf("%s cannot be found: it has no address", to.Host)
}

// resolveHost returns the addresses of a host.
func (s *service) resolveHost(ctx context.Context, host string) ([]netip.Addr, error) {
	if at, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{at}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if s.lookup != nil {
		return s.lookup(ctx, host)
	}
	if strings.Contains(host, ".") {
		host += "." // so that no domain of this machine is appended
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// nextDial is how long an address has before the next one is tried as well.
const nextDial = 300 * time.Millisecond

// dialFirst connects to the first address that answers: one after the other, the next when one fails or is slow.
func (s *service) dialFirst(ctx context.Context, list []netip.AddrPort) (net.Conn, netip.AddrPort, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		at   netip.AddrPort
		err  error
	}
	results := make(chan result, len(list))
	var failures []error
	for next, open := 0, 0; next < len(list) || open > 0; {
		var slow <-chan time.Time
		if next < len(list) {
			at := list[next]
			next = next + 1
			open = open + 1
			if !s.goRun(func() {
				c, err := s.dialOne(ctx, at)
				results <- result{c, at, err}
			}) {
				results <- result{err: errEnded}
			}
			slow = time.After(nextDial)
		}
		select {
		case r := <-results:
			open--
			if r.err == nil {
				closeOthers := func() {
					for range open {
						if late := <-results; late.err == nil {
							_ = late.conn.Close()
						}
					}
				}
				if !s.goRun(closeOthers) {
					cancel()
					closeOthers()
				}
				return r.conn, r.at, nil
			}
			failures = append(failures, r.err)
		case <-slow:
		}
	}
	return nil, netip.AddrPort{}, errors.Join(failures...)
}

// dialOne connects to one address.
func (s *service) dialOne(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
	if s.dial != nil {
		return s.dial(ctx, at)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", at.String())
}
