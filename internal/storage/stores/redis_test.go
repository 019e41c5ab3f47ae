package stores_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/redistest"
	"raddle.dev/internal/testkit/testneed"
)

// A run is parked by one process and answered by another, over a store with a password that no output has. The server is
// killed and started again between the two.
func TestExtraRunOnRedis(t *testing.T) {
	const password = "hunter2-of-the-store"
	server := redistest.Start(t, "--requirepass", password, "--appendfsync", "always")
	h := clienttest.NewHome(t)
	var all bytes.Buffer
	run := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		c := h.Command(t, args...)
		c.Env = append(c.Env, "RADDLE_STORE="+server.WithPassword("", password))
		c.Stdout, c.Stderr = &out, &out
		code := 0
		if err := c.Run(); err != nil {
			exit, ok := err.(*exec.ExitError)
			if !ok {
				t.Fatal(err)
			}
			code = exit.ExitCode()
		}
		all.Write(out.Bytes())
		if code != want {
			t.Fatalf("raddle %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, want, out.String())
		}
		return out.String()
	}
	root := testneed.FindRoot()
	if out := run(0, "run", filepath.Join(root, "examples", "hello"), "Ada"); !strings.Contains(out, "Ada!") {
		t.Errorf("the run of examples/hello prints\n%s", out)
	}
	const parked = 5
	_, rest, _ := strings.Cut(run(parked, "run", "triage"), "next: raddle resume ")
	id, _, _ := strings.Cut(rest, " ")
	server.Kill()
	server.Restart(t)
	if out := run(0, "runs", "ls"); !strings.Contains(out, "triage") || !strings.Contains(out, "hello") {
		t.Errorf("runs ls prints\n%s", out)
	}
	run(0, "resume", id, "--answer", "yes", "--answer", "by phone")
	if out := run(0, "info"); !strings.Contains(out, server.URL) {
		t.Errorf("info prints\n%s", out)
	}
	run(0, "config", "explain")
	run(0, "doctor")
	run(0, "runs", "rm", id)
	server.Kill()
	if out := run(3, "runs", "ls"); !strings.Contains(out, "no server answers") || strings.Contains(out, "pool.go") {
		t.Errorf("without a server, runs ls prints\n%s", out)
	}
	if strings.Contains(all.String(), "hunter2") {
		t.Errorf("the password is in the output:\n%s", all.String())
	}
}
