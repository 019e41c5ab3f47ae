package flow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"raddle.dev/agent"
	"raddle.dev/flow/check"
	"raddle.dev/graph"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
)

// projectFile is the file with instructions for agents that work on a project.
const projectFile = "AGENTS.md"

// projectFiles are projectFile and the names that count where it is missing, in their order.
var projectFiles = []string{projectFile, "CLAUDE.md", "GEMINI.md"}

// longestProject is how many bytes of such a file an agent gets.
const longestProject = 64 << 10

// mostProjectDirs is how many directories may have such a file: the workspace and those above it.
const mostProjectDirs = 16

// ProjectFinding is the code of a finding about the instructions of the project. A run says the same when it reads
// them.
const ProjectFinding = "project-instructions"

// projectInstructions returns the instructions of the project, if the agent's file asks for them: those of the
// repository's root first, those of the workspace last; "" if there are none. The workspace may be anyone's, so a file
// that cannot be read, or that leads out of its directory, is left out: then left says why.
func projectInstructions(a *Agent) (text, left string) {
	if a.Config == nil || !a.Config.Prompting.Project || a.host.Workspace == "" {
		return "", ""
	}
	var texts, faults []string
	for _, dir := range projectDirs(a.host.Workspace) {
		up, err := filepath.Rel(a.host.Workspace, dir)
		if err != nil {
			continue
		}
		text, err := readProjectFile(dir, filepath.ToSlash(up))
		if err != nil {
			faults = append(faults, err.Error())
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	if len(faults) > 0 {
		left = "the instructions of the project are left out: " + strings.Join(faults, "; ")
	}
	return strings.Join(texts, "\n\n"), left
}

// projectDirs returns the directories from the root of the repository that has the workspace down to the workspace;
// only the workspace if it is in no repository, or if a directory on the way belongs to another user, who could have put
// a repository there.
func projectDirs(workspace string) []string {
	dirs := []string{workspace}
	for dir := workspace; isOwn(dir) && len(dirs) <= mostProjectDirs; {
		if check.FileExists(filepath.Join(dir, ".git")) {
			return dirs
		}
		above := filepath.Dir(dir)
		if above == dir {
			break
		}
		dir = above
		dirs = append([]string{dir}, dirs...)
	}
	return []string{workspace}
}

// readProjectFile returns the file with instructions in a directory with its heading; "" if there is none. up leads
// from the workspace to the directory, "." for the workspace itself.
func readProjectFile(dir, up string) (string, error) {
	for _, name := range projectFiles {
		f, err := plainfile.OpenBeneath(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }() // only reads
		return readInstructions(f, dir, name, path.Join(up, name))
	}
	return "", nil
}

// readInstructions returns the text of a file with instructions with its heading, in which it is called shown.
func readInstructions(f *os.File, workspace, name, shown string) (string, error) {
	place := filepath.Join(workspace, name)
	if target, err := filepath.Rel(workspace, f.Name()); err != nil || isHidden(target) {
		return "", fmt.Errorf("%s leads to the hidden file %s: put the instructions into a file of their own", place, target)
	}
	text, err := io.ReadAll(io.LimitReader(f, longestProject+1))
	if err != nil {
		return "", err
	}
	note := ""
	if len(text) > longestProject {
		text = text[:longestProject]
		for len(text) > 0 && !utf8.RuneStart(text[len(text)-1]) {
			text = text[:len(text)-1]
		}
		text = text[:max(len(text)-1, 0)]
		note = fmt.Sprintf("\n[the rest of %s is left out: it has more than %d bytes]", shown, longestProject)
	}
	if !utf8.Valid(text) {
		return "", fmt.Errorf("%s is not UTF-8 text: save it as UTF-8", place)
	}
	return "## Instructions of this project (" + shown + ")\n" + string(text) + note, nil
}

// isHidden reports whether a link leads to a file that programs keep for themselves, such as .env, or to one of git.
func isHidden(path string) bool {
	return strings.HasPrefix(filepath.Base(path), ".") || slices.Contains(strings.Split(filepath.ToSlash(path), "/"), ".git")
}

// projectFindings reports instructions of the project that a run would leave out.
func projectFindings(a *Agent) []strictyaml.Finding {
	_, left := projectInstructions(a)
	if left == "" {
		return nil
	}
	return []strictyaml.Finding{{Severity: strictyaml.SeverityWarning, Class: strictyaml.ClassAdvice, Code: ProjectFinding, Message: left, Pos: a.Config.Source.FieldPosition("inject_project_instructions")}}
}

// loadProject is projectInstructions for a run, which says what is left out.
func loadProject(ctx context.Context, a *Agent) string {
	text, left := projectInstructions(a)
	if left != "" {
		graph.Emit(ctx, agent.Warning{Text: left})
	}
	return text
}
