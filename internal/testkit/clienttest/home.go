// Package clienttest runs clients of other vendors and languages against the program: raddle in a home directory of its
// own, raddle serve on a port of its own, and the programs of internal/testkit/clients/ in the environments that
// .ci/prepare has installed.
package clienttest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testneed"
)

// Home is a home directory with the agents assistant and triage of the examples, and nothing of the person who runs the
// test.
type Home struct {
	Dir    string // also the working directory of its commands
	Raddle string // the program
}

// NewHome builds raddle and makes a home directory for the test.
func NewHome(t testing.TB) *Home {
	t.Helper()
	built, err := build()
	if err != nil {
		t.Fatal(err)
	}
	h := &Home{Dir: t.TempDir(), Raddle: BuildRaddle(t)}
	for _, name := range []string{"assistant", "triage"} {
		if err := os.CopyFS(h.agentDir(name), os.DirFS(filepath.Join(testneed.FindRoot(), "examples", name))); err != nil {
			t.Fatal(err)
		}
	}
	// The program of the server is built once: the copy has no module.
	servers, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"shop": map[string]any{"command": filepath.Join(built, "shop"+suffix)}}})
	if err != nil {
		t.Fatal(err)
	}
	h.AddAgent(t, "assistant", map[string]string{"mcp.json": string(servers)})
	return h
}

// AddAgent writes files of an agent that is called by its name.
func (h *Home) AddAgent(t testing.TB, name string, files map[string]string) {
	t.Helper()
	for file, text := range files {
		path := filepath.Join(h.agentDir(name), filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func (h *Home) agentDir(name string) string {
	return filepath.Join(h.Dir, ".config", "raddle", "agents", name)
}

// Environ returns the environment in which raddle uses this home directory, and nothing of the person who runs the
// test.
func (h *Home) Environ() []string {
	return []string{
		"HOME=" + h.Dir,
		"XDG_CONFIG_HOME=" + filepath.Join(h.Dir, ".config"),
		"XDG_STATE_HOME=" + filepath.Join(h.Dir, ".state"),
		"XDG_CACHE_HOME=" + filepath.Join(h.Dir, ".cache"),
		"PATH=" + os.Getenv("PATH"),
		"TMPDIR=" + os.TempDir(),
		"LANG=C.UTF-8",
		"RADDLE_BOX=false", // most tests are about questions, which the box would answer
	}
}

// Command returns a command of raddle in this home directory. The end of the test kills it.
func (h *Home) Command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), h.Raddle, args...)
	c.Dir, c.Env, c.WaitDelay = h.Dir, h.Environ(), 10*time.Second
	return c
}

var suffix = map[bool]string{true: ".exe"}[runtime.GOOS == "windows"]

// BuildRaddle compiles raddle as it is released, without the race detector, and returns its path: for tests that start
// it hundreds of times.
func BuildRaddle(t testing.TB) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "raddle"+suffix)
}

// build compiles raddle and the server of examples/assistant, and returns their directory. The packages that use it
// share what it made.
var build = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(testneed.FindRoot(), "out", "clienttest")
	for name, pkg := range map[string]string{"raddle": "./cmd/raddle", "shop": "./examples/assistant/server"} {
		c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, name+suffix), pkg)
		c.Dir, c.Env = testneed.FindRoot(), append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
		}
	}
	return filepath.Abs(dir)
})
