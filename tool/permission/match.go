package permission

import (
	"net"
	"slices"
	"strings"
)

// A matchLevel says how much of a need a rule matches.
// Rules that allow need sure; rules that deny or ask are satisfied with maybe.
type matchLevel int

const (
	no    matchLevel = iota
	maybe            // it cannot be known before the call runs
	sure
)

// A matcher holds what rules are compared with, in addition to the need itself.
// There is one for each decision, so that files are looked at once: what it has read from the disk
// may be wrong a moment later.
type matcher struct {
	tool    string
	own     string // the name of the tool, if the call is judged like one of another tool; empty: tool is its name
	command string // the shell text that the call would run
	shell   bool   // the tool runs commands: the patterns of its rules are commands
	boxes   bool   // the call can run its commands in a box
	unboxed bool   // the call asks for a run outside of the box
	// boxHosts is how many needs at the end are hosts that the commands reach from the box.
	boxHosts int
	area     area
	home     string
	args     map[string]string // the arguments of the call as text

	patterns map[string]pathPattern // those of rules that deny or ask, by their text; filled on demand
	trees    map[string]*subtree    // what lies below directories; filled on demand

	passed     string            // the tool that the call is passed on to; empty: none
	passedArgs map[string]string // and its arguments as text
}

// forbidsNeed returns how far a rule that denies or asks matches a need. If the need may be one of
// several things, a match with one of them is enough.
// A guess about a host is never sure: the word may not be a host at all.
func (m matcher) forbidsNeed(r Rule, n need) matchLevel {
	if !m.appliesTo(r, n) {
		return no
	}
	if r.bare {
		return sure
	}
	return n.kind.row().forbids(m, r, n)
}

// coversNeed reports whether a rule allows a need, whatever it turns out to be.
// A rule without a pattern does not allow what is guarded, and a rule about commands allows a
// command that runs its input only if its pattern is a single star. Of a file, every place that the
// name may mean must be allowed.
func (m matcher) coversNeed(r Rule, n need) bool {
	return m.coversNames(r, n) && m.coversContent(r, n)
}

// coversNames is coversNeed by names only, whatever they mean by now.
func (m matcher) coversNames(r Rule, n need) bool {
	if !m.appliesTo(r, n) {
		return false
	}
	if r.bare {
		return n.root == "" && n.named == 0 && len(n.protected) == 0
	}
	return n.kind.row().covers(m, r, n)
}

// namesHost reports whether a pattern that matches a host names it, and not any host: it has the whole name before its
// first star, or at least one number of its address.
func namesHost(pattern, host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	pattern = strings.ToLower(pattern)
	host = strings.Trim(strings.ToLower(host), "[]")
	if argumentsText().MatchString(pattern) && !strings.HasPrefix(pattern, "http") {
		_, pattern, _ = strings.Cut(pattern, "=")
	}
	if _, rest, ok := strings.Cut(pattern, "://"); ok {
		pattern = rest
	}
	pattern, _, _ = strings.Cut(pattern, "/")
	fixed, _, open := strings.Cut(strings.TrimPrefix(pattern, "["), "*")
	if rest, ok := strings.CutPrefix(fixed, host); ok {
		return rest == "" && !open || strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "]")
	}
	octet, _, ok := strings.Cut(fixed, ".")
	return open && ok && strings.Trim(octet, "0123456789") == "" && strings.HasPrefix(host, fixed)
}

// appliesTo reports whether a rule is about this tool and this kind of need.
// A call that is passed on to another tool counts for the rules of both. A rule about a tool that
// runs commands is about its commands, and not about the call itself.
func (m matcher) appliesTo(r Rule, n need) bool {
	if !m.isAbout(r) {
		return false
	}
	if r.kind != "" {
		return r.kind == n.kind
	}
	return r.bare || !m.shell || n.kind == command
}

// isAbout reports whether a rule is about the tool of the call: by its name, by that of the tool like which it is
// judged, or by that of the tool to which the call is passed on.
func (m matcher) isAbout(r Rule) bool {
	return slices.ContainsFunc([]string{m.tool, m.own, m.passed}, func(name string) bool { return name != "" && matchesWildcard(r.tool, name) })
}

// mayHide reports whether what a rule denies may be hidden in a need whose text cannot
// be understood: code for an interpreter, or a call of a tool that declares nothing.
func (m matcher) mayHide(r Rule, n need) bool {
	if !n.opaque || !m.isAbout(r) {
		return false
	}
	if n.kind == command {
		return r.kind != "" || !r.bare
	}
	return r.kind == "" && !r.bare && !argumentsText().MatchString(r.pattern)
}

// matchHost compares the name of a host, or the URL that the call would fetch from it.
// A pattern with a name before = is about arguments, unless it is a URL. A call that does not say
// which host it reaches has the host *: a rule may be about it.
func (m matcher) matchHost(r Rule, n need) matchLevel {
	if argumentsText().MatchString(r.pattern) && !strings.Contains(r.pattern, "://") {
		return m.matchCallArguments(r)
	}
	for _, h := range n.hosts {
		if h != "*" && matchesWildcard(strings.ToLower(r.pattern), strings.ToLower(h)) || r.pattern == "*" {
			return sure
		}
	}
	if slices.Contains(n.hosts, "*") {
		return maybe
	}
	return no
}

// argumentsText is how a pattern of arguments begins.
var argumentsText = compileLater(`^[A-Za-z_][A-Za-z0-9_.-]*=`)

// matchCallArguments compares the arguments with name=pattern, name=pattern: those of the
// call, and those of the call that it passes on.
func (m matcher) matchCallArguments(r Rule) matchLevel {
	best := no
	if matchesWildcard(r.tool, m.tool) || m.own != "" && matchesWildcard(r.tool, m.own) {
		best = matchArguments(r, m.args)
	}
	if m.passed != "" && matchesWildcard(r.tool, m.passed) {
		best = max(best, matchArguments(r, m.passedArgs))
	}
	return best
}

// matchArguments compares the arguments of one call. Each part of the pattern must match; an
// argument that the call does not have matches nothing.
func matchArguments(r Rule, args map[string]string) matchLevel {
	if r.pattern == "*" {
		return sure
	}
	for part := range strings.SplitSeq(r.pattern, ",") {
		part = strings.TrimSpace(part)
		if !argumentsText().MatchString(part) {
			return no
		}
		name, pattern, _ := strings.Cut(part, "=")
		value, ok := args[name]
		if !ok || !matchesWildcard(pattern, value) {
			return no
		}
	}
	return sure
}
