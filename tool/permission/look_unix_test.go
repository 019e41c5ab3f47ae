//go:build unix

package permission_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool/permission"
)

// newSilentGit returns a policy whose commands find a git that never answers, and says so in a pipe.
func newSilentGit(t *testing.T) (p permission.Policy, begun string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	begun = filepath.Join(base, "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	git := filepath.Join(base, "bin", "git")
	testfile.WriteFile(t, git, "#!/bin/sh\n[ -z \"$BEGUN\" ] || echo >\"$BEGUN\"\nwhile :; do sleep 1000; done\n")
	if err := os.Chmod(git, 0o755); err != nil {
		t.Fatal(err)
	}
	p = permission.Policy{Workspace: filepath.Join(base, "work"), Env: []string{"PATH=" + filepath.Dir(git) + ":" + os.Getenv("PATH")}}
	testfile.WriteFile(t, filepath.Join(p.Workspace, ".git", "HEAD"), "")
	return p, begun
}

// A decision that looks at repositories ends with its context, and the call does not run.
func TestDecisionsEndWithTheirContext(t *testing.T) {
	p, begun := newSilentGit(t)
	p.Env = append(p.Env, "BEGUN="+begun)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("the run was ended")
	read := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(begun) // returns when git has started
		cancel(stopped)
		read <- err
	}()
	if d, err := p.Decide(ctx, shellTool, args(t, "command", "git status")); !errors.Is(err, stopped) {
		t.Errorf("%v, %v", d.Verdict, err)
	}
	if err := <-read; err != nil {
		t.Fatal(err)
	}
}

// However many repositories a command works in, looking at them takes ten seconds at most, and what is not known by then asks.
func TestLooksTakeTenSecondsTogether(t *testing.T) {
	t.Parallel()
	p, _ := newSilentGit(t)
	text := "git status"
	for i := range 8 {
		testfile.WriteFile(t, filepath.Join(p.Workspace, fmt.Sprint("d", i), ".git", "HEAD"), "")
		text += fmt.Sprintf("; git -C d%d status", i)
	}
	began := time.Now()
	d := decide(t, p, shellTool, args(t, "command", text))
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if d.Verdict != permission.Ask || !strings.Contains(strings.Join(d.Reasons, " "), "too long") {
		t.Errorf("%v: %q", d.Verdict, d.Reasons)
	}
}

// Repositories are looked at in the environment in which commands run: with its git and its settings, and without those of this process.
func TestLooksUseTheEnvironmentOfCommands(t *testing.T) {
	testneed.RequirePrograms(t, "git")
	ws, p := newHome(t)
	makeRepository(t, ws)
	makeRepository(t, filepath.Join(filepath.Dir(ws), "other"))
	own := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Home, "GIT_CONFIG_NOSYSTEM=1"}
	other := "GIT_DIR=" + filepath.Join(filepath.Dir(ws), "other", ".git")
	for _, c := range []struct {
		name string
		env  []string
		want permission.Verdict
	}{
		{"as it is", own, permission.Allow},
		{"another repository", append(own[:len(own):len(own)], other), permission.Ask},
		{"no git", []string{"PATH=" + ws}, permission.Ask},
		{"a program in a file of settings of the workspace", append(own[:len(own):len(own)], "GIT_CONFIG_GLOBAL="+filepath.Join(ws, "settings")), permission.Ask},
	} {
		testfile.WriteFile(t, filepath.Join(ws, "settings"), "[core]\n\tfsmonitor = touch x\n")
		p.Env = c.env
		if d := decide(t, p, shellTool, args(t, "command", "git status")); d.Verdict != c.want {
			t.Errorf("%s: %v, want %v: %q", c.name, d.Verdict, c.want, d.Reasons)
		}
	}
	t.Setenv("GIT_DIR", strings.TrimPrefix(other, "GIT_DIR="))
	p.Env = own
	if d := decide(t, p, shellTool, args(t, "command", "git status")); d.Verdict != permission.Allow {
		t.Errorf("settings of this process count: %q", d.Reasons)
	}
	p.Env = nil
	if d := decide(t, p, shellTool, args(t, "command", "git status")); d.Verdict != permission.Ask {
		t.Errorf("without an environment, that of this process counts: %q", d.Reasons)
	}
}

// A named pipe of the workspace is not read without a question: reading it may never end. Writing and other files are
// not concerned.
func TestPipesAsk(t *testing.T) {
	r := newRoom(t)
	if err := syscall.Mkfifo(filepath.Join(r.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]permission.Verdict{"pipe": permission.Ask, "a.txt": permission.Allow} {
		d := decide(t, r.policy, fileTool("fs_cat", false), args(t, "path", path))
		if d.Verdict != want || want == permission.Ask && !strings.Contains(strings.Join(d.Reasons, "\n"), "is a pipe, which may never end") {
			t.Errorf("%s: %v %q", path, d.Verdict, d.Reasons)
		}
	}
	outside := filepath.Join(filepath.Dir(r.dir), "pipe")
	if err := syscall.Mkfifo(outside, 0o600); err != nil {
		t.Fatal(err)
	}
	d := decide(t, r.policy, fileTool("fs_cat", false), args(t, "path", outside))
	if d.Verdict != permission.Ask || !strings.Contains(strings.Join(d.Reasons, "\n"), "is outside the workspace") {
		t.Errorf("outside: %v %q", d.Verdict, d.Reasons)
	}
}
