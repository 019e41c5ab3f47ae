//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/testneed"
)

// TestOptionalTmux answers questions in another terminal program, and checks what that shows.
func TestOptionalTmux(t *testing.T) {
	testneed.RequirePrograms(t, "tmux")
	w := newWorkplace(t, asking)
	exe, err := os.Executable()
	if err == nil {
		err = os.Symlink(exe, filepath.Join(w.dir, "raddle"))
	}
	if err != nil {
		t.Fatal(err)
	}
	tmux := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("tmux", append([]string{"-S", "socket", "-f", os.DevNull}, args...)...)
		cmd.Dir, cmd.Env = w.dir, append(w.env, "TERM=xterm-256color", "LANG=C.UTF-8")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	// The shell says when raddle is over: now and then tmux misses the end of its child.
	tmux("new-session", "-d", "-x", "80", "-y", "24", "./raddle run ./ask; echo over: $?; exec cat")
	t.Cleanup(func() { tmux("kill-server") })
	await := func(text string) string {
		t.Helper()
		deadline := time.Now().Add(patience)
		for {
			shown := tmux("capture-pane", "-p")
			if strings.Contains(shown, text) {
				return shown
			}
			if time.Now().After(deadline) {
				t.Fatalf("tmux never shows %q:\n%s", text, shown)
			}
			time.Sleep(20 * time.Millisecond) // tmux does not report when its screen changes
		}
	}
	await("later")
	time.Sleep(time.Second / 2) // keys in the first moments of a question are ignored
	tmux("send-keys", "Down", "Down", "Down", "Enter")
	await("Custom response:")
	time.Sleep(time.Second / 2)
	tmux("send-keys", "-l", "möglich 日本")
	tmux("send-keys", "Enter")
	await("Your answer:")
	time.Sleep(time.Second / 2)
	tmux("send-keys", "Enter")
	shown := await("over: 0")
	if !strings.Contains(shown, "RESULT=möglich 日本/Bob.") {
		t.Errorf("the screen shows\n%s", shown)
	}
}
