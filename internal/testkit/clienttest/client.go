package clienttest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testneed"
)

// clientTimeout is the time after which a client is killed.
const clientTimeout = 90 * time.Second

// NodeCommand returns a command that runs a program of internal/testkit/clients/FOLDER with Node and the packages of
// the folder: a path such as client.mjs, or node_modules/NAME/cli.js. It skips the test if the packages are not
// installed.
func NodeCommand(t testing.TB, folder, program string, args ...string) *exec.Cmd {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(testneed.FindRoot(), "internal", "testkit", "clients", "node", "node_modules", "node-*", "bin", "node"+suffix))
	if err != nil || len(found) == 0 {
		testneed.RequireClients(t, filepath.Join("internal", "testkit", "clients", "node", "node_modules", ".prepared"))
		t.Fatal("internal/testkit/clients/node has no Node for this system")
	}
	testneed.RequireClients(t, filepath.Join("internal", "testkit", "clients", folder, "node_modules", ".prepared"))
	return newClient(t, folder, found[0], program, args)
}

// PythonCommand returns a command that runs a program of internal/testkit/clients/FOLDER with Python and the packages
// of the folder. It skips the test if the packages are not installed.
func PythonCommand(t testing.TB, folder, program string, args ...string) *exec.Cmd {
	t.Helper()
	testneed.RequireClients(t, filepath.Join("internal", "testkit", "clients", folder, ".venv", ".prepared"))
	return newClient(t, folder, filepath.Join(testneed.FindRoot(), "internal", "testkit", "clients", folder, ".venv", "bin", "python"), program, args)
}

// newClient returns a command in a home directory of its own. Its PATH begins with the directory of the interpreter,
// for programs that start others.
func newClient(t testing.TB, folder, interpreter, program string, args []string) *exec.Cmd {
	t.Helper()
	interpreter, err := filepath.Abs(interpreter)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs(filepath.Join(testneed.FindRoot(), "internal", "testkit", "clients", folder))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, interpreter, append([]string{filepath.Join(dir, filepath.FromSlash(program))}, args...)...)
	c.WaitDelay = 5 * time.Second
	c.Dir = t.TempDir()
	c.Env = []string{
		"PATH=" + filepath.Dir(interpreter) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + c.Dir,
		"TMPDIR=" + os.TempDir(),
		"LANG=C.UTF-8",
		"PYTHONDONTWRITEBYTECODE=1",
		"NO_PROXY=127.0.0.1",
	}
	return c
}

// Connect lets a client use the server: the variables RADDLE_URL and RADDLE_TOKEN say how.
func (s *Server) Connect(c *exec.Cmd) *exec.Cmd {
	c.Env = append(c.Env, "RADDLE_URL="+s.URL, "RADDLE_TOKEN="+s.Token)
	return c
}

// ReadOutput runs a command and returns what it has written to stdout, without the newline at the end. The test fails
// if the command fails.
func ReadOutput(t testing.TB, c *exec.Cmd) string {
	t.Helper()
	var out, log bytes.Buffer
	c.Stdout = &out
	c.Stderr = &log
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(c.Args, " "), err, out.String(), log.String())
	}
	return strings.TrimSuffix(out.String(), "\n")
}
