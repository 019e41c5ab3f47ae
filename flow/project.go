package flow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
)

// projectFile is the file with instructions for agents that work on a project.
const projectFile = "AGENTS.md"

// longestProject is how many bytes of that file an agent gets.
const longestProject = 64 << 10

// ProjectFinding is the code of a finding about the instructions of the project. A run says the same when it reads
// them.
const ProjectFinding = "project-instructions"

// projectInstructions returns the instructions of the project in the workspace, if the agent's file asks for them; ""
// if there are none. The workspace may be anyone's, so a file that cannot be read, or that leads out of it, is left
// out: then left says why.
func projectInstructions(a *Agent) (text, left string) {
	if a.Config == nil || !a.Config.Prompting.Project || a.host.Workspace == "" {
		return "", ""
	}
	text, err := readProjectFile(a.host.Workspace)
	if err != nil {
		return "", fmt.Sprintf("the instructions of the project are left out: %v", err)
	}
	return text, ""
}

// readProjectFile returns the file in a workspace with its heading; "" if there is none.
func readProjectFile(workspace string) (string, error) {
	f, err := plainfile.OpenBeneath(workspace, projectFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only reads
	path := filepath.Join(workspace, projectFile)
	if target, err := filepath.Rel(workspace, f.Name()); err != nil || isHidden(target) {
		return "", fmt.Errorf("%s leads to the hidden file %s: put the instructions into a file of their own", path, target)
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
		note = fmt.Sprintf("\n[the rest of %s is left out: it has more than %d bytes]", projectFile, longestProject)
	}
	if !utf8.Valid(text) {
		return "", fmt.Errorf("%s is not UTF-8 text: save it as UTF-8", path)
	}
	return "## Instructions of this project (" + projectFile + ")\n" + string(text) + note, nil
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
