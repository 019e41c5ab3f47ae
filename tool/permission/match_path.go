package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

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
	base := p
	rest := ""
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
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`, `}`, `\}`).Replace(filepath.ToSlash(path))
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
	done := []string{}
	open := []string{pattern}
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
			matches = matches || m
			below = below || b
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
