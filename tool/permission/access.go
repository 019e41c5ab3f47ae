package permission

import (
	"net/url"
	"path"
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
	n := need{kind: a.kind, text: a.word.text, fallback: Ask, why: why, guess: a.guess, repeated: a.asked}
	if a.guess {
		n.fallback, n.why = Allow, ""
	}
	s.needs = append(s.needs, n)
}

// addPathNeed adds the need for one file in one directory. A guess never asks by itself. If links
// below a directory are followed, each of them must stay inside the workspace.
func (s *shellAnalyzer) addPathNeed(a access, dir, name string) {
	n := s.area.fileNeed(a.kind, a.reach, a.word.text, dir, name)
	n.follows, n.guess = a.follows, a.guess
	switch {
	case a.guess:
		n.fallback, n.why, n.root = Allow, "", ""
	case a.follows && n.fallback == Allow && slices.ContainsFunc(n.paths, s.area.leadsOut):
		n.fallback, n.why = Ask, "has links below it that lead out of the workspace"
	}
	s.needs = append(s.needs, n)
}

// addListing adds a word that a command prints or repeats: a wildcard outside of quotes reveals the
// names in directories.
func (s *shellAnalyzer) addListing(w word) {
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

// parentListed adds a file whose existence a command reveals.
func (s *shellAnalyzer) parentListed(w word) {
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
	name, args := words[0].text, words[1:]
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
			s.maybeListed(a)
		}
		return
	}
	how, here := reachOf(name, args)
	files := r.fileArguments(args)
	if len(files) == 0 && here && (s.reading || name != "rg") {
		files = []word{literalWord(".")}
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

// findReads adds the directories in which find looks, and the files whose times it
// compares.
func (s *shellAnalyzer) findReads(args []word, how reach, asked bool) {
	var roots []word
	i := 0
	for ; i < len(args); i++ {
		t := args[i].text
		if slices.Contains([]string{"-H", "-L", "-P"}, t) || strings.HasPrefix(t, "-O") {
			continue
		}
		if t == "-D" {
			i++
			continue
		}
		if args[i].isPlain() && (strings.HasPrefix(t, "-") || t == "(" || t == "!" || t == ")") {
			break
		}
		roots = append(roots, args[i])
	}
	if len(roots) == 0 {
		roots = []word{literalWord(".")}
	}
	follows := hasFlag(args, "L", "follow")
	for _, root := range roots {
		s.addAccess(access{kind: reading, word: root, reach: how, follows: follows, asked: asked})
	}
	for ; i+1 < len(args); i++ {
		if t := args[i].text; strings.HasPrefix(t, "-newer") || t == "-anewer" || t == "-cnewer" || t == "-samefile" {
			s.addAccess(access{kind: reading, word: args[i+1], asked: asked})
		}
	}
}

// findWrites adds what find may change: everything below the directories in which it
// looks.
func (s *shellAnalyzer) findWrites(args []word) {
	from := len(s.needs)
	s.findReads(args, contents, true)
	for i := from; i < len(s.needs); i++ {
		s.needs[i].kind, s.needs[i].guess, s.needs[i].fallback = writing, true, Allow
	}
}

// addTestedFiles adds the files whose existence test asks for.
func (s *shellAnalyzer) addTestedFiles(args []word) {
	for i, a := range args {
		switch {
		case !a.isPlain():
		case unaryTests().MatchString(a.text) && !slices.Contains([]string{"-n", "-z", "-t"}, a.text) && i+1 < len(args):
			s.parentListed(args[i+1])
		case slices.Contains([]string{"-nt", "-ot", "-ef"}, a.text) && i > 0 && i+1 < len(args):
			s.parentListed(args[i-1])
			s.parentListed(args[i+1])
		}
	}
}

// maybeListed adds a need that asks if an expansion outside of quotes may turn a quoted wildcard
// elsewhere in the text into names of files.
func (s *shellAnalyzer) maybeListed(w word) {
	if w.splits && s.wild {
		s.addUncertain(w.text, "may expand to names of files anywhere")
	}
}

// quotedWildcard matches a wildcard in a path that may lead out of the workspace.
var quotedWildcard = compileLater(`(^|[\s"'=:(])(/|~|\.\.|\w+/)[^\s"']*[*?\[]|\.\./[^\s"']*[*?\[]`)

// copiers read all operands but the last one, with everything below them.
var copiers = []string{"cp", "install", "ln", "mv", "rsync"}

// recursivePrograms are programs that read or write everything below the directories in their arguments. For
// other programs this is not known.
var recursivePrograms = []string{"7z", "7za", "ack", "ag", "ar", "bsdtar", "chgrp", "chmod", "chown", "cpio", "fd", "fdfind", "gzip", "pax", "rclone", "rgrep", "rm", "scp",
	"shred", "star", "tar", "ug", "ugrep", "xz", "zip", "zstd"}

// workingDirCarriers are carriers that work in the directory in which they are started if no other one is named,
// or that write files there.
var workingDirCarriers = []string{"7z", "7za", "ack", "ag", "bsdtar", "cpio", "fd", "fdfind", "patch", "pax", "rgrep", "star", "tar", "ug", "ugrep", "unzip"}

// runners are programs that may run a command among their arguments, in ways that are
// not looked at.
var runners = []string{"bwrap", "chrt", "direnv", "docker", "expect", "faketime", "firejail", "flock", "gdb", "kubectl", "linux32", "linux64", "ltrace", "nsenter",
	"parallel", "podman", "prlimit", "proxychains", "rlwrap", "runuser", "script", "setarch", "setpriv", "ssh", "start-stop-daemon", "su", "systemd-run", "taskset",
	"tsocks", "unbuffer", "unshare"}

// addGuesses adds the files and hosts that the words of a command may name, if it is not known what
// the command does with them. Only rules that deny or ask use them.
// Without such rules guesses are not collected, because they cost time and decide nothing.
func (s *shellAnalyzer) addGuesses(env, words []word) {
	if !s.watched || len(words) == 0 {
		return
	}
	name, args := words[0].text, words[1:]
	if slices.Contains(copiers, name) {
		s.addCopySources(args)
	}
	how, known := names, slices.Contains(recursivePrograms, name)
	if known {
		how = contents
	}
	seen := map[string]bool{}
	for _, a := range slices.Concat(env, args) {
		s.guessHosts(name, a)
		if !a.isPlain() {
			s.addGuess(a, how)
			continue
		}
		for _, text := range pathsIn(a.text) {
			if !seen[text] {
				seen[text] = true
				s.addGuess(literalWord(text), how)
			}
		}
	}
	if slices.Contains(workingDirCarriers, name) {
		s.addGuess(literalWord("."), contents)
	}
}

// addGuess adds a word that may be a file that is read or written.
func (s *shellAnalyzer) addGuess(w word, how reach) {
	for _, f := range []needKind{reading, writing} {
		s.addAccess(access{kind: f, word: w, reach: how, guess: true, follows: true})
	}
}

// addCopySources adds what a command such as cp copies, with everything below it.
func (s *shellAnalyzer) addCopySources(args []word) {
	var operands []word
	for _, a := range args {
		if a.vague || a.splits || a.text != "" && !strings.HasPrefix(a.text, "-") {
			operands = append(operands, a)
		}
	}
	if !hasFlag(args, "t", "target-directory") && len(operands) > 0 {
		operands = operands[:len(operands)-1]
	}
	for _, a := range operands {
		s.addAccess(access{kind: reading, word: a, reach: contents, follows: true, asked: true})
	}
}

// notInPaths matches what separates a path from other text.
var notInPaths = compileLater(`[\s"'` + "`" + `()<>|;&,=:@!$?*\[\]{}]+`)

// longestPath is the length in bytes from which a text is not taken for a path.
const longestPath = 4096

// pathsIn lists the parts of an argument that may be paths: all of it, the text after the letter of
// a flag, and the pieces between characters that separate values, as in file=@a.txt, a:b or an
// inline script.
// A piece too many is harmless: it only means that a rule that denies or asks is compared with a
// file that the command does not touch.
func pathsIn(text string) (paths []string) {
	add := func(p string) {
		if rest, ok := strings.CutPrefix(p, "file://"); ok {
			p = rest
		}
		if p != "" && len(p) < longestPath && !strings.HasPrefix(p, "-") && !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	add(text)
	if strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && len(text) > 2 {
		add(text[2:])
	}
	for _, piece := range notInPaths().Split(text, maxPieces) {
		add(piece)
	}
	return paths
}

// maxPieces is how many pieces of one argument are taken for paths.
const maxPieces = 200

// netPrograms take a host as an argument, not only a URL.
var netPrograms = []string{"aria2c", "curl", "dig", "ftp", "host", "http", "https", "lynx", "nc", "ncat", "nslookup", "ping", "scp", "sftp", "socat", "ssh",
	"telnet", "tftp", "w3m", "wget", "xh"}

// guessHosts adds the hosts that a word may name.
func (s *shellAnalyzer) guessHosts(name string, w word) {
	if w.vague || w.splits {
		if slices.Contains(netPrograms, name) {
			s.needs = append(s.needs, need{kind: network, text: w.text, hosts: []string{"*"}, guess: true})
		}
		return
	}
	for _, host := range hostsIn(w.text, slices.Contains(netPrograms, name)) {
		s.needs = append(s.needs, need{kind: network, text: host[0], hosts: host, guess: true})
	}
}

// urlText matches a URL within other text.
var urlText = compileLater(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>|;()]+`)

// hostsIn lists the hosts that a text names in URLs, each with the forms in which a
// rule may name it. bare also takes a text without a scheme for an address.
func hostsIn(text string, bare bool) (hosts [][]string) {
	found := urlText().FindAllString(text, -1)
	if len(found) == 0 && bare && text != "" && !strings.HasPrefix(text, "-") {
		found = []string{"http://" + text}
	}
	for _, f := range found {
		u, err := url.Parse(f)
		if err != nil || u.Hostname() == "" {
			continue
		}
		plain := url.URL{Scheme: strings.ToLower(u.Scheme), Host: u.Host, Path: path.Clean("/" + u.Path), RawQuery: u.RawQuery}
		hosts = append(hosts, slices.Compact([]string{u.Hostname(), u.Host, plain.String()}))
	}
	return hosts
}
