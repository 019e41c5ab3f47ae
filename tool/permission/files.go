package permission

import (
	"fmt"
	"path/filepath"
	"strings"
)

// file is the need for a file that is read or written, with what is right where
// no rule speaks of it. The name is absolute or relative to dir, the text is how
// the call has it.
func (a area) file(f facet, text, dir, name string) need {
	n := need{facet: f, text: text}
	paths, err := places(dir, name)
	if err != nil {
		n.fallback, n.why = Ask, fmt.Sprintf("cannot be looked at (%v)", err)
		return n
	}
	n.paths = paths
	for _, path := range paths {
		if what, root := a.guard(path); f == writing && what != "" {
			n.fallback, n.root, n.why = Ask, root, "is not written without asking: "+what
			return n
		}
		if !a.inside(f, path) {
			n.fallback, n.why = Ask, "is outside the workspace"
			if path != filepath.Clean(name) {
				n.why += " (" + path + ")"
			}
		}
	}
	return n
}

func (a area) inside(f facet, path string) bool {
	if within(a.workspace, path, false) {
		return true
	}
	if f == writing {
		return false
	}
	for _, dir := range a.readable {
		if within(dir, path, false) {
			return true
		}
	}
	return false
}

// What a pattern of files may stand for is looked up within bounds.
const (
	mostFiles     = 500 // names
	mostWildcards = 2   // parts of the path with a wildcard
)

// expand returns the names that a pattern of files stands for now. It reports
// false where there are too many, or where they lie outside of the workspace.
func (a area) expand(dir, pattern string) (names []string, ok bool) {
	if !filepath.IsAbs(pattern) {
		pattern = escapeGlob(dir) + string(filepath.Separator) + pattern
	}
	base, wildcards := "", 0
	for part := range strings.SplitSeq(filepath.ToSlash(pattern), "/") {
		switch {
		case strings.HasPrefix(part, ".") && !strings.HasPrefix(part, ".\\") && strings.ContainsAny(unescaped(part), "*?[") &&
			strings.IndexByte(".*?[", part[1]) >= 0:
			return nil, false // .* stands for .. as well
		case strings.ContainsAny(unescaped(part), "*?["):
			wildcards++
		case wildcards == 0:
			base += "/" + strings.ReplaceAll(part, `\`, "")
		case part == "..":
			return nil, false
		}
	}
	paths, err := places(dir, base)
	if err != nil || wildcards > mostWildcards {
		return nil, false
	}
	for _, path := range paths {
		if !a.inside(reading, path) {
			return nil, false
		}
	}
	names, err = filepath.Glob(pattern)
	return names, err == nil && len(names) <= mostFiles
}

// unescaped is a part of a pattern without what stands behind a backslash.
func unescaped(part string) string {
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

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
