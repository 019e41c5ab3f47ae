package permission

import (
	"slices"
	"strings"
)

// quiet are programs that print nothing of their environment, whatever their arguments are. "test" and "printf" are not
// among them: bash evaluates the index of a variable in their arguments, and quotes the value of a variable that it
// finds there in an error.
var quiet = []string{
	":", "basename", "cat", "cd", "cut", "dirname", "echo", "egrep", "false", "fgrep", "grep", "head", "ls", "nl", "pushd", "pwd", "sort", "tac", "tail", "tr", "true",
	"uniq", "wc",
}

// allowsCommands reports whether rules or answers allow the commands of a call: see [Decision.Allowed]. A call without
// commands counts. Commands that no rule allows may be in one text with a command that a rule allows, such as "cd sub
// && make test | tail", if they can show nothing of the environment: they are quiet, and nothing in the text is
// replaced by the value of a variable.
func (p *Policy) allowsCommands(m matcher, needs []need) bool {
	if !m.shell {
		return true
	}
	allowed := false
	others := false
	for _, n := range needs {
		switch {
		case n.kind != command:
		case p.findGrant(m, n) != nil || p.findAllow(m, n) != nil:
			allowed = true
		case len(n.words) == 0 || len(n.env) > 0 || !slices.Contains(quiet, n.words[0].text):
			return false
		default:
			others = true
		}
	}
	expands := strings.ContainsAny(m.command, "$`") || strings.Contains(m.command, "[[") || strings.Contains(m.command, "((")
	return allowed && !(others && expands)
}

// leavesUnasked reports whether a command of a call runs that no rule and no answer allows: see [Decision.Unasked]. A rule about a command that runs
// without one says nothing about the others; a command that needs permission and has it may do more than look, so the whole text works as if alone.
func (p *Policy) leavesUnasked(m matcher, needs []need) (unasked bool) {
	for _, n := range needs {
		switch {
		case n.kind != command:
		case n.fallback != Allow:
			return false
		case p.findGrant(m, n) == nil && p.findAllow(m, n) == nil:
			unasked = true
		}
	}
	return unasked
}
