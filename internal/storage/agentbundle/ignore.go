package agentbundle

import (
	"os"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/plainfile"
)

// IgnoreFile is the file that lists what a bundle leaves out, in addition to .gitignore.
const IgnoreFile = ".raddleignore"

// privateKey matches the first line of a private key.
var privateKey = pattern.CompileLater(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----`)

// An ignoreRule is one line of an ignore file.
type ignoreRule struct {
	pattern string // of paths in the bundle
	dirs    bool   // only directories
	keep    bool   // the line began with "!"
}

// addIgnoreFiles returns rules with those of the ignore files of a directory, which is at name in the bundle.
func addIgnoreFiles(rules []ignoreRule, dir, name string) ([]ignoreRule, error) {
	all := rules[:len(rules):len(rules)]
	for _, file := range []string{".gitignore", IgnoreFile} {
		text, err := plainfile.ReadBeneath(dir, file, 1<<20)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if r, ok := parseIgnoreLine(strings.TrimRight(line, "\r\n"), name); ok {
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// parseIgnoreLine returns the rule of a line. ok is false for blank lines, comments and patterns that are not valid.
func parseIgnoreLine(line, name string) (r ignoreRule, ok bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || strings.HasPrefix(line, "#") {
		return r, false
	}
	line, r.keep = strings.CutPrefix(line, "!")
	line, r.dirs = strings.CutSuffix(line, "/")
	line, anchored := strings.CutPrefix(line, "/")
	if !anchored && !strings.Contains(line, "/") {
		line = "**/" + line
	}
	r.pattern = path.Join(escapePattern(name), line)
	return r, line != "" && doublestar.ValidatePattern(r.pattern)
}

// escapePattern returns a pattern that matches a path literally.
func escapePattern(name string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`, `}`, `\}`, `]`, `\]`).Replace(name)
}

// isIgnored reports whether the last rule that matches a path leaves it out.
func isIgnored(rules []ignoreRule, at string, dir bool) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		r := rules[i]
		if r.dirs && !dir {
			continue
		}
		if doublestar.MatchUnvalidated(r.pattern, at) {
			return !r.keep
		}
	}
	return false
}
