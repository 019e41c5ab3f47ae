package toolbox

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

func TestRunnersQuoteTheirPaths(t *testing.T) {
	testneed.RequirePrograms(t, "sh")
	dir := t.TempDir()
	agent := filepath.Join(dir, `it's $HOME "here"`)
	name, text := formatRunner("linux", "/bin/echo", agent, filepath.Join(agent, "tools.sh"))
	if name != "tools.sh" {
		t.Error(name)
	}
	out, err := exec.Command("sh", "-c", text, "runner", "get it", "*").CombinedOutput()
	if want := "tools exec -- " + agent + " " + agent + "/tools.sh get it *\n"; err != nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
	name, text = formatRunner("windows", `C:\raddle.exe`, `C:\a b`, `tools.py`)
	if name != "tools.py.cmd" || !strings.Contains(text, `@"C:\raddle.exe" tools exec -- "C:\a b" "tools.py" %*`+"\r\n") {
		t.Errorf("%s: %s", name, text)
	}
}
