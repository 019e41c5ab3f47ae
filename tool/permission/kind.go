package permission

import "slices"

// A kindRow says how rules, answers and modes deal with the needs of a kind. All functions must be there.
type kindRow struct {
	kind   needKind
	forAny bool // a rule for any tool may name it
	// forbids returns how far a rule with a pattern that denies or asks matches a need of the kind.
	forbids func(m matcher, r Rule, n need) matchLevel
	// covers reports whether the pattern of a rule allows a need of the kind, whatever that turns out to be.
	covers func(m matcher, r Rule, n need) bool
	// grant returns the narrowest rule that allows a need of the kind, and whether there is one.
	grant func(m matcher, n need) (rule string, ok bool)
	// changes reports whether a need of the kind may change something, or is not known to only read.
	changes func(n need) bool
}

// kindRows has a row for each kind of need.
var kindRows = []kindRow{
	{kind: theCall,
		forbids: func(m matcher, r Rule, _ need) matchLevel { return m.matchCallArguments(r) },
		covers:  func(m matcher, r Rule, _ need) bool { return m.matchCallArguments(r) == sure },
		grant:   func(m matcher, n need) (string, bool) { return bindRule(m.grantCall(), n.content), true },
		changes: func(n need) bool { return n.changes }},
	{kind: command, forAny: true,
		forbids: matcher.forbidsCommand,
		covers:  coversCommand,
		grant: func(m matcher, n need) (string, bool) {
			rule, ok := m.grantCommand(n)
			return bindRule(rule, n.content), ok && (n.content != "" || !runsRelative(n.words))
		},
		changes: func(n need) bool { return n.fallback != Allow }},
	{kind: reading, forAny: true,
		forbids: matcher.forbidsPath,
		covers:  matcher.coversPaths,
		grant:   matcher.grantFile,
		changes: func(need) bool { return false }},
	{kind: writing, forAny: true,
		forbids: matcher.forbidsPath,
		covers:  matcher.coversPaths,
		grant:   matcher.grantFile,
		changes: func(n need) bool { return !n.guess }},
	{kind: network, forAny: true,
		forbids: matcher.forbidsHost,
		covers:  matcher.coversHost,
		grant:   matcher.grantHost,
		changes: func(n need) bool { return n.changes }},
}

// unknownKind is the row of a kind that has none: rules that deny may match it, and nothing allows it.
var unknownKind = kindRow{
	forbids: func(matcher, Rule, need) matchLevel { return maybe },
	covers:  func(matcher, Rule, need) bool { return false },
	grant:   func(matcher, need) (string, bool) { return "", false },
	changes: func(need) bool { return true },
}

// row returns the row of a kind.
func (k needKind) row() kindRow {
	for _, row := range kindRows {
		if row.kind == k {
			return row
		}
	}
	return unknownKind
}

// ruleKinds returns the kinds that a rule for any tool may name.
func ruleKinds() (names []string) {
	for _, row := range kindRows {
		if row.forAny {
			names = append(names, string(row.kind))
		}
	}
	return names
}

// coversCommand reports whether a rule covers a command: its words, with the variables before them. A command that runs
// its input is covered by a single star only.
func coversCommand(_ matcher, r Rule, n need) bool {
	if r.broken || !namesProtected(r, n) {
		return false
	}
	if len(n.words) == 0 || n.stdin {
		return len(r.words) == 1 && r.words[0] == "*"
	}
	return coversWords(r.words, append(n.env[:len(n.env):len(n.env)], n.words...))
}

// coversPaths reports whether a rule covers every place that the name of a file may mean.
func (m matcher) coversPaths(r Rule, n need) bool {
	return len(n.paths) > 0 && !slices.ContainsFunc(n.paths, func(path string) bool { return !m.coversPath(r, n, path) })
}

// forbidsHost returns how far a rule matches a host. A guess is never sure.
func (m matcher) forbidsHost(r Rule, n need) matchLevel {
	if n.guess {
		return min(maybe, m.matchHost(r, n))
	}
	return m.matchHost(r, n)
}

// coversHost reports whether a rule covers a host, and names its place and its port where that is asked for.
func (m matcher) coversHost(r Rule, n need) bool {
	switch {
	case m.matchHost(r, n) != sure:
		return false
	case n.named&itsPlace != 0 && !namesHost(r.pattern, n.text):
		return false
	}
	return n.named&itsPort == 0 || namesPort(r.pattern, n.text)
}
