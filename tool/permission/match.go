package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// A matchLevel says how much of a need a rule matches.
type matchLevel int

const (
	no    matchLevel = iota
	maybe            // it cannot be known before the call runs
	sure
)

// A matcher holds what rules are compared with, in addition to the need itself.
type matcher struct {
	tool  string
	shell bool // the tool runs commands: the patterns of its rules are commands
	area  area
	home  string
	args  map[string]string // the arguments of the call as text

	patterns map[string]pathPattern // those of rules that deny or ask, by their text; filled on demand
	trees    map[string]*subtree    // what lies below directories; filled on demand

	passed     string            // the tool that the call is passed on to; empty: none
	passedArgs map[string]string // and its arguments as text
}

// forbidsNeed is how far a rule that denies or asks speaks of a need: one of the
// things that it may be is enough.
func (m matcher) forbidsNeed(r Rule, n need) matchLevel {
	if !m.appliesTo(r, n) {
		return no
	}
	if r.bare {
		return sure
	}
	switch n.kind {
	case command:
		return m.forbidsCommand(r, n)
	case reading, writing:
		return m.forbidsPath(r, n)
	case network:
		if n.guess {
			return min(maybe, m.matchHost(r, n))
		}
		return m.matchHost(r, n)
	}
	return m.matchCallArguments(r)
}

// coversNeed reports whether a rule allows a need, whatever it turns out to be.
func (m matcher) coversNeed(r Rule, n need) bool {
	if !m.appliesTo(r, n) {
		return false
	}
	if r.bare {
		return n.root == ""
	}
	switch n.kind {
	case command:
		if r.broken {
			return false
		}
		if len(n.words) == 0 || n.stdin {
			return len(r.words) == 1 && r.words[0] == "*"
		}
		return coversWords(r.words, append(n.env[:len(n.env):len(n.env)], n.words...))
	case reading, writing:
		return len(n.paths) > 0 && !slices.ContainsFunc(n.paths, func(path string) bool { return !m.coversPath(r, n, path) })
	case network:
		return m.matchHost(r, n) == sure
	}
	return m.matchCallArguments(r) == sure
}

// appliesTo reports whether a rule is about this tool and this kind of need.
func (m matcher) appliesTo(r Rule, n need) bool {
	if !matchesWildcard(r.tool, m.tool) && (m.passed == "" || !matchesWildcard(r.tool, m.passed)) {
		return false
	}
	if r.kind != "" {
		return r.kind == n.kind
	}
	return r.bare || !m.shell || n.kind == command
}

// coversWords reports whether the words of a pattern allow a command.
func coversWords(pattern []string, words []word) bool {
	for i, p := range pattern {
		if p == "*" && i == len(pattern)-1 {
			return true
		}
		if i >= len(words) {
			return false
		}
		w := words[i]
		if w.splits || w.glob != "" || w.vague && p != "*" || !w.vague && !matchesWildcard(p, w.text) {
			return false
		}
	}
	return len(words) == len(pattern)
}

// mayHide reports whether what a rule denies may be hidden in a need whose text cannot
// be understood: code for an interpreter, or a call of a tool that declares nothing.
func (m matcher) mayHide(r Rule, n need) bool {
	if !n.opaque || !matchesWildcard(r.tool, m.tool) && (m.passed == "" || !matchesWildcard(r.tool, m.passed)) {
		return false
	}
	if n.kind == command {
		return r.kind != "" || !r.bare
	}
	return r.kind == "" && !r.bare && !argumentsText().MatchString(r.pattern)
}

func (m matcher) forbidsCommand(r Rule, n need) matchLevel {
	if r.broken || len(n.words) == 0 {
		return maybe
	}
	best := forbidsWords(r.words, n.words)
	if n.runner {
		best = max(best, forbidsRunner(r.words, n.words[1:]))
	}
	if first := n.words[0]; first.isPlain() {
		base := append([]word{literalWord(filepath.Base(first.text))}, n.words[1:]...)
		best = max(best, forbidsWords(r.words, base))
	}
	if n.words[0].isPlain() {
		base := append([]word{literalWord(filepath.Base(n.words[0].text))}, n.words[1:]...)
		best = max(best, forbidsLoosely(r.words, base))
	}
	if len(n.env) > 0 {
		best = max(best, forbidsWords(r.words, append(slices.Clone(n.env), n.words...)))
	}
	return best
}

// forbidsRunner asks where a command that the rule denies may be among the arguments
// of another one, as several words or in one.
func forbidsRunner(pattern []string, args []word) matchLevel {
	var pieces []word
	for _, a := range args {
		if !a.isPlain() {
			pieces = append(pieces, a)
			continue
		}
		for _, piece := range strings.FieldsFunc(a.text, func(c rune) bool { return strings.ContainsRune(" \t\n;&|()`'\"", c) }) {
			pieces = append(pieces, literalWord(piece))
		}
	}
	for i, first := range pieces {
		rest := slices.Clone(pieces[i:])
		if first.isPlain() {
			rest[0] = literalWord(filepath.Base(first.text))
		}
		if forbidsWords(pattern, rest) != no || len(rest) > len(pattern) && forbidsWords(pattern, rest[:len(pattern)]) != no {
			return maybe
		}
	}
	return no
}

// forbidsLoosely reports whether a command differs only in its flags from what the rule denies: for
// a rule about "git push *" also "git -C dir push", for "rm -rf *" also "rm -f -r".
func forbidsLoosely(pattern []string, words []word) matchLevel {
	if len(pattern) < 2 || !matchesWildcard(pattern[0], words[0].text) {
		return no
	}
	letters := ""
	for _, w := range words[1:] {
		if shortFlags().MatchString(w.text) {
			letters += w.text[1:]
		}
	}
	at, skip := 1, false
	for i, p := range pattern[1:] {
		switch {
		case p == "*" && i == len(pattern)-2:
			return maybe
		case shortFlags().MatchString(p):
			if strings.Trim(p[1:], letters) != "" {
				return no
			}
			continue
		}
		for ; ; at++ {
			if at >= len(words) {
				return no
			}
			if w := words[at]; !w.isPlain() || matchesWildcard(p, w.text) {
				at++
				break
			}
			switch flag := strings.HasPrefix(words[at].text, "-"); {
			case flag:
				skip = true
			case skip:
				skip = false // it may be the value of the flag
			default:
				return no
			}
		}
	}
	for ; at < len(words); at++ {
		if !strings.HasPrefix(words[at].text, "-") {
			return no
		}
	}
	return maybe
}

// shortFlags are flags of one letter, or several in one word.
var shortFlags = compileLater(`^-[A-Za-z]+$`)

func forbidsWords(pattern []string, words []word) matchLevel {
	result := sure
	for i, p := range pattern {
		if p == "*" && i == len(pattern)-1 {
			return result
		}
		if i >= len(words) {
			return no
		}
		switch w := words[i]; {
		case w.splits || w.glob != "":
			return maybe
		case w.vague:
			if p != "*" {
				result = maybe
			}
		case !matchesWildcard(p, w.text):
			return no
		}
	}
	if len(words) > len(pattern) {
		for _, w := range words[len(pattern):] {
			if !w.splits {
				return no
			}
		}
		return maybe
	}
	return result
}

// absolutePattern returns the pattern of a rule as an absolute pattern.
func (m matcher) absolutePattern(r Rule) string {
	p := filepath.ToSlash(r.pattern)
	switch {
	case p == "~" || strings.HasPrefix(p, "~/"):
		if m.home == "" {
			return p
		}
		p = escapePattern(m.home) + p[1:]
	case filepath.IsAbs(p):
	default:
		p = escapePattern(m.area.workspace) + "/" + strings.TrimPrefix(p, "./")
	}
	if len(p) > 1 {
		p = strings.TrimSuffix(p, "/")
	}
	return p
}

// pathPattern returns the pattern of a rule as an absolute pattern. Links in the part before the
// first wildcard are followed, as they are in the paths of calls.
func (m matcher) pathPattern(r Rule) string {
	p := m.absolutePattern(r)
	base, rest := p, ""
	if strings.ContainsAny(dropEscaped(p), "*?[{") {
		base, rest = doublestar.SplitPattern(p)
		rest = "/" + rest
	}
	at, err := resolvePath(filepath.FromSlash(unescapePattern(base)))
	if err != nil {
		return p
	}
	return strings.TrimSuffix(escapePattern(at), "/") + rest
}

func escapePattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`).Replace(filepath.ToSlash(path))
}

func matchesPath(pattern, path string) bool {
	path = filepath.ToSlash(path)
	if ok, err := doublestar.Match(pattern, path); err == nil && ok {
		return true
	}
	dir, ok := strings.CutSuffix(pattern, "/**")
	if !ok {
		return false
	}
	same, err := doublestar.Match(dir, path)
	return err == nil && same
}

func (m matcher) coversPath(r Rule, n need, path string) bool {
	pattern := m.pathPattern(r)
	if n.reach != itself && isDir(path) && !(matchesPath(pattern, path+unlikely) && matchesPath(pattern, path+unlikely+unlikely)) {
		return false // the rule allows the directory, not everything below it
	}
	if n.root != "" {
		base, _ := doublestar.SplitPattern(pattern)
		if !isWithin(n.root, filepath.FromSlash(unescapePattern(base)), true) && pattern != escapePattern(path) {
			return false
		}
	}
	return matchesPath(pattern, path)
}

// unlikely is a name that is used in place of any name below a directory.
const unlikely = "/\x01"

func unescapePattern(pattern string) string { return strings.ReplaceAll(pattern, `\`, "") }

// matchHost compares the name of a host, or the URL that the call would fetch from it.
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
	if matchesWildcard(r.tool, m.tool) {
		best = matchArguments(r, m.args)
	}
	if m.passed != "" && matchesWildcard(r.tool, m.passed) {
		best = max(best, matchArguments(r, m.passedArgs))
	}
	return best
}

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
