package permission

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
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
	command string // the shell text that the call would run
	shell   bool   // the tool runs commands: the patterns of its rules are commands
	area    area
	home    string
	args    map[string]string // the arguments of the call as text

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
// A rule without a pattern does not allow what is guarded, and a rule about commands allows a
// command that runs its input only if its pattern is a single star. Of a file, every place that the
// name may mean must be allowed.
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
// A call that is passed on to another tool counts for the rules of both. A rule about a tool that
// runs commands is about its commands, and not about the call itself.
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
// A star matches one word, and as the last word of the pattern any number of words, none included.
// A word that may become several words, or names of files, is never allowed by a pattern that names
// words.
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

// forbidsCommand returns how far a rule that denies or asks matches a command: as it is written,
// with the name of its program without a path, with other flags, with its assignments, and inside
// the arguments of a program that runs others.
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
// The arguments are split at the characters that end a command in a shell, and the command may
// begin at any piece. Such a match is never certain.
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
// The flags of the pattern must be among those of the command, in any order and combination. Its
// other words must follow in order, with flags and their values between them. Such a match is never
// certain.
func forbidsLoosely(pattern []string, words []word) matchLevel {
	if len(pattern) < 2 || !matchesWildcard(pattern[0], words[0].text) {
		return no
	}
	// The letters of all short flags of the command, wherever they are.
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

// forbidsWords returns how far the words of a pattern match a command. Unlike coversWords it also
// matches where a word is not known: then the result is maybe.
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
// A pattern that is not absolute is relative to the workspace, and ~ is the home directory. If that
// is unknown, the pattern stays as it is and matches nothing.
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

// escapePattern returns a pattern that matches only this path.
func escapePattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`).Replace(filepath.ToSlash(path))
}

// matchesPath reports whether a pattern of a rule that allows matches a path. A pattern DIR/** also
// matches DIR itself.
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

// coversPath reports whether a rule allows one place that a need may be about. If the need is about
// what lies below a directory, the pattern must match at every depth, which is tried with two names
// that no file has. A guarded place is allowed only by a pattern that names it, or a place in it,
// before its first wildcard.
func (m matcher) coversPath(r Rule, n need, path string) bool {
	pattern := m.pathPattern(r)
	if n.reach != itself && isDir(path) && !(matchesPath(pattern, path+anyNameBelow) && matchesPath(pattern, path+anyNameBelow+anyNameBelow)) {
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

// anyNameBelow is a name that is used in place of any name below a directory.
const anyNameBelow = "/\x01"

// unescapePattern returns the path of a pattern without wildcards.
func unescapePattern(pattern string) string { return strings.ReplaceAll(pattern, `\`, "") }

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
	if matchesWildcard(r.tool, m.tool) {
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

// A pathPattern is the pattern of files of a rule that denies or asks, ready to be
// compared with many paths. Such a rule is wider than one that allows: it also means
// everything below a directory that it matches, and upper and lower case are the same.
type pathPattern struct {
	exact, folded [][]string // absolute patterns as parts between slashes, without braces that hold a slash
	unclear       bool       // the pattern cannot be compared: it may match anything
}

// maxStars is how many ** a pattern may have: each multiplies the work.
const maxStars = 5

// maxAlternatives is how many patterns may result from one with braces.
// A rule beyond it is unclear, and may match anything.
const maxAlternatives = 200

// deniedPaths returns the pattern of a rule. Links in the part before the first
// wildcard count as they are and as where they lead.
// The result is kept, because one call may touch many files.
func (m matcher) deniedPaths(r Rule) pathPattern {
	if p, ok := m.patterns[r.pattern]; ok {
		return p
	}
	var p pathPattern
	for _, text := range slices.Compact([]string{m.pathPattern(r), m.absolutePattern(r)}) {
		if !doublestar.ValidatePattern(text) || !p.addPattern(text) {
			p.unclear = true
		}
	}
	if m.patterns != nil {
		m.patterns[r.pattern] = p
	}
	return p
}

// addPattern adds the forms of a pattern that result from its braces. It reports false if the
// pattern is too expensive to compare, or leads through "..".
func (p *pathPattern) addPattern(text string) bool {
	all, ok := expandBraces(text)
	for _, one := range all {
		parts := slices.DeleteFunc(strings.Split(one, "/"), func(part string) bool { return part == "" || part == "." })
		stars := 0
		for _, part := range parts {
			if part == "**" {
				stars++
			}
		}
		if stars > maxStars || slices.Contains(parts, "..") {
			return false
		}
		p.exact = append(p.exact, parts)
		p.folded = append(p.folded, strings.Split(strings.ToLower(strings.Join(parts, "/")), "/"))
	}
	return ok
}

// expandBraces returns the patterns that result from one with braces. It reports false if there are
// too many.
func expandBraces(pattern string) ([]string, bool) {
	done, open := []string{}, []string{pattern}
	for len(open) > 0 {
		one := open[len(open)-1]
		open = open[:len(open)-1]
		from, to, commas := findBraces(one)
		if from < 0 {
			done = append(done, one)
			continue
		}
		if len(done)+len(open)+len(commas) > maxAlternatives {
			return nil, false
		}
		start := from + 1
		for _, end := range append(commas, to) {
			open = append(open, one[:from]+one[start:end]+one[to+1:])
			start = end + 1
		}
	}
	return done, true
}

// findBraces finds the first pair of braces and the commas directly in it; from is -1 if there is
// none.
func findBraces(pattern string) (from, to int, commas []int) {
	from = -1
	depth := 0
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '{':
			if depth == 0 {
				from = i
			}
			depth++
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth--; depth == 0 {
				return from, i, commas
			}
		}
	}
	return -1, 0, nil
}

// comparePath reports whether the pattern matches a path or a directory above it, and
// whether it may match something below the path.
func (p pathPattern) comparePath(path string) (matches, below bool) {
	path = filepath.ToSlash(path)
	for _, side := range []struct {
		patterns [][]string
		path     string
	}{{p.exact, path}, {p.folded, strings.ToLower(path)}} {
		parts := slices.DeleteFunc(strings.Split(side.path, "/"), func(part string) bool { return part == "" })
		for _, pattern := range side.patterns {
			m, b := compareParts(pattern, parts)
			matches, below = matches || m, below || b
		}
	}
	return matches, below || p.unclear
}

// compareParts compares the parts of one pattern with those of a path, as comparePath does. A
// pattern that ends before the path matches a directory above it.
func compareParts(pattern, path []string) (matches, below bool) {
	switch {
	case len(pattern) == 0:
		return true, true
	case pattern[0] == "**" && len(pattern) == 1:
		return true, true
	case len(path) == 0:
		return false, true
	case pattern[0] == "**":
		matches, _ = compareParts(pattern[1:], path)
		if !matches {
			matches, _ = compareParts(pattern, path[1:])
		}
		return matches, true
	}
	same, err := doublestar.Match(pattern[0], path[0])
	if err != nil {
		return false, true
	}
	if !same {
		return false, false
	}
	return compareParts(pattern[1:], path[1:])
}

// forbidsPath returns how much of a file or directory a rule that denies or asks covers.
// It is sure for a place that the pattern matches, or whose parent directory it matches. For a
// directory whose contents the call touches it is maybe if a file below it matches, or a link below
// it leads to one. A directory around the whole workspace is too large to be searched,
// and counts as maybe.
func (m matcher) forbidsPath(r Rule, n need) matchLevel {
	if len(n.paths) == 0 {
		return maybe
	}
	p := m.deniedPaths(r)
	best := no
	if p.unclear {
		best = maybe
	}
	for _, path := range slices.Concat(n.paths, n.via) {
		matches, below := p.comparePath(path)
		if matches && n.guess {
			return maybe
		}
		if matches {
			return sure
		}
		if n.reach == itself || best == maybe || !isDir(path) {
			continue
		}
		inside := isWithin(m.area.workspace, path, false)
		switch {
		case below && n.reach == contents,
			below && !inside && isWithin(path, m.area.workspace, false), // too much to look at
			below && m.treeOf(path).mayHold(p),
			n.follows && (inside || !n.guess) && m.treeOf(path).leadsTo(p):
			best = maybe
		}
	}
	return best
}

// compileLater returns a function that compiles the expression when it is first called. Most processes judge no shell text, and compiling all
// expressions of this package was a tenth of the time in which the program starts. It panics if the expression is not valid.
func compileLater(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
