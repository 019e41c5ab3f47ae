package permission

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/base/plainfile"
)

// changedContent is why a call asks that an answer has allowed, as the end of a sentence.
const changedContent = "has changed since it was allowed"

// bindRule returns a rule that holds only as long as a content stays the same. An empty content binds to nothing.
func bindRule(rule, content string) string {
	if content == "" || rule == "" {
		return rule
	}
	return rule + " @" + content
}

// IsBound reports whether a rule holds only as long as a content stays the same: see [Rule].
func IsBound(rule string) bool { return boundText().MatchString(rule) }

// shortDigest returns the digest of a text in the form that rules have; "" of an empty text.
func shortDigest(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// coversContent reports whether what a need is about is still what a rule was given for. A rule of an answer is bound
// to it. A rule by name alone means a relative program of the workspace, and does not cover a tool whose definition has
// changed, unless it is about several tools.
func (m matcher) coversContent(r Rule, n need) bool {
	switch {
	case r.bound != "":
		return r.bound == n.content
	case n.kind == theCall && n.changed:
		return strings.Contains(r.tool, "*")
	case n.kind != command || r.bare || len(n.words) == 0 || !isRelativeProgram(n.words[0].text):
		return true
	case len(r.words) <= len(n.env) || !strings.Contains(dropEscaped(r.words[len(n.env)]), "/"):
		return true // any program
	}
	return len(n.dirs) == 1 && n.dirs[0] == m.area.workspace
}

// describeChange returns why a need asks that a rule or an answer covers by its names; "" if none does.
func (p *Policy) describeChange(m matcher, n need) string {
	changed := func(r Rule) bool { return (r.bound != "" || n.changed) && m.coversNames(r, n) }
	rules := slices.ContainsFunc(p.Rules, func(r Rules) bool { return slices.ContainsFunc(r.Allow, changed) })
	if !rules && !slices.ContainsFunc(p.Granted, changed) {
		return ""
	}
	if n.kind == command {
		return changedContent + ", or is another file in another directory"
	}
	return changedContent + ": its server now describes it in another way"
}

// isRelativeProgram reports whether a program is named by a path that depends on the directory.
func isRelativeProgram(name string) bool {
	return strings.Contains(name, "/") && !filepath.IsAbs(name) && !strings.HasPrefix(name, "~")
}

// runsRelative reports whether a command runs a program by a path that depends on the directory.
func runsRelative(words []word) bool { return len(words) > 0 && isRelativeProgram(words[0].text) }

// contentOf returns the directories in which a command may start, and a digest of the files that it runs from there,
// with their paths. Files outside of the workspace count only if their names are relative: they are programs of the
// system.
func (s *shellAnalyzer) contentOf(words []word) (dirs []string, content string) {
	if s.lost || s.declares || len(s.dirs) == 0 {
		return nil, ""
	}
	dirs = slices.Clone(s.dirs)
	sum := sha256.New()
	found := false
	for _, dir := range dirs {
		for _, name := range filesRun(words) {
			path := name
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, name)
			}
			if filepath.IsAbs(name) && !isWithin(s.area.workspace, path, false) {
				continue
			}
			found = addContent(sum, path, len(words) > 0 && slices.Contains(packageManagers, filepath.Base(words[0].text))) || found
		}
	}
	if !found {
		return dirs, ""
	}
	return dirs, hex.EncodeToString(sum.Sum(nil)[:16])
}

// packageManagers run scripts of a package.json by their names.
var packageManagers = []string{"npm", "pnpm", "yarn", "bun"}

// filesRun returns the names of the files that a command runs: the program itself if it is named by a path, the script
// of an interpreter, and the file with the targets or scripts of a program that runs these by name.
func filesRun(words []word) (names []string) {
	if len(words) == 0 || !words[0].isPlain() {
		return nil
	}
	name := words[0].text
	if strings.Contains(name, "/") {
		names = append(names, name)
	}
	base := filepath.Base(name)
	switch _, ok := interpreterOf(base); {
	case base == "make" || base == "gmake":
		return append(names, "GNUmakefile", "makefile", "Makefile")
	case slices.Contains(packageManagers, base):
		return append(names, "package.json")
	case ok || base == "." || base == "source":
		for _, w := range words[1:] {
			if w.isPlain() && w.text != "" && !strings.HasPrefix(w.text, "-") {
				names = append(names, w.text) // also arguments of the script: files that it reads may be code
			}
		}
	}
	return names
}

// largestContent is the size in bytes above which the size and the time of a file mean its content.
const largestContent = 64 << 20

// addContent adds the path and the content of a file to a digest, and reports whether there is such a file. Of the
// description of a package only the scripts count.
func addContent(sum hash.Hash, path string, scripts bool) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		fmt.Fprintf(sum, "none %d:%s", len(path), path)
		return false
	}
	if info.Size() > largestContent {
		fmt.Fprintf(sum, "large %d:%s %d %d", len(path), path, info.Size(), info.ModTime().UnixNano())
		return true
	}
	if scripts {
		var pack struct{ Scripts json.RawMessage }
		if text, err := plainfile.Read(path, largestContent); err == nil && json.Unmarshal(text, &pack) == nil {
			fmt.Fprintf(sum, "scripts %d:%s %d:%s", len(path), path, len(pack.Scripts), pack.Scripts)
			return true
		}
	}
	if err := addFile(sum, path, path, info.Size()); err != nil {
		fmt.Fprintf(sum, "unreadable %d:%s", len(path), path)
	}
	return true
}
