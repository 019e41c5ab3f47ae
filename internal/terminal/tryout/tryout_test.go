package tryout

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/llm/script"
)

// TestFilesBeginWithAFault writes the files over those of an earlier run. Their test fails, and passes after the change that
// the transcript makes.
func TestFilesBeginWithAFault(t *testing.T) {
	dir := t.TempDir()
	check := func() string {
		c := exec.Command("sh", "test.sh")
		c.Dir = dir
		out, _ := c.CombinedOutput() // it fails at first
		return strings.TrimSpace(string(out))
	}
	for range 2 {
		if err := WriteFiles(dir); err != nil {
			t.Fatal(err)
		}
		if got := check(); got != "3 pieces at 20 cost 23, expected 60" {
			t.Fatalf("the test says %q", got)
		}
		program := filepath.Join(dir, "price.sh")
		text, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(program, []byte(strings.Replace(string(text), "$1 + $2", "$1 * $2", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := check(); got != "ok" {
			t.Fatalf("after the change the test says %q", got)
		}
	}
	transcript, err := os.ReadFile(filepath.Join(dir, Agent, "transcript.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := script.Parse("transcript.yaml", transcript); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(transcript), `old: "$1 + $2", new: "$1 * $2"`) {
		t.Error("the transcript makes another change")
	}
}
