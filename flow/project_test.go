//go:build unix

package flow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/testkit/testfile"
)

func TestProjectFileStaysInTheWorkspace(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "key")
	testfile.WriteFile(t, outside, "private words")
	refuse := func(t *testing.T, workspace string) {
		t.Helper()
		if text, err := readProjectFile(workspace, "."); text != "" || err == nil || !strings.Contains(err.Error(), projectFile) {
			t.Errorf("got %q, %v", text, err)
		}
	}
	for _, way := range testfile.WaysOut() {
		t.Run(way.Name, func(t *testing.T) {
			workspace := t.TempDir()
			way.Put(t, workspace, projectFile, outside)
			refuse(t, workspace)
		})
	}
	for _, trap := range testfile.Traps() {
		if trap.Name == "huge sparse file" {
			continue // its beginning counts
		}
		t.Run(trap.Name, func(t *testing.T) {
			workspace := t.TempDir()
			trap.Put(t, filepath.Join(workspace, projectFile))
			refuse(t, workspace)
		})
	}
	for target, ok := range map[string]bool{"CLAUDE.md": true, "docs/agents.md": true, ".github/copilot-instructions.md": true, ".env": false, ".git/config": false} {
		workspace := t.TempDir()
		testfile.WriteFile(t, filepath.Join(workspace, target), "private words")
		if err := os.Symlink(target, filepath.Join(workspace, projectFile)); err != nil {
			t.Fatal(err)
		}
		if text, err := readProjectFile(workspace, "."); strings.Contains(text, "private words") != ok || (err == nil) != ok {
			t.Errorf("a link to %s: got %q, %v", target, text, err)
		}
	}
}

// Instructions are read from the root of the repository down to the workspace, and each directory has the first name
// that it has a file for.
func TestInstructionsOfARepository(t *testing.T) {
	root := t.TempDir()
	repository := filepath.Join(root, "repository")
	workspace := filepath.Join(repository, "a", "b")
	for name, text := range map[string]string{
		"AGENTS.md":                  "above the repository",
		"repository/.git/HEAD":       "ref: refs/heads/main",
		"repository/AGENTS.md":       "of the root",
		"repository/CLAUDE.md":       "not of the root",
		"repository/a/CLAUDE.md":     "of a",
		"repository/a/GEMINI.md":     "not of a",
		"repository/a/b/GEMINI.md":   "of b",
		"repository/a/b/c/AGENTS.md": "below",
	} {
		testfile.WriteFile(t, filepath.Join(root, filepath.FromSlash(name)), text)
	}
	a := &Agent{Config: &spec.Config{}, host: &Host{Workspace: workspace}}
	a.Config.Prompting.Project = true
	const want = "## Instructions of this project (../../AGENTS.md)\nof the root\n\n" +
		"## Instructions of this project (../CLAUDE.md)\nof a\n\n## Instructions of this project (GEMINI.md)\nof b"
	if text, left := projectInstructions(a); text != want || left != "" {
		t.Errorf("got %q, %q", text, left)
	}

	// What leads out of its directory is left out, and the rest counts.
	if err := os.Remove(filepath.Join(repository, "a", "CLAUDE.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "AGENTS.md"), filepath.Join(repository, "a", "CLAUDE.md")); err != nil {
		t.Fatal(err)
	}
	text, left := projectInstructions(a)
	if strings.Contains(text, "above") || !strings.Contains(text, "of the root") || !strings.Contains(text, "of b") || !strings.Contains(left, "CLAUDE.md") {
		t.Errorf("got %q, %q", text, left)
	}

	// Without a repository only the workspace counts.
	if err := os.RemoveAll(filepath.Join(repository, ".git")); err != nil {
		t.Fatal(err)
	}
	if text, left := projectInstructions(a); text != "## Instructions of this project (GEMINI.md)\nof b" || left != "" {
		t.Errorf("got %q, %q", text, left)
	}
	if isOwn(string(filepath.Separator)) && os.Getuid() != 0 {
		t.Error("the root of the system is one's own")
	}
}
