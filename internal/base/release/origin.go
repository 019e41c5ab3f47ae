package release

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
)

// An Origin is how this program came onto the machine.
type Origin struct {
	Kind    string // such as archive, deb, npm; [KindArchive] is the only one whose file raddle replaces itself
	Program string // its file, without links
	Command string // what a person runs to update it, or what to do in words; "" for an archive
}

// These are the kinds that are not named by a package.
const (
	KindArchive = "archive" // unpacked by install.sh or by hand
	KindSource  = "source"  // built by the Go tool
)

// MarkName is the file in which a package says that it has installed the program: the first line is the kind, the second
// what updates it. It lies in lib/raddle next to the directory of the program.
const MarkName = "installed-by"

// largestMark is what such a file may measure.
const largestMark = 4096

// FindOrigin finds out how the program in a file was installed. It reads files and starts nothing.
func FindOrigin(program string) (Origin, error) {
	resolved, err := filepath.EvalSymlinks(program)
	if err != nil {
		return Origin{}, err
	}
	o := Origin{Kind: KindArchive, Program: resolved}
	// A package inside of another manager's tree belongs to that manager.
	if kind, command := judgePath(filepath.ToSlash(resolved)); kind != "" {
		o.Kind = kind
		o.Command = command
		return o, nil
	}
	if kind, command, ok := readMark(resolved); ok {
		o.Kind = kind
		o.Command = command
		return o, nil
	}
	if Version == "" {
		o.Kind = KindSource
		o.Command = sourceCommand()
	}
	return o, nil
}

// judgePath knows the managers whose directories tell them. Paths are compared without case, as macOS and Windows do.
func judgePath(path string) (kind, command string) {
	path = strings.ToLower(path)
	switch {
	case strings.Contains(path, "/cellar/"):
		return "homebrew", "brew upgrade raddle"
	case strings.Contains(path, "/scoop/apps/"):
		return "scoop", "scoop update raddle"
	case strings.HasPrefix(path, "/nix/store/"):
		return "nix", "the command of Nix that installed it"
	case strings.HasPrefix(path, "/snap/"):
		return "snap", "snap refresh raddle"
	case strings.Contains(path, "/mise/installs/"):
		return "mise", "mise upgrade"
	}
	return "", ""
}

// readMark reads the mark of the package that has installed a program.
func readMark(program string) (kind, command string, ok bool) {
	text, err := plainfile.Read(filepath.Join(filepath.Dir(program), "..", "lib", "raddle", MarkName), largestMark)
	if err != nil {
		return "", "", false
	}
	kind, rest, _ := strings.Cut(string(text), "\n")
	command, _, _ = strings.Cut(rest, "\n")
	kind = strings.TrimSpace(kind)
	return kind, refineCommand(kind, filepath.ToSlash(program), strings.TrimSpace(command)), kind != ""
}

// installers are other programs that install the packages of npm and PyPI, each into a directory of its own.
var installers = []struct{ kind, part, begin, command string }{
	{"pip", "/pipx/venvs/", "pip install --upgrade ", "pipx upgrade "},
	{"pip", "/uv/tools/", "pip install --upgrade ", "uv tool upgrade "},
	{"npm", "/pnpm/", "npm install --global ", "pnpm add --global "},
	{"npm", "/.bun/", "npm install --global ", "bun add --global "},
	{"npm", "/yarn/", "npm install --global ", "yarn global add "},
}

// refineCommand returns the command of the program that installed a package, where its directory tells it.
func refineCommand(kind, program, command string) string {
	i := slices.IndexFunc(installers, func(each struct{ kind, part, begin, command string }) bool {
		return each.kind == kind && strings.Contains(program, each.part) && strings.HasPrefix(command, each.begin)
	})
	if i < 0 {
		return command
	}
	return installers[i].command + strings.TrimPrefix(command, installers[i].begin)
}

// sourceCommand returns how a program is built again that no release has.
func sourceCommand() string {
	info, ok := debug.ReadBuildInfo()
	inClone := ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
	if ok && !inClone && strings.HasPrefix(info.Main.Version, "v") {
		return "go install " + info.Main.Path + "/cmd/raddle@latest"
	}
	return "git pull, and: go install ./cmd/raddle"
}

// FindProgram returns the file of this process.
func FindProgram() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", failure.NewInvalid("on Linux, /proc must be mounted", "raddle cannot find its own file: %v", err)
	}
	if gone, is := strings.CutSuffix(program, " (deleted)"); is && runtime.GOOS == "linux" {
		return "", failure.NewUsage("start raddle again, and then: raddle update", "%s was removed or replaced after this process began", gone)
	}
	return program, nil
}
