package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// linksFollowed is how many symbolic links a path may lead through.
const linksFollowed = 100

// resolvePath returns the absolute path that the system would open, with symbolic
// links followed one by one. Of a path that does not exist, what exists is
// resolved and the rest appended. Unlike filepath.Clean it does not take a/link/..
// for a.
// filepath.EvalSymlinks fails for a path that does not exist, and a call may create it.
func resolvePath(path string) (string, error) {
	at, _, err := resolveVia(path)
	return at, err
}

// resolveVia is like resolvePath. It also returns the names under which the path was reached,
// before each link was followed. A link in /proc leads to a different place in each process, and is
// an error.
// via holds whole paths, so that a rule about a link counts as well as one about its target.
func resolveVia(path string) (at string, via []string, err error) {
	rest := strings.Split(filepath.ToSlash(path), "/")
	at = filepath.VolumeName(path) + string(filepath.Separator)
	if v := filepath.VolumeName(path); v != "" {
		rest = rest[1:]
	}
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			at = next
			continue
		case err != nil:
			return "", nil, err
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		case isWithin("/proc", next, false):
			return "", nil, fmt.Errorf("%s leads through %s, which is different in each process", path, next)
		}
		if links++; links > linksFollowed {
			return "", nil, fmt.Errorf("%s leads through too many links", path)
		}
		via = append(via, filepath.Join(append([]string{next}, rest...)...))
		to, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		if filepath.IsAbs(to) {
			at = filepath.VolumeName(to) + string(filepath.Separator)
		}
		rest = append(strings.Split(filepath.ToSlash(to), "/"), rest...)
	}
	return at, via, nil
}

// possiblePaths returns all that a path may mean: as the shell and the system read it,
// and cleaned first, as programs do. The path is absolute or relative to dir.
// The two differ for a path such as link/../x. Both must be allowed.
func possiblePaths(dir, path string) ([]string, error) {
	all, _, err := placesVia(dir, path)
	return all, err
}

// placesVia is like possiblePaths. It also returns the names under which the paths were reached.
func placesVia(dir, path string) (all, via []string, err error) {
	if !filepath.IsAbs(path) {
		path = dir + string(filepath.Separator) + path
	}
	raw, via, err := resolveVia(path)
	if err != nil {
		return nil, nil, err
	}
	clean, more, err := resolveVia(filepath.Clean(path))
	if err != nil {
		return nil, nil, err
	}
	if clean == raw {
		return []string{raw}, via, nil
	}
	return []string{raw, clean}, append(via, more...), nil
}

// isWithin reports whether a path is a directory or lies below it. Upper and lower
// case are the same where fold is set.
func isWithin(dir, path string, fold bool) bool {
	if fold {
		dir = strings.ToLower(dir)
		path = strings.ToLower(path)
	}
	if dir == path {
		return true
	}
	if !strings.HasSuffix(dir, string(filepath.Separator)) {
		dir += string(filepath.Separator)
	}
	return strings.HasPrefix(path, dir)
}

// isDevice reports whether a path is a device that does not count as a file: data that is read from it or written to it
// stays in the call.
func isDevice(path string) bool {
	switch path {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return true
	}
	number, ok := strings.CutPrefix(path, "/dev/fd/")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// An area holds the directories that a policy knows without any rule.
// All of them are absolute paths with links followed.
type area struct {
	workspace string
	readable  []string
	guarded   []string
	code      []string
	holdsHome bool // the home directory is the workspace, or below it
}

// resolveArea resolves the directories of the policy.
func (p *Policy) resolveArea() (area, error) {
	var a area
	var err error
	if !filepath.IsAbs(p.Workspace) {
		return a, fmt.Errorf("the workspace of a permission policy must be an absolute path, not %q", p.Workspace)
	}
	if a.workspace, err = resolvePath(p.Workspace); err != nil {
		return a, err
	}
	if p.Home != "" {
		home, err := resolvePath(p.Home)
		a.holdsHome = err != nil || isWithin(a.workspace, home, false)
	}
	all := func(paths []string) (list []string) {
		for _, path := range paths {
			if at, e := resolvePath(path); e == nil && filepath.IsAbs(path) {
				list = append(list, at)
			} else {
				err = errors.Join(err, e)
			}
		}
		return list
	}
	a.readable, a.guarded, a.code = all(p.Readable), all(p.Guarded), all(p.Code)
	return a, err
}

// notWritten begins the reason to ask before a protected place is written.
const notWritten = "is not written without asking: "

// fileNeed returns the need for a file that is read or written, with the verdict for the case that
// no rule covers it. The name is absolute or relative to dir, the text is how the call has it.
// The need asks if one of the places that the name may mean is guarded, outside of the workspace,
// or a pipe.
func (a area) fileNeed(f needKind, how reach, text, dir, name string) need {
	n := need{kind: f, reach: how, text: text}
	paths, via, err := placesVia(dir, name)
	if err != nil {
		n.fallback = Ask
		n.why = fmt.Sprintf("cannot be looked at (%v)", err)
		return n
	}
	n.paths = paths
	n.via = via
	for _, path := range paths {
		if what, root := a.guardReason(path); f == writing && what != "" {
			n.fallback = Ask
			n.root = root
			n.why = notWritten + what
			return n
		}
		if !a.isInside(f, path) {
			n.fallback = Ask
			n.why = "is outside the workspace"
			if path != filepath.Clean(name) {
				n.why += " (" + path + ")"
			}
		} else if f == reading && n.fallback == Allow && isPipe(path) {
			n.fallback = Ask
			n.why = "is a pipe, which may never end"
		}
	}
	return n
}

// isPipe reports whether a path is a named pipe. Reading one waits until something writes to it.
func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// leadsOut reports whether a link below a directory leads out of what may be read.
func (a area) leadsOut(dir string) bool {
	if !isDir(dir) {
		return false
	}
	t := readTree(dir)
	return !t.whole || slices.ContainsFunc(t.links, func(path string) bool { return !a.isInside(reading, path) })
}

// isInside reports whether a place may be used without asking: the workspace, and for reading also
// the readable directories.
func (a area) isInside(f needKind, path string) bool {
	if isWithin(a.workspace, path, false) {
		return true
	}
	return f == reading && a.isReadable(path)
}

// isReadable reports whether a place is in one of the directories that may be read wherever they are.
func (a area) isReadable(path string) bool {
	return slices.ContainsFunc(a.readable, func(dir string) bool { return isWithin(dir, path, false) })
}

// The limits for looking up the names that a pattern of files matches.
const (
	maxFiles     = 500 // names
	maxWildcards = 2   // parts of the path with a wildcard
)

// expandPattern returns the names that a pattern of files matches now. It reports false if there
// are too many, or if they lie outside of the workspace.
// The limits keep a pattern from listing a whole disk. The files may change before the shell
// expands the pattern; what matters is that it cannot lead out of the directories of its first
// part.
func (a area) expandPattern(dir, pattern string) (names []string, ok bool) {
	if pattern, ok = absoluteGlob(dir, pattern); !ok {
		return nil, false
	}
	base := ""
	wildcards := 0
	for part := range strings.SplitSeq(filepath.ToSlash(pattern), "/") {
		switch {
		case strings.HasPrefix(part, ".") && !strings.HasPrefix(part, ".\\") && strings.ContainsAny(dropEscaped(part), "*?[") &&
			strings.IndexByte(".*?[", part[1]) >= 0:
			return nil, false // .* also matches ..
		case strings.ContainsAny(dropEscaped(part), "*?["):
			wildcards++
		case wildcards == 0:
			base += "/" + strings.ReplaceAll(part, `\`, "")
		case part == "..":
			return nil, false
		}
	}
	paths, err := possiblePaths(dir, base)
	if err != nil || wildcards > maxWildcards {
		return nil, false
	}
	for _, path := range paths {
		if !a.isInside(reading, path) {
			return nil, false
		}
	}
	return globNames(pattern)
}

// absoluteGlob returns a pattern of files as an absolute one, relative to a directory, with ? for each class of
// characters. It reports false if shells read the pattern in different ways.
func absoluteGlob(dir, pattern string) (string, bool) {
	pattern, ok := widenClasses(pattern)
	if ok && !filepath.IsAbs(pattern) {
		pattern = escapeGlob(dir) + string(filepath.Separator) + pattern
	}
	return pattern, ok
}

// globNames returns the names that a pattern of absoluteGlob matches now. It reports false if there are too many, or if
// they cannot be known.
func globNames(pattern string) ([]string, bool) {
	names, err := filepath.Glob(pattern)
	parts := partsOf(pattern)
	names = slices.DeleteFunc(names, func(name string) bool { return hidesDotFiles(parts, partsOf(name)) })
	return names, err == nil && len(names) <= maxFiles
}

// countWildcards returns how many parts of a pattern have a wildcard.
func countWildcards(pattern string) (n int) {
	for part := range strings.SplitSeq(filepath.ToSlash(pattern), "/") {
		if strings.ContainsAny(dropEscaped(part), "*?[") {
			n++
		}
	}
	return n
}

// widenClasses returns a pattern with ? for each class of characters such as [!a-z], which shells
// read in different ways. It reports false if a class holds a slash.
// A question mark matches more than the class, never less: the files that are looked at include all
// that the shell may use.
func widenClasses(pattern string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '\\' && i+1 < len(pattern) {
			b.WriteString(pattern[i : i+2])
			i++
			continue
		}
		if pattern[i] != '[' {
			b.WriteByte(pattern[i])
			continue
		}
		end := classEnd(pattern, i)
		if end < 0 {
			b.WriteString(`\[`)
			continue
		}
		if strings.Contains(pattern[i:end], "/") {
			return "", false
		}
		b.WriteByte('?')
		i = end
	}
	return b.String(), true
}

// classEnd returns the index of the bracket that ends the class beginning at from, or -1 if there
// is none.
// A bracket directly after the beginning is part of the class, and so is one in [:alpha:] and
// similar names.
func classEnd(pattern string, from int) int {
	i := from + 1
	if i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^') {
		i++
	}
	for first := i; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == ']' && i > first:
			return i
		case c == '[' && i+1 < len(pattern) && strings.IndexByte(":.=", pattern[i+1]) >= 0:
			if end := strings.Index(pattern[i+2:], string(pattern[i+1])+"]"); end >= 0 {
				i += end + 3
			}
		}
	}
	return -1
}

// partsOf returns the names in a path or pattern.
func partsOf(path string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(path), "/"), func(part string) bool { return part == "" || part == "." })
}

// hidesDotFiles reports whether a shell leaves out a name that fits a pattern: a wildcard at the
// beginning of a part does not match a dot.
func hidesDotFiles(pattern, name []string) bool {
	if len(pattern) != len(name) {
		return false // one leads through ..
	}
	for i, part := range pattern {
		if strings.IndexByte("*?", part[0]) >= 0 && strings.HasPrefix(name[i], ".") {
			return true
		}
	}
	return false
}

// dropEscaped returns a part of a pattern without the backslashes and the characters that follow them.
func dropEscaped(part string) string {
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		if part[i] == '\\' {
			i++
			continue
		}
		b.WriteByte(part[i])
	}
	return b.String()
}

// escapeGlob returns a pattern of filepath.Glob that matches only this path.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// maxEntries is how many names below a directory are looked at.
const maxEntries = 100_000

// A subtree holds the names below a directory. Links are not followed.
type subtree struct {
	paths []string // of everything, absolute
	links []string // where the links among them lead
	whole bool     // nothing was left out
}

// treeOf reads the names below a directory, once for each decision.
// Several rules may be about the same directory.
func (m matcher) treeOf(dir string) *subtree {
	if t := m.trees[dir]; t != nil {
		return t
	}
	t := readTree(dir)
	if m.trees != nil {
		m.trees[dir] = t
	}
	return t
}

// readTree reads the names below a directory, up to a limit. Beyond it, or if
// a link cannot be followed, the tree is not whole, and rules that deny must assume anything.
func readTree(dir string) *subtree {
	t := &subtree{whole: true}
	// A link is not entered, so that the walk begins where it leads.
	if at, err := resolvePath(dir); err == nil {
		dir = at
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what raddle cannot read, its children cannot read either
		case len(t.paths) >= maxEntries:
			t.whole = false
			return fs.SkipAll
		}
		t.paths = append(t.paths, path)
		if d.Type()&fs.ModeSymlink != 0 {
			to, err := resolvePath(path)
			if err != nil {
				t.whole = false
				return nil
			}
			t.links = append(t.links, to)
		}
		return nil
	})
	return t
}

// mayHold reports whether something that a pattern matches is in the tree, or may be.
func (t *subtree) mayHold(p pathPattern) bool {
	return !t.whole || p.unclear || slices.ContainsFunc(t.paths, func(path string) bool {
		matches, _ := p.comparePath(path)
		return matches
	})
}

// leadsTo reports whether a link of the tree leads to something that a pattern
// matches, or may match below it.
func (t *subtree) leadsTo(p pathPattern) bool {
	return !t.whole || slices.ContainsFunc(t.links, func(path string) bool {
		matches, below := p.comparePath(path)
		return matches || below && isDir(path)
	})
}

// HiddenFilter returns a function that reports whether a tool that searches directories must leave
// out a file or a directory, because a rule that denies or asks means it, or because it is hidden in a
// home directory that the workspace contains. Call it for a directory before the files in it, with
// absolute paths without links. The function is for one search by one
// goroutine: it does not see rules that are added later. If the policy cannot be used, it hides everything.
func (p *Policy) HiddenFilter(tool string) func(path string) bool {
	a, err := p.resolveArea()
	if err != nil {
		return func(string) bool { return true }
	}
	m := matcher{tool: tool, area: a, home: p.Home, patterns: map[string]pathPattern{}}
	var patterns []pathPattern
	for _, rules := range p.Rules {
		for _, list := range [][]Rule{rules.Deny, rules.Ask} {
			for _, r := range list {
				if m.appliesTo(r, need{kind: reading}) && !r.bare {
					patterns = append(patterns, m.deniedPaths(r))
				}
			}
		}
	}
	return func(path string) bool {
		for _, p := range patterns {
			if matches, _ := p.comparePath(path); matches || p.unclear {
				return true
			}
		}
		n := need{kind: reading, paths: []string{path}}
		return m.judgeHome(n) != "" && p.findAllow(m, n) == nil
	}
}

// PlacesOutside returns where rules that deny or ask about what a tool reads may mean something outside of the
// workspace: for each the directory before its first wildcard, or the path that it names. HiddenFilter says what below
// them is meant.
func (p *Policy) PlacesOutside(tool string) (places []string) {
	a, err := p.resolveArea()
	if err != nil {
		return nil
	}
	m := matcher{tool: tool, area: a, home: p.Home}
	for _, rules := range p.Rules {
		for _, r := range slices.Concat(rules.Deny, rules.Ask) {
			if !m.appliesTo(r, need{kind: reading}) || r.bare {
				continue
			}
			for _, pattern := range []string{m.pathPattern(r), m.absolutePattern(r)} {
				base := pattern
				if strings.ContainsAny(dropEscaped(pattern), "*?[{") {
					base, _ = doublestar.SplitPattern(pattern)
				}
				if place := filepath.FromSlash(unescapePattern(base)); filepath.IsAbs(place) && !isWithin(a.workspace, place, false) && !slices.Contains(places, place) {
					places = append(places, place)
				}
			}
		}
	}
	return places
}

// joinDir returns a path relative to a directory, or the path itself if it is absolute.
func joinDir(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
