package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// patience is how long a test waits for something that is sure to happen.
const patience = 60 * time.Second

// workplace is a directory with agents and a state of its own.
type workplace struct {
	t   *testing.T
	dir string
	env []string
}

// newWorkplace unpacks an archive.
func newWorkplace(t *testing.T, archive string) *workplace {
	t.Helper()
	w := &workplace{t: t, dir: t.TempDir()}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		w.write(f.Name, string(f.Data))
	}
	w.env = append(surroundings(w.dir), "PATH="+os.Getenv("PATH"))
	return w
}

func (w *workplace) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// command returns raddle as a child process: the test binary under that name.
func (w *workplace) command(args ...string) *exec.Cmd {
	w.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	return &exec.Cmd{Path: exe, Args: append([]string{"raddle"}, args...), Dir: w.dir, Env: w.env}
}

// A result is what a process left.
type result struct {
	out, err string
	code     int
}

func (w *workplace) run(args ...string) result {
	w.t.Helper()
	cmd := w.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// runs returns the runs in the store.
func (w *workplace) runs() (list []struct{ Run, Status string }) {
	w.t.Helper()
	r := w.run("runs", "ls", "--output", "json")
	if err := json.Unmarshal([]byte(r.out), &list); err != nil {
		w.t.Fatalf("runs ls: %v: %s%s", err, r.out, r.err)
	}
	return list
}

// read returns the text of a file, or "" if it does not exist.
func (w *workplace) read(name string) string {
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(b)
}

// wait fails a test that would hang.
func wait(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
		return cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatalf("%s has not ended", strings.Join(cmd.Args, " "))
	}
	return -1
}

// A console collects what a process writes while it runs.
type console struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // closed and replaced with every write
}

func newConsole() *console { return &console{more: make(chan struct{})} }

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(p)
	close(c.more)
	c.more = make(chan struct{})
	return len(p), nil
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// await blocks until the process has written a text after what was there before.
func (c *console) await(t *testing.T, text string) {
	t.Helper()
	c.until(t, text, func(all string) bool { return strings.Contains(all, text) })
}

// until blocks until the output of the process fulfils a condition.
func (c *console) until(t *testing.T, what string, met func(all string) bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		c.mu.Lock()
		all, more := c.text.String(), c.more
		c.mu.Unlock()
		if met(all) {
			return
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("%q was not written; but this was:\n%s", what, all)
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
