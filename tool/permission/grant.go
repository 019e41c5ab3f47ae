package permission

import (
	"path/filepath"
	"slices"
	"strings"
)

// An Answer is what a person may say to a call that asks.
type Answer string

// The answers. No may come with a reason, which the model reads.
const (
	Once   Answer = "once"   // this call, and nothing else
	Run    Answer = "run"    // what Decision.Grant says, until the run ends
	Words  Answer = "words"  // what Decision.Words says, until the run ends
	Always Answer = "always" // what Decision.Grant says, from now on
	No     Answer = "no"
)

// Answers returns the answers that make sense for a decision that asks, in the order in which to
// offer them.
func (d Decision) Answers() []Answer {
	if d.Verdict != Ask {
		return nil
	}
	list := []Answer{Once}
	if len(d.Grant) > 0 {
		list = append(list, Run)
	}
	if len(d.Words) > 0 {
		list = append(list, Words)
	}
	if len(d.Grant) > 0 && d.Lasting {
		list = append(list, Always)
	}
	return append(list, No)
}

// narrowestGrant returns the narrowest rule that allows a need, and whether there is one.
// For a command it is the command itself, word by word; for a file the file, or the directory with
// everything below it; for a host that host.
func (m matcher) narrowestGrant(n need) (rule string, ok bool) { return n.kind.row().grant(m, n) }

// grantHost returns a rule that allows one host.
func (m matcher) grantHost(n need) (rule string, ok bool) {
	who := m.tool
	if m.passed != "" {
		who = m.passed // not all that the function may call
	} else if m.shell && !n.guess {
		who = "any " + string(n.kind)
	}
	return who + "(" + n.hosts[0] + ")", !strings.ContainsAny(n.hosts[0], "*\\=") || n.hosts[0] == "*"
}

// grantFile returns a rule that allows one file, or a directory with everything below it.
func (m matcher) grantFile(n need) (rule string, ok bool) {
	if len(n.paths) != 1 {
		return "", false
	}
	who := m.tool
	if m.shell {
		who = "any " + string(n.kind)
	}
	path := m.shortPath(n.paths[0])
	if n.reach != itself && isDir(n.paths[0]) {
		path = strings.TrimSuffix(path, "/") + "/**"
	}
	return who + "(" + path + ")", true
}

// grantCall returns a rule that allows the tool. For a tool that calls others by name, the rule
// allows only the tool that the call names.
func (m matcher) grantCall() string {
	if one := m.args["tool"]; one != "" && strings.Trim(one, nameLetters) == "" {
		return m.tool + "(tool=" + one + ")"
	}
	return m.tool
}

// nameLetters are the characters of names of tools.
const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

// grantCommand returns a rule that allows one command with these words. There is none if a word is
// known only when the command runs.
func (m matcher) grantCommand(n need) (string, bool) {
	if len(n.words) == 0 || slices.ContainsFunc(n.protected, func(w protectedWord) bool { return w.index < 0 }) {
		return "", false
	}
	all := append(n.env[:len(n.env):len(n.env)], n.words...)
	for _, w := range all {
		if !w.isPlain() {
			return "", false
		}
	}
	return m.tool + "(" + joinWords(all) + ")", true
}

// shortPath returns a pattern that matches only this path.
// It is relative to the workspace if the path is inside.
func (m matcher) shortPath(path string) string {
	if path != m.area.workspace && isWithin(m.area.workspace, path, false) {
		if rel, err := filepath.Rel(m.area.workspace, path); err == nil && !strings.HasPrefix(rel, "~") {
			return escapePattern(rel)
		}
	}
	return escapePattern(path)
}
