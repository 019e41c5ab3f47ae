package permission

import (
	"path/filepath"
	"slices"
	"strings"
)

// coversWords reports whether the words of a pattern allow a command.
// A star matches one word, and as the last word of the pattern any number of words, none included.
// A word that may become several words, or names of files, is never allowed by a pattern that names
// words.
func coversWords(pattern []string, words []word) bool {
	for i, p := range pattern {
		if p == "*" && i == len(pattern)-1 {
			return true
		}
		if i >= len(words) {
			return false
		}
		w := words[i]
		if w.splits || w.glob != "" || w.vague && p != "*" || !w.vague && !matchesWildcard(p, w.text) {
			return false
		}
	}
	return len(words) == len(pattern)
}

// forbidsCommand returns how far a rule that denies or asks matches a command: as it is written,
// with the name of its program without a path, with other flags, with its assignments, and inside
// the arguments of a program that runs others.
func (m matcher) forbidsCommand(r Rule, n need) matchLevel {
	if r.broken || len(n.words) == 0 {
		return maybe
	}
	best := forbidsWords(r.words, n.words)
	if n.runner {
		best = max(best, forbidsRunner(r.words, n.words[1:]))
	}
	if first := n.words[0]; first.isPlain() {
		base := append([]word{literalWord(filepath.Base(first.text))}, n.words[1:]...)
		best = max(best, forbidsWords(r.words, base), forbidsLoosely(r.words, base))
	}
	if len(n.env) > 0 {
		best = max(best, forbidsWords(r.words, append(slices.Clone(n.env), n.words...)))
	}
	return best
}

// forbidsRunner reports whether a command that the rule denies may be among the arguments of
// another one, as several words or in one.
// The arguments are split at the characters that end a command in a shell, and the command may
// begin at any piece. Such a match is never certain.
func forbidsRunner(pattern []string, args []word) matchLevel {
	var pieces []word
	for _, a := range args {
		if !a.isPlain() {
			pieces = append(pieces, a)
			continue
		}
		for _, piece := range strings.FieldsFunc(a.text, func(c rune) bool { return strings.ContainsRune(" \t\n;&|()`'\"", c) }) {
			pieces = append(pieces, literalWord(piece))
		}
	}
	for i, first := range pieces {
		rest := slices.Clone(pieces[i:])
		if first.isPlain() {
			rest[0] = literalWord(filepath.Base(first.text))
		}
		if forbidsWords(pattern, rest) != no || len(rest) > len(pattern) && forbidsWords(pattern, rest[:len(pattern)]) != no {
			return maybe
		}
	}
	return no
}

// forbidsLoosely reports whether a command differs only in its flags from what the rule denies: for
// a rule about "git push *" also "git -C dir push", for "rm -rf *" also "rm -f -r".
// The flags of the pattern must be among those of the command, in any order and combination. Its
// other words must follow in order, with flags and their values between them. Such a match is never
// certain.
func forbidsLoosely(pattern []string, words []word) matchLevel {
	if len(pattern) < 2 || !matchesWildcard(pattern[0], words[0].text) {
		return no
	}
	// The letters of all short flags of the command, wherever they are.
	letters := ""
	for _, w := range words[1:] {
		if shortFlags().MatchString(w.text) {
			letters += w.text[1:]
		}
	}
	at := 1
	skip := false
	for i, p := range pattern[1:] {
		switch {
		case p == "*" && i == len(pattern)-2:
			return maybe
		case shortFlags().MatchString(p):
			if strings.Trim(p[1:], letters) != "" {
				return no
			}
			continue
		}
		for ; ; at++ {
			if at >= len(words) {
				return no
			}
			if w := words[at]; !w.isPlain() || matchesWildcard(p, w.text) {
				at++
				break
			}
			switch flag := strings.HasPrefix(words[at].text, "-"); {
			case flag:
				skip = true
			case skip:
				skip = false // it may be the value of the flag
			default:
				return no
			}
		}
	}
	for ; at < len(words); at++ {
		if !strings.HasPrefix(words[at].text, "-") {
			return no
		}
	}
	return maybe
}

// shortFlags are flags of one letter, or several in one word.
var shortFlags = compileLater(`^-[A-Za-z]+$`)

// forbidsWords returns how far the words of a pattern match a command. Unlike coversWords it also
// matches where a word is not known: then the result is maybe.
func forbidsWords(pattern []string, words []word) matchLevel {
	result := sure
	for i, p := range pattern {
		if p == "*" && i == len(pattern)-1 {
			return result
		}
		if i >= len(words) {
			return no
		}
		switch w := words[i]; {
		case w.splits || w.glob != "":
			return maybe
		case w.vague:
			if p != "*" {
				result = maybe
			}
		case !matchesWildcard(p, w.text):
			return no
		}
	}
	if len(words) > len(pattern) {
		for _, w := range words[len(pattern):] {
			if !w.splits {
				return no
			}
		}
		return maybe
	}
	return result
}
