package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"raddle.dev/internal/base/pattern"
)

// pathStart matches where an absolute path may begin in a text: after what is no part of a name, and perhaps as an
// address of a file. The path is that of a root, a home directory or a drive.
var pathStart = pattern.CompileLater(`(?:^|[^\pL\pN/\\._~%+*?&#-])((?:file://)?(?:~?/|[A-Za-z]:[/\\]|\\\\)[^\s/\\])`)

// pathRest matches what follows in a path until a character that ends it. A colon or comma with a name behind it is a
// part of the path.
var pathRest = pattern.CompileLater("^(?:[^\\s'\"`;:,()\\[\\]{}<>|]|[:,][^\\s'\"`;:,()\\[\\]{}<>|\\pN])*")

// HidePaths returns the text of an error as callers may read it: it names agents by their names, files of agents and of
// the workspace by their paths below them, and other files by the last part of their paths. Where something lies on the
// server is none of a caller's business. A text that only looks like a path, such as the place of a value in JSON or an
// address of the server, stays. s is nil if there is no service yet.
func HidePaths(text string, s *Service) string {
	if !strings.ContainsAny(text, `/\`) {
		return text
	}
	var known []string // with what is in them nearest first
	if s != nil {
		d := s.process.Dirs
		for _, dir := range []string{d.Agents, d.Functions, d.State, d.Cache, filepath.Dir(d.Config), d.Work} {
			known = append(known, dir)
			if below, ok := cutDir(dir, d.Home); ok {
				known = append(known, "~"+string(filepath.Separator)+below)
			}
		}
		slices.SortStableFunc(known, func(a, b string) int { return len(b) - len(a) })
	}
	var b strings.Builder
	for {
		at := pathStart().FindStringSubmatchIndex(text)
		if at == nil {
			b.WriteString(text)
			return b.String()
		}
		begin := at[2]
		quote := byte(0)
		if begin > 0 {
			quote = text[begin-1]
		}
		b.WriteString(text[:begin])
		length := measurePath(text[begin:], quote, known)
		b.WriteString(hidePath(text[begin:begin+length], known))
		text = text[begin+length:]
	}
}

// measurePath returns the length of the path with which a text begins. quote is the character before it.
func measurePath(text string, quote byte, known []string) int {
	if strings.IndexByte("'\"`", quote) >= 0 && quote != 0 {
		if end := strings.IndexByte(text, quote); end > 0 && !strings.Contains(text[:end], "\n") {
			return end
		}
	}
	bare := strings.TrimPrefix(text, "file://")
	for _, dir := range known { // its name may have spaces
		if _, ok := cutDir(bare, dir); ok {
			skip := len(text) - len(bare) + len(dir)
			return skip + len(pathRest().FindString(text[skip:]))
		}
	}
	skip := len(text) - len(bare) + len(filepath.VolumeName(bare))
	if len(bare) > 1 && bare[1] == ':' { // a drive
		skip = len(text) - len(bare) + 2
	}
	return skip + len(pathRest().FindString(text[skip:]))
}

// cutDir returns what follows a directory in a path. ok is false if the path does not lead to the directory or below it.
func cutDir(path, dir string) (rest string, ok bool) {
	if dir == "" || dir == "." || filepath.Dir(dir) == dir {
		return "", false
	}
	rest, ok = strings.CutPrefix(path, dir)
	return strings.TrimLeft(rest, `/\`), ok && (rest == "" || rest[0] == '/' || rest[0] == '\\' || !isNamePart(rest))
}

// isNamePart reports whether a text begins with something that continues the name of a file.
func isNamePart(text string) bool {
	r := []rune(text)[0]
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-~", r)
}

// hidePath returns the form of a path that callers may read.
func hidePath(path string, known []string) string {
	bare := strings.TrimPrefix(path, "file://")
	for _, dir := range known {
		if rest, ok := cutDir(bare, dir); ok {
			if rest == "" {
				return filepath.Base(dir)
			}
			return rest
		}
	}
	parts := strings.FieldsFunc(bare, func(c rune) bool { return c == '/' || c == '\\' })
	if len(parts) == 0 || len(parts) == 1 && !strings.HasPrefix(bare, "~") || bare == path && bare[0] == '/' && !isRootEntry(parts[0]) {
		return path
	}
	return parts[len(parts)-1]
}

// isRootEntry reports whether there is a file or directory of a name at the root of this machine: only then a text is taken for a path of it.
func isRootEntry(name string) bool {
	_, err := os.Lstat(string(filepath.Separator) + name)
	return err == nil
}
