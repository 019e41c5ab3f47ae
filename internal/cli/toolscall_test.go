package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The arguments of a tool that is called by hand come from standard input if they
// are "-": a command line has no room for a long text.
func TestToolsCallReadsStandardInput(t *testing.T) {
	w := newWorkplace(t, "")
	long := strings.Repeat("a line\n", 40_000)
	args, err := json.Marshal(map[string]string{"path": "made", "contents": long})
	if err != nil {
		t.Fatal(err)
	}
	cmd := w.command("tools", "call", "fs_write", "-")
	cmd.Stdin = strings.NewReader(string(args))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(w.dir, "made")); err != nil || string(text) != long {
		t.Errorf("%d bytes were written, %v", len(text), err)
	}
	cmd = w.command("tools", "call", "fs_write", "-")
	cmd.Stdin = strings.NewReader("no json")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "the arguments must be a JSON object") {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}
