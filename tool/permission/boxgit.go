package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/plainfile"
)

// maxGitFile is the length of the longest file of a new repository that is looked at.
const maxGitFile = 64 << 10

// isNew reports whether there is nothing at a path.
func isNew(path string) bool {
	_, err := os.Lstat(path)
	return os.IsNotExist(err)
}

// readGitFile returns what a command wrote into a file of a new repository.
func readGitFile(made string) (text string, ok bool) {
	info, err := os.Lstat(made)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxGitFile {
		return "", false
	}
	data, err := plainfile.Read(made, maxGitFile)
	return string(data), err == nil
}

// isHarmlessGitFile reports whether a new file of a repository, of the kind that git init, clone and worktree make,
// names no program and no place outside of the workspace. parts is its path in .git.
func isHarmlessGitFile(workspace string, parts []string, made string) bool {
	text, ok := readGitFile(made)
	if !ok {
		return false
	}
	name := parts[len(parts)-1]
	switch {
	case len(parts) >= 2 && parts[len(parts)-2] == "hooks":
		return strings.HasSuffix(name, ".sample") // git runs none
	case name == "config":
		return isHarmlessGitConfig(text)
	case len(parts) == 3 && parts[0] == "worktrees" && name == "commondir":
		return text == "../..\n"
	case len(parts) == 3 && parts[0] == "worktrees" && name == "gitdir":
		place := strings.TrimSuffix(text, "\n")
		return filepath.IsAbs(place) && filepath.Base(place) == ".git" && place == filepath.Clean(place) && isWithin(workspace, place, false)
	}
	return false
}

// pointsToRepository reports whether a new file .git leads to a worktree or a submodule of a repository in the
// workspace. There, what names programs is protected.
func pointsToRepository(workspace, path, made string) bool {
	text, ok := readGitFile(made)
	place, found := strings.CutPrefix(strings.TrimSuffix(text, "\n"), "gitdir: ")
	if !ok || !found || place == "" {
		return false
	}
	if !filepath.IsAbs(place) {
		place = filepath.Join(filepath.Dir(path), place)
	}
	real, err := filepath.EvalSymlinks(place)
	if err != nil || real != place || !isWithin(workspace, place, false) {
		return false
	}
	parts := strings.Split(filepath.ToSlash(place), "/")
	at := len(parts) - 1 - slices.Index(reverseParts(parts), ".git")
	if at == len(parts) {
		return false
	}
	rest := parts[at+1:]
	return len(rest) == 2 && rest[0] == "worktrees" || len(rest) > 1 && rest[0] == "modules"
}

// reverseParts returns the parts of a path from its end.
func reverseParts(parts []string) []string {
	out := slices.Clone(parts)
	slices.Reverse(out)
	return out
}

var (
	gitSection  = pattern.CompileLater(`^\[([a-z]+)(?: "([^"\\\x00-\x1f]*)")?\]$`)
	gitVariable = pattern.CompileLater(`^([a-zA-Z][a-zA-Z0-9-]*) = ([^"\\\x00-\x1f]*)$`)
	// gitAddress is an address of a repository that git reaches without a program that the address names.
	gitAddress = pattern.CompileLater(`^(?:(?:https?|ssh|git|file)://[^-]|/|[a-zA-Z0-9][a-zA-Z0-9._@-]*:(?:/[^/]|[^:/-]))`)
)

// gitPlainKeys are the settings of a new repository that name neither programs nor places, in lower case.
var gitPlainKeys = []string{
	"core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase", "core.precomposeunicode", "core.symlinks",
	"user.name", "user.email", "init.defaultbranch", "branch.*.remote", "branch.*.merge", "branch.*.rebase", "remote.*.url", "remote.*.fetch",
}

// isHarmlessGitConfig reports whether a text has only settings of git that name no programs. Whatever it does not
// understand is not harmless.
func isHarmlessGitConfig(text string) bool {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.Trim(line, " \t\n")
		if line == "" {
			continue
		}
		if m := gitSection().FindStringSubmatch(line); m != nil {
			section = m[1]
			if strings.Contains(line, `"`) {
				section += ".*"
			}
			continue
		}
		m := gitVariable().FindStringSubmatch(line)
		if m == nil {
			return false
		}
		key := section + "." + strings.ToLower(m[1])
		if !slices.Contains(gitPlainKeys, key) || key == "remote.*.url" && (!gitAddress().MatchString(m[2]) || strings.Contains(m[2], "::")) || key == "branch.*.remote" && strings.Contains(m[2], "::") {
			return false
		}
	}
	return true
}
