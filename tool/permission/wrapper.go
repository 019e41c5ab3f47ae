package permission

import (
	"slices"
	"strings"
)

// A wrapper is a command that runs another one, which is then analyzed separately.
// The command itself is allowed or asked about as if it stood alone; the wrapper adds a reason only
// if it changes rights or surroundings, or if the command cannot be found among its arguments.
type wrapper struct {
	values   string   // letters of flags that take the next word as their value
	flags    string   // letters of flags that take none
	doubtful string   // letters of flags, among those above, with which the command cannot be determined
	longs    []string // long flags that it may have, with their value after =
	operands int      // operands before the command
	assigns  bool     // NAME=value may precede the command
	more     bool     // the command gets further arguments that are not known yet
	asks     bool     // it asks for every command
	empty    Verdict  // without a command
}

var wrappers = map[string]wrapper{
	"command": {}, "builtin": {}, "exec": {}, "nohup": {empty: Ask}, "setsid": {flags: "cfw", empty: Ask},
	"nice":    {values: "n", longs: []string{"--adjustment"}},
	"ionice":  {values: "cn", flags: "t", empty: Ask},
	"stdbuf":  {values: "ioe", longs: []string{"--input", "--output", "--error"}, empty: Ask},
	"timeout": {values: "ks", flags: "v", longs: []string{"--signal", "--kill-after", "--foreground", "--preserve-status"}, operands: 1, empty: Ask},
	"env":     {values: "u", flags: "i0", longs: []string{"--ignore-environment", "--unset"}, assigns: true, empty: Ask},
	"time":    {flags: "p"},
	"xargs": {values: "nPILsdE", doubtful: "I", flags: "0rtx", longs: []string{"--null", "--no-run-if-empty", "--max-args", "--max-procs", "--delimiter"},
		more: true},
	"sudo":    {values: "ugCphrtTU", flags: "AbEeHiKklnPSsVv", assigns: true, asks: true},
	"doas":    {values: "uC", flags: "Lns", asks: true},
	"strace":  {values: "eop", flags: "fqtTvy", asks: true},
	"chroot":  {operands: 1, asks: true},
	"busybox": {}, "toybox": {},
}

// shells maps the names of shells to whether they may read a text as POSIX says, which differs from
// bash for some texts.
var shells = map[string]bool{"bash": false, "sh": true, "dash": true, "ash": true}

// analyzeWrapped looks at a command that runs another one, and reports whether it is one.
// A wrapper without a command, such as "env" alone, may print something or do nothing: its entry
// says what happens then.
func (s *shellAnalyzer) analyzeWrapped(words []word) bool {
	name := words[0].text
	args := words[1:]
	switch {
	case name == "bash" || shells[name]:
		return s.analyzeShellCall(words)
	case name == "eval":
		s.analyzeEval(words)
		return true
	case name == "alias":
		s.analyzeAlias(words)
		return true
	case name == "find":
		return s.analyzeFind(words)
	case name == "watch":
		s.analyzeWatch(words)
		return true
	case (name == "command") && len(args) > 0 && args[0].isPlain() && (args[0].text == "-v" || args[0].text == "-V"):
		s.addCommand(commandNeed(nil, words, Allow, ""))
		return true
	}
	w, ok := wrappers[name]
	if !ok {
		return false
	}
	env, inner, known := w.innerCommand(args)
	switch {
	case !known:
		s.addCommand(opaqueNeed(nil, words, "runs a command that cannot be made out"))
		s.addGuesses(nil, words)
	case w.asks:
		s.addCommand(commandNeed(nil, words, Ask, "runs a command with other rights or in other surroundings"))
	}
	if len(inner) == 0 {
		if known && !w.asks {
			s.addCommand(commandNeed(nil, words, w.empty, unknownCommand))
		}
		return true
	}
	if w.more {
		inner = append(slices.Clone(inner), word{text: "...", vague: true, splits: true})
	}
	s.analyzeInner(env, inner)
	return true
}

// analyzeInner looks at a command inside another one: a shell's own commands and
// functions are not what runs there.
// For example "env ls" runs the program ls, even if the text has declared a function ls.
func (s *shellAnalyzer) analyzeInner(env, inner []word) {
	functions := s.functions
	s.functions = nil
	s.analyzeCommand(env, inner)
	s.functions = functions
}

// innerCommand finds the command that a wrapper runs. The caller analyzes it even if it may be
// incomplete.
// known is false if a flag is not known: then the word behind it may be its value or the command.
func (w wrapper) innerCommand(args []word) (env, inner []word, known bool) {
	known = true
	operands := w.operands
	for i := 0; i < len(args); i++ {
		a := args[i]
		flag := strings.HasPrefix(a.text, "-") && len(a.text) > 1
		switch {
		case a.vague || a.splits:
			return env, args[i:], known
		case a.text == "--":
			rest := args[i+1:]
			return env, rest[min(operands, len(rest)):], known && len(rest) > 0
		case flag:
			takes, ok := w.knownFlag(a.text)
			known = known && ok
			if takes {
				i++
			}
		case w.assigns && strings.Contains(a.text, "="):
			env = append(env, a)
		case operands > 0:
			operands--
		default:
			return env, args[i:], known
		}
	}
	return env, nil, known
}

// knownFlag reports whether a flag is known, and takes the next word as its value.
// A long flag never takes the next word here: the form with = is the only one that counts as known.
func (w wrapper) knownFlag(flag string) (takes, known bool) {
	if strings.HasPrefix(flag, "--") {
		name, _, _ := strings.Cut(flag, "=")
		return false, slices.Contains(w.longs, name)
	}
	if strings.IndexByte(w.values, flag[1]) >= 0 {
		return len(flag) == 2, strings.IndexByte(w.doubtful, flag[1]) < 0
	}
	return false, strings.Trim(flag[1:], w.flags) == ""
}

// analyzeShellCall analyzes bash -c and similar commands.
// It reports false for everything but one text that is known: a script, an interactive shell, or
// flags other than c, e, l and u. The command then asks as an interpreter.
func (s *shellAnalyzer) analyzeShellCall(words []word) bool {
	args := words[1:]
	for i, a := range args {
		if !a.isPlain() || !strings.HasPrefix(a.text, "-") {
			break
		}
		letters := a.text[1:]
		if !strings.Contains(letters, "c") || strings.HasPrefix(letters, "-") {
			continue
		}
		if i > 0 || strings.Trim(letters, "celu") != "" || i+1 >= len(args) {
			break
		}
		if text := args[i+1]; text.isPlain() && !strings.Contains(text.text, "{}") {
			s.analyzeNested(text.text, shells[words[0].text])
			return true
		}
		break
	}
	return false // a script, or a text that is not known
}

// analyzeEval analyzes the text that eval runs: its arguments with spaces between them. If one of
// them is not known, everything that follows is uncertain as well, because the text may change the
// directory.
func (s *shellAnalyzer) analyzeEval(words []word) {
	args := make([]string, 0, len(words))
	for _, a := range words[1:] {
		if !a.isPlain() {
			s.addCommand(opaqueNeed(nil, words, "runs a text that is known only then"))
			s.lost = true
			return
		}
		args = append(args, a.text)
	}
	s.analyzeNested(strings.Join(args, " "), s.posix)
}

// analyzeWatch analyzes watch, which runs a text repeatedly until a person ends it.
// The text begins at the first argument that is neither a flag nor the interval.
func (s *shellAnalyzer) analyzeWatch(words []word) {
	s.addCommand(commandNeed(nil, words, Ask, "never ends by itself"))
	for i, a := range words[1:] {
		if !a.isPlain() {
			s.addCommand(opaqueNeed(nil, words, "runs a text that is known only then"))
			return
		}
		if before := words[i].text; strings.HasPrefix(a.text, "-") || before == "-n" || before == "--interval" {
			continue
		}
		rest := make([]string, 0, len(words)-i)
		for _, w := range words[i+1:] {
			rest = append(rest, w.text)
		}
		s.analyzeNested(strings.Join(rest, " "), true)
		return
	}
}

// analyzeAlias adds a need that asks, and analyzes the texts that the names would run.
func (s *shellAnalyzer) analyzeAlias(words []word) {
	s.addCommand(commandNeed(nil, words, Ask, "changes what commands mean"))
	for _, a := range words[1:] {
		if _, text, ok := strings.Cut(a.text, "="); ok && a.isPlain() {
			s.analyzeNested(text, s.posix)
		}
	}
}
