package permission

import (
	"slices"
	"strings"
)

// analyzeCommand looks at a simple command: the assignments before it, and its words, of
// which there is at least one.
// A command becomes several needs: one for itself, one for each file that it reads or writes as far
// as its words say, and guesses for what it may touch if that is unknown. Rules about files thereby
// count for commands, too.
func (s *shellAnalyzer) analyzeCommand(env, words []word) {
	if !words[0].isPlain() {
		s.addCommand(opaqueNeed(env, words, "is a command that is known only when it runs"))
		s.addGuesses(env, words)
		return
	}
	name := words[0].text
	surroundings := !harmlessEnv(env, name)
	if surroundings {
		n := commandNeed(env, words, Ask, "changes the surroundings of the command")
		n.opaque = slices.ContainsFunc(env, changesProgram)
		n.dirs, n.content = s.contentOf(words)
		n.risk, n.stdin = s.riskOf(words)
		s.addCommand(n)
		s.lost = s.lost || n.opaque && (name == "cd" || name == "pushd")
	}
	switch {
	case name == "cd" || name == "pushd":
		s.changeDirectory(words)
		return
	case s.analyzeWrapped(words):
		return
	}
	verdict, why := s.judgeCommand(words)
	if s.functions[name] && !slices.Contains(special, name) {
		verdict = Allow
		why = "" // what it does was looked at where it is declared
	}
	n := commandNeed(env, words, verdict, why)
	n.dirs, n.content = s.contentOf(words)
	n.risk, n.stdin = s.riskOf(words)
	n.detail = s.describeRemoved(words)
	n.opaque = verdict == Ask && s.hidesCode(words)
	n.runner = slices.Contains(runners, name)
	if s.functions[name] {
		s.protectPlaces(&n) // the function may do with its arguments what its own text does not say
	}
	if !surroundings {
		s.addCommand(n)
	} else if n.opaque {
		s.needs[len(s.needs)-1].opaque = true
	}
	if name == "popd" || name == "." || name == "source" {
		s.lost = true
	}
	s.addReads(words, verdict == Ask)
	for _, f := range s.writtenFiles(words) {
		s.addAccess(access{kind: writing, word: f, reach: contents})
	}
	if _, reads := readers[name]; verdict == Ask && (!reads || strings.HasPrefix(why, "does more") || strings.HasPrefix(why, "writes a file")) {
		s.addGuesses(env, words)
	} else if verdict == Ask && name == "git" && s.watched && !slices.Contains(localGit, words[min(1, len(words)-1)].text) {
		for _, a := range words[1:] {
			s.guessHosts(name, a) // what it clones, fetches or pushes to
		}
	}
}

// changesProgram reports whether an assignment changes which program runs, or what it does.
// Such an assignment makes a command that only reads run something else, so its need is opaque: any
// rule that denies may be about it.
func changesProgram(e word) bool {
	name, _, _ := strings.Cut(e.text, "=")
	for _, prefix := range []string{"LD_", "DYLD_", "GIT_", "PYTHON", "PERL", "RUBY", "NODE_", "BASH_", "npm_config_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, "_OPTIONS") || strings.HasSuffix(name, "_OPTS") || strings.HasSuffix(name, "_CONFIG_PATH") ||
		slices.Contains([]string{"PATH", "ENV", "IFS", "HOME", "PWD", "OLDPWD", "CDPATH", "SHELLOPTS", "BASHOPTS", "PS4", "SHELL", "EDITOR", "PAGER", "LESSOPEN", "TAR_OPTIONS", "MAKEFLAGS"}, name)
}

// special are built-in commands that some shells prefer to a function of the same name.
var special = []string{".", "exec", "eval", "export", "readonly", "return", "set", "shift", "source", "times", "trap", "unset"}

// harmlessEnv reports whether assignments before a command make no difference to
// what it may do.
// Languages and colours change only what a command prints. A value with a slash may be a file with
// translations, which some programs read.
func harmlessEnv(env []word, name string) bool {
	for _, e := range env {
		variable, value, _ := strings.Cut(e.text, "=")
		switch {
		case variable == "IFS" && name == "read":
		case !e.isPlain() || strings.ContainsAny(value, "/\\"):
			return false
		case variable == "LANG" || strings.HasPrefix(variable, "LC_") || variable == "NO_COLOR" || variable == "COLUMNS":
		default:
			return false
		}
	}
	return true
}

// changeDirectory changes the directory of the commands that follow. If the directory is unknown, it adds a need that
// asks. The old directory stays possible, because cd may fail. Inside a loop or a function the change may happen any
// number of times, so there it is unknown.
func (s *shellAnalyzer) changeDirectory(words []word) {
	args := words[1:]
	if len(args) == 2 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) != 1 || !args[0].isPlain() || strings.HasPrefix(args[0].text, "-") || s.repeats > 0 || s.declares || len(s.dirs) >= maxDirs {
		s.addCommand(commandNeed(nil, words, Ask, "changes to a directory that is known only when it runs"))
		s.lost = true
		return
	}
	s.addCommand(commandNeed(nil, words, Allow, ""))
	s.addFileAccess(reading, args[0])
	for _, dir := range slices.Clone(s.dirs) {
		all, err := possiblePaths(dir, args[0].text)
		if err != nil {
			continue // it asks already
		}
		for _, at := range all {
			if !slices.Contains(s.dirs, at) {
				s.dirs = append(s.dirs, at)
			}
		}
	}
}
