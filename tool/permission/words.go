package permission

import (
	"slices"
	"strings"
)

// firstWords are programs of which a person can allow everything that begins with the same first words, with the
// subcommands for which that makes sense; none: the program itself. Programs that run any command that they are given
// are not among them.
var firstWords = map[string][]string{
	"bundle":   {"install", "update"},
	"cargo":    {"add", "bench", "build", "check", "clippy", "doc", "fetch", "fmt", "test", "update"},
	"composer": {"install", "require", "update"},
	"docker":   {"build", "images", "inspect", "logs", "ps", "pull", "push", "stop"},
	"dotnet":   {"build", "restore", "test"},
	"gh":       {"issue", "pr", "release", "repo", "run", "workflow"},
	"git":      {"add", "checkout", "cherry-pick", "commit", "fetch", "merge", "pull", "push", "rebase", "restore", "stash", "switch", "tag"},
	"glab":     {"ci", "issue", "mr", "release"},
	"go":       {"build", "get", "install", "mod", "test", "vet", "work"},
	"helm":     {"list", "status", "template"},
	"kubectl":  {"describe", "get", "logs"},
	"mix":      {"compile", "deps.get", "test"},
	"npm":      {"ci", "install", "run", "test"},
	"pip":      {"download", "install"},
	"pip3":     {"download", "install"},
	"pnpm":     {"add", "install", "run", "test"},
	"podman":   {"build", "images", "inspect", "logs", "ps", "pull", "push", "stop"},
	"poetry":   {"add", "install", "lock", "update"},
	"uv":       {"add", "lock", "pip", "sync"},
	"yarn":     {"add", "install", "run", "test"},

	"black": nil, "ctest": nil, "eslint": nil, "gradle": nil, "jest": nil, "make": nil, "mvn": nil, "mypy": nil, "ninja": nil, "prettier": nil,
	"pytest": nil, "rake": nil, "ruff": nil, "tox": nil, "tsc": nil, "vitest": nil,
}

// grantWords returns a rule that allows everything that begins with the same first words as a command, bound to the
// same content as the narrowest rule. ok is false if there are no such words: because of what the words are, of a
// protected place, or of variables before them.
func (m matcher) grantWords(n need) (rule string, ok bool) {
	if n.kind != command || len(n.words) == 0 || len(n.env) > 0 || len(n.protected) > 0 || n.risk != "" || n.runner || n.stdin {
		return "", false
	}
	begin := n.words[:1]
	switch subs, known := firstWords[begin[0].text]; {
	case !known:
		return "", false
	case len(subs) > 0 && (len(n.words) < 2 || !slices.Contains(subs, n.words[1].text)):
		return "", false
	case len(subs) > 0:
		begin = n.words[:2]
	}
	if slices.ContainsFunc(begin, func(w word) bool { return !w.isPlain() }) {
		return "", false
	}
	return bindRule(m.tool+"("+joinWords(begin)+wordsEnd+")", n.content), true
}

// isByWords reports whether a rule has the form of those that grantWords gives.
func isByWords(r Rule) bool {
	begin, _, ok := strings.Cut(r.pattern, " ")
	_, known := firstWords[begin]
	return ok && known && strings.HasSuffix(r.pattern, wordsEnd)
}

// wordsEnd is the end of the pattern of a rule by words.
const wordsEnd = " *"

// DescribeWords returns what a rule that [Decision.Words] has allows, as a person writes it: "git push …"; "" for
// another rule.
func DescribeWords(rule string) string {
	r, err := ParseRule(rule)
	if err != nil || !isByWords(r) {
		return ""
	}
	return strings.TrimSuffix(r.pattern, wordsEnd) + " …"
}
