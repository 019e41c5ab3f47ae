package permission

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// A protectedWord is a word of a command that names a protected place, or may name one. What the command does with it
// is not known, so a rule that allows the command must name the word, too.
type protectedWord struct {
	index int  // among the assignments and words of the command; -1: no single word of it names the place
	place need // what a rule about files must allow
}

// addCommand adds a need for a command, with the protected places that it may write.
func (s *shellAnalyzer) addCommand(n need) {
	if n.fallback == Ask {
		s.protectPlaces(&n)
	}
	s.needs = append(s.needs, n)
}

// protectPlaces adds to a need for a command the protected places that its words name. The command then asks.
func (s *shellAnalyzer) protectPlaces(n *need) {
	if n.protected = s.findProtected(*n); len(n.protected) > 0 {
		n.fallback = Ask
		if n.why == "" {
			n.why = describeProtected(n.protected)
		}
	}
}

// describeProtected says why a command asks that names protected places, of which there is at least one.
func describeProtected(found []protectedWord) string {
	first := found[0].place
	others := map[string]bool{}
	for _, w := range found {
		if w.place.text != first.text {
			others[w.place.text] = true
		}
	}
	more := ""
	if len(others) > 0 {
		more = fmt.Sprintf(" and %d more places", len(others))
	}
	return fmt.Sprintf("may write %s%s, which is not done without asking: %s", first.text, more, first.why)
}

// findProtected lists all protected places that the words of a command name, whatever the command does with them: each
// word, the value behind =, the end of a joined flag, what is in a text for another program, and the directory in which
// the command works. A word that may name more files than raddle looks at counts as one that names a protected place.
func (s *shellAnalyzer) findProtected(n need) (found []protectedWord) {
	found = slices.Clone(s.found)
	for _, dir := range s.dirs {
		if why, root := s.area.protectReason(dir); why != "" {
			found = append(found, protectedWord{-1, placeNeed(dir, []string{dir}, why, root)})
		}
	}
	if len(n.words) == 0 || n.stdin || n.words[len(n.words)-1].splits {
		// It runs or gets what the rest of the text prints.
		for _, place := range s.protectedIn(nil, s.text) {
			found = append(found, protectedWord{-1, place})
		}
	}
	if len(n.words) > 0 && isReplacement(n.words) {
		return found
	}
	all := append(n.env[:len(n.env):len(n.env)], n.words...)
	for i, w := range all {
		if i == len(n.env) || i > len(n.env) && isOnlyText(n.words[:i-len(n.env)+1]) {
			continue
		}
		texts, all := wordTexts(s.dirs, w)
		if !all {
			found = append(found, protectedWord{i, placeNeed(w.text, nil, "it matches too many names to look at", w.text)})
		}
		for _, text := range texts {
			for _, place := range s.protectedIn(n.words, text) {
				found = append(found, protectedWord{i, place})
			}
		}
	}
	return found
}

// isReplacement reports whether a command is sed with a script that only replaces or prints lines of what it reads.
func isReplacement(words []word) bool {
	return words[0].text == "sed" && sedReplaces(words[1:]) && allPlain(words) && !slices.ContainsFunc(words[1:], editsInPlace)
}

// isOnlyText reports whether the last of some words is a message, or a pattern of names to leave out or to look for: no
// file.
func isOnlyText(words []word) bool {
	name := filepath.Base(words[0].text)
	last := words[len(words)-1].text
	before := words[len(words)-2].text
	if len(words) == 2 {
		before = ""
	}
	flag, _, _ := strings.Cut(last, "=")
	switch name {
	case "git", "gh", "glab", "hg", "jj", "svn":
		messages := []string{"--message", "--title", "--body", "--notes", "--description"}
		if slices.Contains(messages, before) || slices.Contains(messages, flag) || before == "-m" || before == "-am" || name != "git" && (before == "-t" || before == "-b") {
			return true
		}
	case "find":
		if slices.Contains([]string{"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex"}, before) {
			return true
		}
	}
	patterns := []string{"--exclude", "--exclude-dir", "--exclude-pattern", "--ignore-pattern"}
	return slices.Contains(patterns, before) || strings.Contains(last, "=") && slices.Contains(append(patterns, "--ignore"), flag)
}

// wordTexts lists the texts that a word may become: as it is written, as far as the shell's expansions are known, and
// the names that it matches as a pattern of files. all is false if there are too many such names.
func wordTexts(dirs []string, w word) (texts []string, all bool) {
	texts = append([]string{w.text}, w.maybe...)
	if w.glob == "" {
		return texts, !w.more
	}
	for _, dir := range dirs {
		pattern, ok := absoluteGlob(dir, w.glob)
		if !ok || countWildcards(pattern) > maxWildcards {
			return texts, false
		}
		names, ok := globNames(pattern)
		if !ok {
			return texts, false
		}
		texts = append(texts, names...)
	}
	return texts, true
}

// protectedIn lists the protected places that a text names in whole or in part, in the order of their names.
func (s *shellAnalyzer) protectedIn(words []word, text string) (places []need) {
	rest := text // without the names that are places by themselves
	for _, path := range namesIn(s.home, words, text) {
		for _, dir := range s.dirs {
			paths, _, err := placesVia(dir, path)
			if err != nil {
				continue
			}
			for _, at := range paths {
				if why, root := s.area.protectReason(at); why != "" {
					places = append(places, placeNeed(path, paths, why, root))
					rest = removeName(rest, path)
					break
				}
			}
		}
	}
	return sortPlaces(append(places, s.area.protectedTexts(s.dirs, rest)...))
}

// sortPlaces orders places by their names and paths, and leaves out repetitions.
func sortPlaces(places []need) []need {
	slices.SortFunc(places, func(a, b need) int { return cmp.Or(cmp.Compare(a.text, b.text), slices.Compare(a.paths, b.paths)) })
	return slices.CompactFunc(places, func(a, b need) bool { return a.text == b.text && slices.Equal(a.paths, b.paths) })
}

// placeNeed returns the need to write a protected place.
func placeNeed(text string, paths []string, why, root string) need {
	return need{kind: writing, reach: itself, text: text, paths: paths, root: root, why: why, fallback: Ask}
}

// namesIn lists the parts of a word that may be paths: see pathsIn. In addition, any letter of joined flags may be the
// last one before the path, ~ may stand anywhere, and the name of a file follows a command of sed.
func namesIn(home string, words []word, text string) (names []string) {
	names = pathsIn(text)
	if strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") {
		for i := 2; i < len(text) && i < 12; i++ {
			names = append(names, text[i:])
			if c := text[i]; c == '/' || c == '.' || c == '~' || c == '=' {
				break
			}
		}
	}
	if len(words) > 0 && strings.HasSuffix(words[0].text, "sed") {
		for i, c := range text {
			if c == 'w' || c == 'W' {
				names = append(names, strings.TrimSpace(text[i+1:]))
			}
		}
	}
	isBound := func(c rune) bool { return strings.ContainsRune("#=,:;|&<>()'\"` \t\n", c) }
	names = append(names, strings.FieldsFunc(text, isBound)...)
	if home != "" {
		for _, name := range slices.Clone(names) {
			if rest, ok := strings.CutPrefix(name, "~"); ok {
				_, rest, _ = strings.Cut(rest, "/")
				names = append(names, filepath.Join(home, rest))
			}
			if rest, ok := strings.CutPrefix(strings.NewReplacer("${HOME}", "$HOME").Replace(name), "$HOME/"); ok {
				names = append(names, filepath.Join(home, rest))
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || len(name) >= longestPath || strings.HasPrefix(name, "-") })
}

// protectedTexts lists the protected places whose names stand anywhere in a text, such as a program for an interpreter, in the order of their names. dirs are
// the directories of relative names.
func (a area) protectedTexts(dirs []string, text string) (places []need) {
	lower := strings.ToLower(text)
	for _, list := range [][]string{a.guarded, a.code} {
		for _, path := range list {
			if len(path) > 1 && !isWithin(path, a.workspace, true) && strings.Contains(lower, strings.ToLower(path)) {
				places = append(places, placeNeed(path, []string{path}, "it decides what runs", path))
			}
		}
	}
	for _, table := range []map[string]string{codeDirs, codeFiles} {
		for name, why := range table {
			if !mentionsName(lower, name) {
				continue
			}
			for _, dir := range dirs {
				at := filepath.Join(dir, filepath.FromSlash(name))
				places = append(places, placeNeed(name, []string{at}, why, at))
			}
		}
	}
	return sortPlaces(places)
}

// removeName returns a text without a name, where it is not a part of a longer one.
func removeName(text, name string) string {
	isPart := func(c byte) bool { return c == '/' || isNameByte(c) }
	for from := 0; ; {
		at := strings.Index(text[from:], name)
		if at < 0 {
			return text
		}
		at += from
		end := at + len(name)
		from = at + 1
		if (at == 0 || !isPart(text[at-1])) && (end == len(text) || !isPart(text[end])) {
			text = text[:at] + "\x00" + text[end:]
		}
	}
}

// isNameByte reports whether a character is a part of names, of any case.
func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// mentionsName reports whether a protected name is in a text as a name of its own, or as the beginning of a path; .git also directly behind the command w of
// sed. The text is in lower case.
func mentionsName(text, name string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], name)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(name)
		from = at + 1
		path := name == ".git" && at > 0 && text[at-1] == 'w' && !strings.Contains(text, "://") && end < len(text) && slices.ContainsFunc([]string{"/config", "/hooks", "/info", "/modules", "/objects", "/worktrees", "/head"}, func(rest string) bool { return strings.HasPrefix(text[end:], rest) })
		if path || (at == 0 || !isNameByte(text[at-1])) && (end == len(text) || !isNameByte(text[end])) && (strings.ContainsAny(name, "./") || strings.HasPrefix(text[end:], "/")) {
			return true
		}
	}
}

// protectReason returns why a path is a protected place, with the root that a rule must name; "": it is none. Places around the workspace do not count: their
// files are what the work is about.
func (a area) protectReason(path string) (what, root string) {
	for i, list := range [][]string{a.guarded, a.code, a.readable} {
		for _, g := range list {
			if isWithin(g, path, true) && !isWithin(g, a.workspace, true) {
				return []string{"it decides about permissions", "its files run without being named", "it belongs to the agent"}[i], g
			}
		}
	}
	parts := strings.Split(filepath.ToSlash(path), "/")
	for i := range parts {
		if why := codeDirReason(parts[:i+1]); why != "" {
			if root := filepath.FromSlash(strings.Join(parts[:i+1], "/")); !isWithin(root, a.workspace, true) {
				return why, root
			}
		}
	}
	if why := codeFileReason(filepath.Base(path)); why != "" {
		return why, path
	}
	if what, root = a.findCodeDir(path); root == a.workspace {
		return "", ""
	}
	return what, root
}

// possibleTexts returns the texts that a word may become as far as the text at hand says so: with variables that it assigns, the home directory, braces and all forms of
// quotes. What is not known is left out. all is false if there are too many.
func (s *shellWalk) possibleTexts(n *syntax.Word) (texts []string, all bool) {
	rounds := 1
	all = true
	for node := range syntax.Preorder(n) {
		if p, ok := node.(*syntax.ParamExp); ok && p.Param != nil {
			v := s.values[p.Param.Value]
			rounds = max(rounds, len(v.texts))
			all = all && !v.more
		}
	}
	for round := range rounds {
		value := func(name string) string {
			switch all := s.values[name].texts; {
			case len(all) > 0:
				return all[min(round, len(all)-1)]
			case name == "HOME":
				return s.home
			case name == "PWD":
				return s.dirs[len(s.dirs)-1]
			}
			return ""
		}
		cfg := &expand.Config{Env: expand.FuncEnviron(value), CmdSubst: func(w io.Writer, c *syntax.CmdSubst) error {
			_, err := io.WriteString(w, s.printedText(c))
			return err
		}}
		fields, err := expand.Fields(cfg, n)
		if err != nil {
			return texts, all
		}
		for _, f := range fields {
			if len(texts) == maxPieces {
				return texts, false
			}
			if !slices.Contains(texts, f) {
				texts = append(texts, f)
			}
		}
	}
	return texts, all
}

// values are the texts that a variable may have, as far as a shell text says so.
type values struct {
	texts []string
	more  bool // there are more than mostValues
}

// mostValues is how many values of one variable are tried.
const mostValues = 100

// printedText returns what a substitution prints, as far as its text says so: that of echo and printf, and the directory of git.
func (s *shellWalk) printedText(c *syntax.CmdSubst) string {
	source := s.sourceOf(c)
	if strings.Contains(source, "--git-dir") || strings.Contains(source, "--git-path") || strings.Contains(source, "--git-common-dir") || strings.Contains(source, "--absolute-git-dir") {
		return ".git"
	}
	if len(c.Stmts) != 1 {
		return ""
	}
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) < 2 || call.Args[0].Lit() != "echo" && call.Args[0].Lit() != "printf" {
		return ""
	}
	var printed []string
	for _, a := range call.Args[1:] {
		if w := parseWord(a, s.sourceOf(a), s.home); w.isPlain() && !strings.Contains(w.text, "%") && !strings.HasPrefix(w.text, "-") {
			printed = append(printed, strings.TrimSuffix(w.text, `\n`))
		}
	}
	return strings.Join(printed, " ")
}

// recordValue records a value that the text gives to a variable.
func (s *shellWalk) recordValue(name string, n *syntax.Word) {
	if n == nil || s.values == nil {
		return
	}
	w := s.resolveWord(n)
	v := s.values[name]
	texts, all := wordTexts(s.dirs, w)
	if w.glob == "" {
		texts = texts[len(texts)-1:]
	}
	free := mostValues - len(v.texts)
	v.more = v.more || !all || len(texts) > free
	v.texts = append(v.texts, texts[:min(len(texts), free)]...)
	s.values[name] = v
}

// dropAllowedPlaces leaves out the protected places of a need that a rule about files allows. The reason is about those that are left.
func (p *Policy) dropAllowedPlaces(m matcher, n need) need {
	if len(n.protected) == 0 {
		return n
	}
	n.protected = slices.DeleteFunc(slices.Clone(n.protected), func(w protectedWord) bool { return p.findGrant(m, w.place) != nil || p.findAllow(m, w.place) != nil })
	if len(n.protected) > 0 {
		n.why = describeProtected(n.protected)
	}
	return n
}

// namesProtected reports whether the pattern of a rule about commands names each protected word of a command: a wildcard does not.
func namesProtected(r Rule, n need) bool {
	all := append(n.env[:len(n.env):len(n.env)], n.words...)
	return !slices.ContainsFunc(n.protected, func(w protectedWord) bool {
		return w.index < 0 || w.index >= len(r.words) || strings.Contains(strings.ReplaceAll(r.words[w.index], `\*`, ""), "*") || !matchesWildcard(r.words[w.index], all[w.index].text)
	})
}
