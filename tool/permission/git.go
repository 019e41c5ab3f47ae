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
	"stash":  begins("list"),
	"reflog": onlyFlags("show"),
	"config": begins("--get", "--list", "-l", "--get-all"),
}

// gitActs are flags with which those commands run programs or write files.
var gitActs = []string{"output", "ext-diff", "textconv", "open-files-in-pager", "show-signature", "filters", "git-dir", "work-tree",
	"exec-path", "config-env", "paginate", "no-index", "parseopt", "unset", "replace-all", "add", "edit", "rename-section", "remove-section"}

func onlyFlags(known ...string) func([]string) bool {
	return func(args []string) bool {
		return !slices.ContainsFunc(args, func(a string) bool { return !slices.Contains(known, a) })
	}
}

func begins(known ...string) func([]string) bool {
	return func(args []string) bool { return len(args) > 0 && slices.Contains(known, args[0]) }
}

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
	h := harmless{flags: gitActs, letters: "O"}
	for _, a := range all[1:] {
		if a == "--" {
			break
		}
		if strings.HasPrefix(a, "-") && len(a) > 1 && h.forbids(a) {
			return "does more than read with " + a
		}
	}
	return ""
}

// feignedRepository reports whether git might take a directory for a repository
// though nothing named .git says so: anybody who writes files can make one, with
// a configuration that names programs to run.
func (s *shell) feignedRepository(args []word) bool {
	dirs := slices.Clone(s.dirs)
	for i, a := range args {
		if a.text == "-C" && i+1 < len(args) {
			for _, dir := range s.dirs {
				all, err := places(dir, args[i+1].text)
				if err != nil {
					return true
				}
				dirs = append(dirs, all...)
			}
		}
	}
	return slices.ContainsFunc(dirs, feigned)
}

func feigned(dir string) bool {
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
