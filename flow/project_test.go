//go:build unix

package flow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
)

func TestProjectFileStaysInTheWorkspace(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "key")
	testfile.WriteFile(t, outside, "private words")
	refuse := func(t *testing.T, workspace string) {
		t.Helper()
		if text, err := readProjectFile(workspace); text != "" || err == nil || !strings.Contains(err.Error(), projectFile) {
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
		if text, err := readProjectFile(workspace); strings.Contains(text, "private words") != ok || (err == nil) != ok {
			t.Errorf("a link to %s: got %q, %v", target, text, err)
		}
	}
}
