package flow

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// projectFile is the file with instructions for agents that work on a project.
const projectFile = "AGENTS.md"

// longestProject is how many bytes of that file an agent gets.
const longestProject = 64 << 10

// projectInstructions returns the instructions of the project in the workspace, if the agent's file asks for them; "" if there are none.
func projectInstructions(a *Agent) (string, error) {
	if a.Config == nil || !a.Config.Prompting.Project || a.host.Workspace == "" {
		return "", nil
	}
	path := filepath.Join(a.host.Workspace, projectFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("the instructions of the project: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, longestProject+1))
	if err != nil {
		return "", fmt.Errorf("the instructions of the project: %w", err)
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
		return "", fmt.Errorf("%s is not UTF-8 text", path)
	}
	return "## Instructions of this project (" + projectFile + ")\n" + string(text) + note, nil
}
