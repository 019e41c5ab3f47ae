package permission

import (
	"cmp"
	"slices"
)

// A Basis is what decided about a thing that a call needs.
type Basis string

// These are the bases of decisions.
const (
	ByRule    Basis = "rule"    // a rule of a file
	ByAnswer  Basis = "answer"  // an answer that a person gave before
	ByMode    Basis = "mode"    // the mode
	ByTrust   Basis = "trust"   // a person has named the script or the server of the tool, or agreed to it
	ByBox     Basis = "box"     // nothing lets it pass, so it runs in the box
	ByDefault Basis = "default" // what holds if no rule is about it
)

// A Ground says what decided about one thing that a call needs.
type Ground struct {
	Text string // a command, a file, a host or the tool
	By   Basis
	Rule string // the rule or the mode that decided, with the place of the rule; empty: none did
	Why  string // as the end of a sentence that begins with Text
}

// groundOf returns the ground of a decision that a rule has made.
func (r Rule) groundOf(by Basis, why string) Ground {
	return Ground{By: by, Rule: r.describeRule(), Why: why}
}

// groundOfDefault says why a need passes that no rule is about.
func (p *Policy) groundOfDefault(m matcher, n need) Ground {
	outside := func(path string) bool { return !isWithin(m.area.workspace, path, false) }
	switch {
	case n.kind == writing && n.guess || n.kind == command:
		return Ground{By: ByDefault, Why: "is known to be harmless here"}
	case n.kind == writing:
		return Ground{By: ByMode, Why: "may be changed in the mode " + string(cmp.Or(p.Mode, ModeEdits))}
	case n.kind == reading && slices.ContainsFunc(n.paths, outside):
		return Ground{By: ByDefault, Why: "may be read, although it is not in the workspace"}
	case n.kind == reading:
		return Ground{By: ByDefault, Why: "is read in the workspace"}
	case n.kind == theCall && !n.opaque:
		return Ground{By: ByDefault, Why: "says what it touches, and that needs no question"}
	case n.kind == theCall && n.changes && p.Trusted != nil && p.Trusted(n.text):
		return Ground{By: ByTrust, Why: "belongs to what a person has named or agreed to"}
	case n.kind == theCall:
		return Ground{By: ByDefault, Why: "says that it only reads"}
	}
	return Ground{By: ByDefault, Why: "needs no question"}
}

// tells reports whether the ground on which a need passes says something that those of its command do not say. Which
// files a command reads is a part of what is known of the command.
func (m matcher) tells(n need, by Basis) bool {
	return by == ByRule || by == ByAnswer || !n.guess && (n.kind != reading || !m.shell)
}

// listPassed returns the grounds of a call that is allowed, each once. That the tool says what it touches counts only
// if it touches nothing.
func listPassed(all []Ground) (list []Ground) {
	for i, g := range all {
		isPlainCall := i == 0 && g.By == ByDefault && len(all) > 1
		if !isPlainCall && !slices.Contains(list, g) {
			list = append(list, g)
		}
	}
	return list
}
