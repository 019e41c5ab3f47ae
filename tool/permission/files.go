package permission

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fileNeed returns the need for a file that is read or written, with the verdict for the case that
// no rule covers it. The name is absolute or relative to dir, the text is how the call has it.
func (a area) fileNeed(f needKind, how reach, text, dir, name string) need {
	n := need{kind: f, reach: how, text: text}
	paths, via, err := placesVia(dir, name)
	if err != nil {
		n.fallback, n.why = Ask, fmt.Sprintf("cannot be looked at (%v)", err)
		return n
	}
	n.paths, n.via = paths, via
	for _, path := range paths {
		if what, root := a.guardReason(path); f == writing && what != "" {
			n.fallback, n.root, n.why = Ask, root, "is not written without asking: "+what
			return n
		}
		if !a.isInside(f, path) {
			n.fallback, n.why = Ask, "is outside the workspace"
			if path != filepath.Clean(name) {
				n.why += " (" + path + ")"
			}
		} else if f == reading && n.fallback == Allow && isPipe(path) {
			n.fallback, n.why = Ask, "is a pipe, which may never end"
		}
	}
	return n
}

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

func (a area) isInside(f needKind, path string) bool {
	if isWithin(a.workspace, path, false) {
		return true
	}
	if f == writing {
		return false
	}
	for _, dir := range a.readable {
		if isWithin(dir, path, false) {
			return true
		}
	}
	return false
}

// The limits for looking up the names that a pattern of files matches.
const (
	mostFiles     = 500 // names
	mostWildcards = 2   // parts of the path with a wildcard
)

// expandPattern returns the names that a pattern of files matches now. It reports false if there
// are too many, or if they lie outside of the workspace.
func (a area) expandPattern(dir, pattern string) (names []string, ok bool) {
	if pattern, ok = widenClasses(pattern); !ok {
		return nil, false
	}
	if !filepath.IsAbs(pattern) {
		pattern = escapeGlob(dir) + string(filepath.Separator) + pattern
	}
	base, wildcards := "", 0
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
	if err != nil || wildcards > mostWildcards {
		return nil, false
	}
	for _, path := range paths {
		if !a.isInside(reading, path) {
			return nil, false
		}
	}
	names, err = filepath.Glob(pattern)
	parts := partsOf(pattern)
	names = slices.DeleteFunc(names, func(name string) bool { return hidesDotFiles(parts, partsOf(name)) })
	return names, err == nil && len(names) <= mostFiles
}

// widenClasses returns a pattern with ? for each class of characters such as [!a-z], which shells
// read in different ways. It reports false if a class holds a slash.
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

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
