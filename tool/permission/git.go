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
	"config": beginsWith("--get", "--list", "-l", "--get-all"),
}

// gitActs are flags with which those commands run programs or write files.
// Abbreviations of them count as well, because git accepts them.
var gitActs = []string{"output", "ext-diff", "textconv", "open-files-in-pager", "show-signature", "filters", "git-dir", "work-tree",
	"exec-path", "config-env", "paginate", "no-index", "parseopt", "unset", "replace-all", "add", "edit", "rename-section", "remove-section"}

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

// mayBeBareRepository reports whether git might take a directory for a repository although it has
// nothing named .git: a person who can write files can make one, with a configuration that names
// programs to run.
func (s *shellAnalyzer) mayBeBareRepository(args []word) bool {
	dirs := slices.Clone(s.dirs)
	for i, a := range args {
		if a.text == "-C" && i+1 < len(args) {
			for _, dir := range s.dirs {
				all, err := possiblePaths(dir, args[i+1].text)
				if err != nil {
					return true
				}
				dirs = append(dirs, all...)
			}
		}
	}
	return slices.ContainsFunc(dirs, isBareRepository)
}

// isBareRepository reports whether a directory, or one above it, looks like a repository without a
// working tree: git accepts one with these directories.
func isBareRepository(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return false
		}
		if isDir(filepath.Join(dir, "objects")) || isDir(filepath.Join(dir, "refs")) {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
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
	for _, f := range (readOnlyRule{}).fileArguments(args) {
		s.addAccess(access{kind: reading, word: f, asked: asked})
		if _, file, ok := strings.Cut(f.text, ":"); ok && f.isPlain() && file != "" {
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
			for j, dir := range dirs {
				dirs[j] = joinDir(dir, args[i].text)
			}
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
	dir := ""
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		if args[0].text == "-C" && len(args) > 1 && args[1].isPlain() {
			dir = args[1].text
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return nil
	}
	rest := make([]string, len(args)-1)
	for i, a := range args[1:] {
		rest[i] = a.text
	}
	switch args[0].text {
	case "config":
		if gitReads["config"](rest) {
			return nil
		}
	case "init", "clone":
		if !slices.ContainsFunc(rest, func(a string) bool {
			return strings.HasPrefix(a, "--template") || strings.HasPrefix(a, "--config") || strings.HasPrefix(a, "-c")
		}) {
			return nil
		}
	default:
		return nil
	}
	return []word{literalWord(filepath.Join(dir, ".git", "config"))}
}
