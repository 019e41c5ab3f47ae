package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// gitReads are the commands of git that only read, each with what must be true
// of its arguments; nil: nothing.
var gitReads = map[string]func(args []string) bool{
	"status": nil, "log": nil, "diff": nil, "show": nil, "rev-parse": nil, "describe": nil, "shortlog": nil, "blame": nil,
	"ls-files": nil, "ls-tree": nil, "merge-base": nil, "rev-list": nil, "name-rev": nil, "grep": nil, "count-objects": nil,
	"cat-file": nil, "version": nil, "whatchanged": nil,
	"branch": onlyFlags("-a", "-r", "-v", "-vv", "--all", "--list", "--remotes", "--show-current", "--verbose"),
	"tag":    onlyFlags("-l", "--list"),
	"remote": onlyFlags("-v", "--verbose"),
	"stash":  beginsWith("list"),
	"reflog": onlyFlags("show"),
	"config": listsOwnConfig,
}

// gitActs are flags with which those commands run programs or write files.
// Abbreviations of them count as well, because git accepts them.
var gitActs = []string{"output", "ext-diff", "textconv", "open-files-in-pager", "show-signature", "filters", "git-dir", "work-tree",
	"exec-path", "config-env", "paginate", "no-index", "parseopt"}

// onlyFlags returns a check that accepts only these arguments.
func onlyFlags(known ...string) func([]string) bool {
	return func(args []string) bool {
		return !slices.ContainsFunc(args, func(a string) bool { return !slices.Contains(known, a) })
	}
}

// beginsWith returns a check that accepts arguments of which the first is one of these.
func beginsWith(known ...string) func([]string) bool {
	return func(args []string) bool { return len(args) > 0 && slices.Contains(known, args[0]) }
}

// gitCheck returns the reason why a command of git does more than read; "": it only reads. Before
// the command it accepts only flags that choose the directory or no pager: the flag -c can name
// programs to run.
func gitCheck(args []word) string {
	if !allPlain(args) {
		return unknownArgument
	}
	all := make([]string, len(args))
	for i, a := range args {
		all[i] = a.text
	}
	for len(all) > 0 && strings.HasPrefix(all[0], "-") {
		switch {
		case all[0] == "--no-pager" || all[0] == "-P":
			all = all[1:]
		case all[0] == "-C" && len(all) > 1:
			all = all[2:]
		default:
			return "does more than read with " + all[0]
		}
	}
	if len(all) == 0 {
		return ""
	}
	fits, ok := gitReads[all[0]]
	if !ok || fits != nil && !fits(all[1:]) {
		return "is a command of git that is not known to read only"
	}
	r := readOnlyRule{flags: gitActs, letters: "O"}
	for _, a := range all[1:] {
		if a == "--" {
			break
		}
		if strings.HasPrefix(a, "-") && len(a) > 1 && r.forbidsFlag(a) {
			return "does more than read with " + a
		}
	}
	return ""
}

// gitNames are commands of git that do not reveal the contents of files, unless a flag asks for a
// patch.
var gitNames = []string{"add", "bisect", "branch", "cherry-pick", "check-ignore", "checkout", "clean", "clone", "commit", "config", "count-objects", "describe", "fetch",
	"for-each-ref", "fsck", "gc", "help", "init", "log", "ls-files", "ls-remote", "ls-tree", "merge", "merge-base", "mv", "name-rev", "notes", "prune", "pull",
	"push", "rebase", "reflog", "remote", "reset", "restore", "rev-list", "rev-parse", "revert", "rm", "shortlog", "show-ref", "status", "submodule", "switch",
	"symbolic-ref", "tag", "update-index", "version", "worktree"}

// gitPlain are flags with which git log still reveals no contents; others may ask for a patch.
var gitPlain = compileLater(`^(-[0-9]+|-[aginvzE]+[0-9]*|--(abbrev|abbrev-commit|after|all|author|before|branches|committer|count|date|decorate|diff-filter|` +
	`first-parent|follow|format|graph|grep|max-count|merges|name-only|name-status|no-abbrev|no-color|no-decorate|no-merges|numstat|oneline|pretty|reflog|relative-date|remotes|` +
	`reverse|shortstat|since|skip|source|stat|summary|tags|topo-order|date-order|until)(=.*)?)$`)

// gitPatches are other commands that show a patch with -p or -v.
var gitPatches = []string{"add", "checkout", "commit", "reset", "restore", "stash", "status"}

// gitWritesFiles are commands of git that write files of the working tree from the contents of the
// repository.
var gitWritesFiles = []string{"am", "apply", "bisect", "checkout", "cherry-pick", "clean", "merge", "mv", "pull", "rebase", "reset", "restore", "revert", "rm", "stash", "submodule", "switch", "worktree"}

// gitAccesses adds what a command of git reads. The contents that it reveals may come from anywhere
// in the repository, unless files are named after --.
// A command that changes the working tree may write any file of the repository. It is a guess: only
// rules that deny or ask use it, because the command itself asks already.
func (s *shellAnalyzer) gitAccesses(args []word, asked bool) {
	named, _ := readOnlyRule{}.fileArguments(args)
	for _, f := range named {
		s.addAccess(access{kind: reading, word: f, asked: asked})
		// REVISION:FILE names a file. What begins with // after the colon is an address.
		if _, file, ok := strings.Cut(f.text, ":"); ok && f.isPlain() && file != "" && !strings.HasPrefix(file, "//") {
			s.addAccess(access{kind: reading, word: literalWord(file), asked: asked})
		}
	}
	dirs, sub, rest, known := s.gitCommand(args)
	if !known {
		s.needs = append(s.needs, need{kind: reading, text: "git", guess: true})
		return
	}
	if sub == "" {
		return
	}
	if sub == "config" {
		for _, dir := range dirs {
			at := filepath.Join(repositoryOf(dir), ".git", "config")
			s.addPathNeed(access{kind: reading, word: literalWord(at), asked: asked}, dir, at)
		}
	}
	reveals := revealsContents(sub, rest)
	var files []word
	if i := slices.IndexFunc(rest, func(a word) bool { return a.text == "--" }); i >= 0 {
		files = rest[i+1:]
	} else if sub == "add" {
		files = operandsOf(rest)
		reveals = true
	}
	if slices.ContainsFunc(files, func(f word) bool {
		return !f.isPlain() || strings.HasPrefix(f.text, ":") || strings.ContainsAny(f.text, "*?[")
	}) {
		files = nil
	}
	for _, dir := range dirs {
		places := []string{}
		for _, f := range files {
			places = append(places, joinDir(dir, f.text))
		}
		if len(files) == 0 {
			places = []string{repositoryOf(dir)}
		}
		for _, place := range places {
			if reveals {
				s.addPathNeed(access{kind: reading, word: literalWord(place), reach: contents}, dir, place)
			}
			if slices.Contains(gitWritesFiles, sub) {
				s.addPathNeed(access{kind: writing, word: literalWord(place), reach: contents, guess: true}, dir, place)
			}
		}
	}
}

// revealsContents reports whether a command of git may reveal contents of files.
// A command that is not known to reveal only names counts as one that reveals contents.
func revealsContents(sub string, rest []word) bool {
	switch {
	case !slices.Contains(gitNames, sub):
		return true
	case sub == "log" || sub == "reflog":
		return slices.ContainsFunc(rest, func(a word) bool {
			return a.vague || strings.HasPrefix(a.text, "-") && a.text != "--" && !gitPlain().MatchString(a.text)
		})
	}
	return slices.Contains(gitPatches, sub) && hasFlag(rest, "pv", "patch", "verbose")
}

// gitCommand finds the command of git among the arguments, with the directories that it may work
// in. It reports false if a flag before it may change what it reads.
func (s *shellAnalyzer) gitCommand(args []word) (dirs []string, sub string, rest []word, known bool) {
	dirs = slices.Clone(s.dirs)
	for i := 0; i < len(args); i++ {
		t := args[i].text
		switch {
		case !args[i].isPlain():
			return nil, "", nil, false
		case t == "-C" && i+1 < len(args):
			if i++; !args[i].isPlain() {
				return nil, "", nil, false
			}
			var next []string
			for _, dir := range dirs {
				all, err := possiblePaths(dir, args[i].text)
				if err != nil {
					return nil, "", nil, false
				}
				next = append(next, all...)
			}
			dirs = next
		case slices.Contains([]string{"--no-pager", "-P", "-p", "--paginate", "--version", "--help", "--bare", "--literal-pathspecs", "--no-optional-locks"}, t):
		case strings.HasPrefix(t, "-"):
			return nil, "", nil, false
		default:
			return dirs, t, args[i+1:], true
		}
	}
	return dirs, "", nil, true
}

// repositoryOf returns the directory of the repository that a directory belongs to, or the
// directory itself.
func repositoryOf(dir string) string {
	for at := dir; ; {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		up := filepath.Dir(at)
		if up == at {
			return dir
		}
		at = up
	}
}

// gitWrites lists files that commands of git write and that git uses later: configuration and
// hooks.
// A later command of git runs what a configuration or hook names.
func gitWrites(args []word) []word {
	sub, rest, dir := gitSubcommand(args)
	texts := make([]string, len(rest))
	for i, a := range rest {
		texts[i] = a.text
	}
	switch sub {
	case "config":
		if readsConfig(texts) {
			return nil
		}
	case "init", "clone":
		if !slices.ContainsFunc(texts, func(a string) bool {
			return strings.HasPrefix(a, "--template") || strings.HasPrefix(a, "--config") || strings.HasPrefix(a, "-c")
		}) {
			return nil
		}
	default:
		return nil
	}
	return []word{literalWord(filepath.Join(dir, ".git", "config"))}
}

// gitSubcommand returns the command of git among the arguments, what follows it, and the directory that flags before it
// name. It skips the values of flags. With a flag that it does not know, or an argument that is known only when it
// runs, config counts as the command if it is among the arguments at all.
func gitSubcommand(args []word) (sub string, rest []word, dir string) {
	for i := 0; i < len(args); i++ {
		t := args[i].text
		name, _, joined := strings.Cut(t, "=")
		switch {
		case !args[i].isPlain():
		case t == "-C" && i+1 < len(args):
			i++
			dir = joinDir(dir, args[i].text)
			continue
		case slices.Contains([]string{"-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix", "--attr-source", "--list-cmds"}, name):
			if !joined {
				i++
			}
			continue
		case slices.Contains([]string{"--no-pager", "-P", "-p", "--paginate", "--bare", "--no-replace-objects", "--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs",
			"--icase-pathspecs", "--no-optional-locks", "--no-lazy-fetch", "--no-advice", "--exec-path", "-h", "--help", "-v", "--version"}, name):
			continue
		case !strings.HasPrefix(t, "-"):
			return t, args[i+1:], dir
		}
		if at := slices.IndexFunc(args, func(a word) bool { return a.text == "config" }); at >= 0 {
			return "config", args[at+1:], dir
		}
		return "", nil, dir
	}
	return "", nil, dir
}

// configReads are flags with which git config only reads, and configPlaces those that choose what it reads.
var (
	configReads  = []string{"--get", "--get-all", "--get-regexp", "--get-urlmatch", "--get-color", "--get-colorbool", "--list", "-l"}
	configPlaces = []string{"--local", "--worktree"}
	configForms  = []string{"--name-only", "--show-origin", "--show-scope", "--null", "-z", "--bool", "--int", "--bool-or-int", "--path", "--expiry-date", "--no-includes", "--fixed-value"}
)

// readsConfig reports whether git config only reads with these arguments.
func readsConfig(args []string) bool {
	operands := 0
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		switch {
		case slices.Contains(configReads, name):
			return !slices.ContainsFunc(args, changesConfig)
		case !strings.HasPrefix(a, "-"):
			operands++
		}
	}
	return operands == 1 && !slices.ContainsFunc(args, changesConfig)
}

// changesConfig reports whether an argument of git config is a flag that changes something, or may be an abbreviation
// of one.
func changesConfig(a string) bool {
	name, _, _ := strings.Cut(a, "=")
	if name == "-e" {
		return true
	}
	return len(name) > 2 && slices.ContainsFunc([]string{"--add", "--edit", "--unset", "--unset-all", "--replace-all", "--rename-section", "--remove-section"},
		func(flag string) bool { return strings.HasPrefix(flag, name) })
}

// listsOwnConfig reports whether git config only reads the configuration of the repository itself. Without --local it
// also reads that of the user, where people keep tokens.
func listsOwnConfig(args []string) bool {
	has := func(some []string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(some, a) })
	}
	if !has(configReads) || !has(configPlaces) {
		return false
	}
	return !slices.ContainsFunc(args, func(a string) bool {
		name, _, _ := strings.Cut(a, "=")
		return strings.HasPrefix(a, "-") && !slices.Contains(slices.Concat(configReads, configPlaces, configForms, []string{"--type", "--default"}), name)
	})
}
