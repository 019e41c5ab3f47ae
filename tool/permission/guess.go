package permission

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

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
	name := words[0].text
	args := words[1:]
	if slices.Contains(copiers, name) {
		s.addCopySources(args)
	}
	how := names
	known := slices.Contains(recursivePrograms, name)
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
	text := w.text
	if m := remoteFile().FindStringSubmatch(text); m != nil && slices.Contains(remotePrograms, name) && !strings.Contains(text, "://") {
		text = "ssh://" + m[1]
	}
	for _, host := range hostsIn(text, slices.Contains(netPrograms, name)) {
		s.needs = append(s.needs, need{kind: network, text: host[0], hosts: host, guess: true})
	}
}

// urlText matches a URL within other text.
var urlText = compileLater(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>|;()]+`)

// remotePrograms are programs for which HOST:PATH and USER@HOST:PATH are files on another machine.
var remotePrograms = []string{"git", "rsync", "scp", "sftp"}

// remoteFile matches such a file: no slash comes before the colon. A name of one letter is a drive of Windows.
var remoteFile = compileLater(`^(?:[^\s/:@-][^\s/:@]*@)?(\[[0-9A-Fa-f:.]+\]|[^\s/:@-][^\s/:@]+):`)

// localGit are commands of git that take messages, and reach no host.
var localGit = []string{"commit", "merge", "notes", "stash", "tag"}

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
