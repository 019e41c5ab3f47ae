//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTry kills the agent of raddle try where the command says, and continues it: the change of the file is neither asked nor
// made again.
func TestTry(t *testing.T) {
	t.Parallel()
	needBash(t)
	w := newWorkplace(t, "")
	first := w.screen(nil, "try")
	first.await("wants to run a command")
	first.answer("1")
	first.await("wants to change price.sh")
	other := w.command("try")
	if out, _ := other.CombinedOutput(); other.ProcessState.ExitCode() == 0 || !strings.Contains(string(out), "another process works on run") {
		t.Errorf("beside it, another one says: %s", out)
	}
	first.answer("1")
	first.await("+1 −1")
	first.awaitNext("thinking") // the outcome of the change is in the journal
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait() // it was killed
	program, err := os.ReadFile(filepath.Join(w.dir, ".cache", "raddle", "try", "price.sh"))
	if err != nil || !strings.Contains(string(program), "$1 * $2") {
		t.Fatalf("%q, %v", program, err)
	}

	second := w.screen(nil, "try")
	second.await("was stopped, and continues")
	second.await("wants to run a command")
	second.answer("1")
	second.ends(0, "begins again")
	if shown := second.seen.String(); strings.Contains(shown, "price.sh +") || !strings.Contains(shown, "ok") {
		t.Errorf("it did more than to run the test again:\n%s", shown)
	}
}
