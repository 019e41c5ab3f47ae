package permission

import (
	"path/filepath"
	"slices"
	"strings"
)

// An access is a file or directory that a command reads or writes.
type access struct {
	kind    needKind
	word    word
	reach   reach
	follows bool // links below a directory are followed, wherever they lead
	guess   bool // the word may be something else: only rules that deny or ask count
	asked   bool // the command asks anyway: what is not known about the word is no further reason
}

// addFileAccess adds a file that is read or written, for every directory in which the text may work.
func (s *shellAnalyzer) addFileAccess(f needKind, w word) { s.addAccess(access{kind: f, word: w}) }

// addAccess adds what a rule must allow for a file that a command reads or writes.
// A pattern counts both as the names that it matches now and as a name itself, because the shell
// passes it unchanged if it matches nothing.
func (s *shellAnalyzer) addAccess(a access) {
	w := a.word
	if w.vague || w.splits || s.lost && !filepath.IsAbs(w.text) {
		s.unknownFile(a, "is known only when it runs")
		return
	}
	if w.isPlain() && isDevice(w.text) {
		return
	}
	for _, dir := range s.dirs {
		s.addPathNeed(a, dir, w.text)
		if w.glob == "" {
			continue
		}
		found, ok := s.area.expandPattern(dir, w.glob)
		if !ok {
			s.unknownFile(a, "matches too many files, or files outside of the workspace")
			return
		}
		for _, name := range found {
			s.addPathNeed(a, dir, name)
		}
	}
}

// unknownFile adds a file whose name only the shell will know.
func (s *shellAnalyzer) unknownFile(a access, why string) {
	for _, text := range a.word.maybe {
		if a.kind == writing && !a.guess {
			for _, place := range s.protectedIn(nil, text) {
				place.why = notWritten + place.why
				s.needs = append(s.needs, place)
			}
		}
	}
	n := need{kind: a.kind, text: a.word.text, fallback: Ask, why: why, guess: a.guess, repeated: a.asked}
	if a.guess {
		n.fallback = Allow
		n.why = ""
	}
	s.needs = append(s.needs, n)
}

// addPathNeed adds the need for one file in one directory. A guess never asks by itself. If links
// below a directory are followed, each of them must stay inside the workspace.
func (s *shellAnalyzer) addPathNeed(a access, dir, name string) {
	n := s.area.fileNeed(a.kind, a.reach, a.word.text, dir, name)
	n.follows = a.follows
	n.guess = a.guess
	switch {
	case a.guess:
		n.fallback = Allow
		n.why = ""
		n.root = ""
	case a.follows && n.fallback == Allow && slices.ContainsFunc(n.paths, s.area.leadsOut):
		n.fallback = Ask
		n.why = "has links below it that lead out of the workspace"
	}
	s.needs = append(s.needs, n)
}

// addListing adds a word that a command prints or repeats: a wildcard outside of quotes reveals the
// names in directories.
func (s *shellAnalyzer) addListing(w word) {
	if w.wild {
		s.addUncertain(w.text, "may expand to names of files anywhere")
		return
	}
	if w.glob == "" {
		return
	}
	if s.lost && !filepath.IsAbs(w.text) {
		s.unknownFile(access{kind: reading, word: w}, "is known only when it runs")
		return
	}
	for _, dir := range s.dirs {
		found, ok := s.area.expandPattern(dir, w.glob)
		if !ok {
			s.addUncertain(w.text, "matches too many files, or files outside of the workspace")
			return
		}
		seen := map[string]bool{}
		for _, name := range found {
			if up := filepath.Dir(name); !seen[up] {
				seen[up] = true
				s.addPathNeed(access{kind: reading, word: w}, dir, up)
			}
		}
	}
}

// addExistence adds a file whose existence a command reveals.
func (s *shellAnalyzer) addExistence(w word) {
	if !w.isPlain() || w.text == "" || isDevice(w.text) {
		return
	}
	if s.lost && !filepath.IsAbs(w.text) {
		s.unknownFile(access{kind: reading, word: w}, "is known only when it runs")
		return
	}
	for _, dir := range s.dirs {
		all, err := possiblePaths(dir, w.text)
		if err != nil {
			all = []string{joinDir(dir, w.text)}
		}
		for _, path := range all {
			s.addPathNeed(access{kind: reading, word: w}, dir, filepath.Dir(path))
		}
	}
}

// addReads adds what a command of a known kind reads. asked reports whether the
// command asks anyway.
func (s *shellAnalyzer) addReads(words []word, asked bool) {
	name := words[0].text
	args := words[1:]
	r, ok := readers[name]
	switch {
	case !ok:
		return
	case name == "git":
		s.gitAccesses(args, asked)
		return
	case name == "find":
		s.findReads(args, names, asked)
		return
	case name == "test" || name == "[":
		s.addTestedFiles(args)
	}
	if r.text {
		for _, a := range args {
			s.addListing(a)
			s.checkExpansion(a)
		}
		return
	}
	how, here := reachOf(name, args)
	files, named := r.fileArguments(args)
	if !named && here && (s.reading || name != "rg") {
		files = append(files, literalWord("."))
	}
	for _, f := range files {
		a := access{kind: reading, word: f, reach: how, asked: asked}
		a.follows = name == "diff" || how == contents && asked
		s.addAccess(a)
	}
}

// reachOf returns how much of a directory a reader reads, and whether it reads its working
// directory if no file is named.
// It is about the programs that go through directories; all others read only the files that are
// named.
func reachOf(name string, args []word) (how reach, here bool) {
	switch name {
	case "grep", "egrep", "fgrep":
		if hasFlag(args, "rRd", "recursive", "dereference-recursive", "directories") {
			return contents, true
		}
	case "ls":
		if hasFlag(args, "R", "recursive") {
			return names, true
		}
	case "tree", "du":
		return names, true
	case "rg":
		return contents, true
	case "diff":
		return contents, false
	}
	return itself, false
}

// hasFlag reports whether one of the letters, or a long flag or what it may be short
// for, is among the arguments.
func hasFlag(args []word, letters string, long ...string) bool {
	return slices.ContainsFunc(args, func(a word) bool {
		if name, ok := strings.CutPrefix(a.text, "--"); ok {
			name, _, _ = strings.Cut(name, "=")
			return name != "" && slices.ContainsFunc(long, func(l string) bool { return strings.HasPrefix(l, name) })
		}
		return strings.HasPrefix(a.text, "-") && strings.ContainsAny(a.text[1:], letters)
	})
}

// addTestedFiles adds the files whose existence test asks for.
func (s *shellAnalyzer) addTestedFiles(args []word) {
	for i, a := range args {
		switch {
		case !a.isPlain():
		case unaryTests().MatchString(a.text) && !slices.Contains([]string{"-n", "-z", "-t"}, a.text) && i+1 < len(args):
			s.addExistence(args[i+1])
		case slices.Contains([]string{"-nt", "-ot", "-ef"}, a.text) && i > 0 && i+1 < len(args):
			s.addExistence(args[i-1])
			s.addExistence(args[i+1])
		}
	}
}

// checkExpansion adds a need that asks if an expansion outside of quotes may turn a quoted wildcard
// elsewhere in the text into names of files.
func (s *shellAnalyzer) checkExpansion(w word) {
	if w.splits && s.wild {
		s.addUncertain(w.text, "may expand to names of files anywhere")
	}
}

// quotedWildcard matches a wildcard in a path that may lead out of the workspace.
var quotedWildcard = compileLater(`(^|[\s"'=:(])(/|~|\.\.|\w+/)[^\s"']*[*?\[]|\.\./[^\s"']*[*?\[]`)

// expandedWildcard matches a wildcard behind a variable, which may be the path of a directory anywhere.
var expandedWildcard = compileLater(`\$[^\s"']*[*?\[]`)
