//go:build unix

package proc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type runCase struct {
	name    string
	command Command
	want    Result
	err     string
}

func runCases(t *testing.T) []runCase {
	dir := t.TempDir()
	return []runCase{
		{
			name: "two outputs", command: bash("echo out; echo err >&2"),
			want: Result{Stdout: []byte("out\n"), Stderr: []byte("err\n")},
		},
		{
			name: "nothing at all", command: bash(":"),
		},
		{
			name:    "arguments as they are",
			command: Command{Path: "bash", Args: []string{"-c", `printf '<%s>' "$@"`, "bash", "a b", "", "$HOME"}},
			want:    Result{Stdout: []byte("<a b><><$HOME>")},
		},
		{
			name: "working directory", command: Command{Path: "bash", Args: []string{"-c", "pwd -P"}, Dir: dir},
			want: Result{Stdout: []byte(realPath(t, dir) + "\n")},
		},
		{
			name: "environment and nothing else", command: Command{Path: "env", Env: []string{"A=1", "B=x y", "A=2"}},
			want: Result{Stdout: []byte("B=x y\nA=2\n")},
		},
		{
			name: "empty environment", command: Command{Path: "env"},
		},
		{
			name: "input", command: Command{Path: "cat", Stdin: []byte("one\ntwo")},
			want: Result{Stdout: []byte("one\ntwo")},
		},
		{
			name: "no input is the end of the input", command: bash("read -r line || echo end"),
			want: Result{Stdout: []byte("end\n")},
		},
		{
			name: "input that is not read", command: Command{Path: "bash", Args: []string{"-c", ":"}, Stdin: make([]byte, 1<<20)},
		},
		{
			name: "exit code", command: bash("echo fine; printf 'first\\n\\033[31mno such table\\033[0m\\n\\n' >&2; exit 3"),
			want: Result{Stdout: []byte("fine\n"), Stderr: []byte("first\n\x1b[31mno such table\x1b[0m\n\n"), ExitCode: 3},
			err:  "bash ended with exit code 3: no such table",
		},
		{
			name: "signal", command: bash("kill -SEGV $$"),
			want: Result{ExitCode: -1, Signal: "SIGSEGV"}, err: "bash was ended by SIGSEGV",
		},
		{
			name: "limit", command: Command{Path: "printf", Args: []string{"0123456789"}, Limit: 4},
			want: Result{Stdout: []byte("01\n[... 6 bytes left out ...]\n89"), StdoutDropped: 6},
		},
	}
}

func TestRun(t *testing.T) {
	for _, c := range runCases(t) {
		t.Run(c.name, func(t *testing.T) {
			got, err := Run(t.Context(), c.command)
			if text := errorText(err); text != c.err {
				t.Errorf("error %q, want %q", text, c.err)
			}
			if got.Duration <= 0 {
				t.Errorf("a duration of %v", got.Duration)
			}
			got.Duration = 0
			if diff := cmp.Diff(c.want, got, cmp.Comparer(func(a, b []byte) bool { return string(a) == string(b) })); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunErrorsAreTyped(t *testing.T) {
	_, err := Run(t.Context(), bash("echo no >&2; exit 7"))
	exit, ok := errors.AsType[*ExitError](err)
	if want := (ExitError{Path: "bash", Code: 7, Stderr: "no"}); !ok || *exit != want {
		t.Errorf("error %#v, want %#v", err, want)
	}
}

func TestRunOutputsAboveThePipeSize(t *testing.T) {
	// Both outputs and the input are far larger than a pipe: a program that waited for one of them would never end.
	const size = 3 << 20
	c := bash("tee /dev/stderr")
	c.Stdin = []byte(strings.Repeat("0123456789abcde\n", size/16))
	got, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Stdout) != string(c.Stdin) || string(got.Stderr) != string(c.Stdin) {
		t.Errorf("outputs of %d and %d bytes, want the input of %d", len(got.Stdout), len(got.Stderr), len(c.Stdin))
	}
}

func TestRunCannotStart(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("echo"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name    string
		command Command
		is      error
		text    string
	}{
		{"no name", Command{}, nil, "no program is set"},
		{"unknown name", Command{Path: "no-such-program"}, exec.ErrNotFound, "no-such-program could not be started"},
		{"unknown path", Command{Path: filepath.Join(dir, "none")}, fs.ErrNotExist, "none could not be started"},
		{"not a program", Command{Path: plain}, fs.ErrPermission, "permission denied"},
		{"not a program in PATH", Command{Path: "plain", Env: []string{"PATH=" + dir}}, exec.ErrNotFound, "plain could not be started"},
		{"no directory", Command{Path: "bash", Dir: filepath.Join(dir, "none")}, fs.ErrNotExist, "working directory"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := openFiles(t)
			c.command.Started = func(Handle) error { t.Error("Started was called"); return nil }
			_, err := Run(t.Context(), c.command)
			if _, ok := errors.AsType[*StartError](err); !ok || (c.is != nil && !errors.Is(err, c.is)) {
				t.Errorf("error %#v, want a StartError of %v", err, c.is)
			}
			if !strings.Contains(errorText(err), c.text) {
				t.Errorf("error %q does not say %q", err, c.text)
			}
			if after := openFiles(t); after != before {
				t.Errorf("%d files are left open", after-before)
			}
		})
	}
}

func TestRunLooksInThePathOfTheChild(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho mine\n"
	if err := os.WriteFile(filepath.Join(dir, "env"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := Run(t.Context(), Command{Path: "env", Env: []string{"PATH=.:" + dir + ":/bin:/usr/bin"}})
	if err != nil || string(got.Stdout) != "mine\n" {
		t.Errorf("%q, %v, want the program of the first directory", got.Stdout, err)
	}
}

func TestRunRelativePathIsRelativeToDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "here.sh"), []byte("#!/bin/sh\necho $0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := Run(t.Context(), Command{Path: "./here.sh", Dir: dir})
	if err != nil || string(got.Stdout) != "./here.sh\n" {
		t.Errorf("%q, %v", got.Stdout, err)
	}
}

func TestRunLeavesNoFilesAndNoZombies(t *testing.T) {
	run := func() (pid int) {
		c := bash("read -r line; echo $line")
		c.Stdin = []byte("hello\n")
		c.Started = func(h Handle) error { pid = h.PID; return nil }
		if _, err := Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	run()
	before := openFiles(t)
	for range 20 {
		pid := run()
		if s, ok := inspectProcess(pid); ok && s.dead {
			t.Errorf("process %d was not reaped", pid)
		}
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d files are left open", after-before)
	}
}

func TestRunConcurrently(t *testing.T) {
	verdicts := make(chan error)
	const many = 20
	for range many {
		go func() {
			got, err := Run(t.Context(), bash("echo $$; echo $$ >&2"))
			if err == nil && string(got.Stdout) != string(got.Stderr) {
				err = errors.New("the outputs of two children are mixed")
			}
			verdicts <- err
		}()
	}
	for range many {
		if err := <-verdicts; err != nil {
			t.Error(err)
		}
	}
}

func TestRunWithAnEndedContextStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := bash(":")
	c.Started = func(Handle) error { t.Error("it was started"); return nil }
	if _, err := Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func BenchmarkRunBash(b *testing.B) {
	c := bash("echo '{}'")
	for b.Loop() {
		if _, err := Run(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkExecBash measures the same with package os/exec alone, for comparison.
func BenchmarkExecBash(b *testing.B) {
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), "bash", "-c", "echo '{}'")
		cmd.WaitDelay = time.Second
		if _, err := cmd.Output(); err != nil {
			b.Fatal(err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func realPath(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}
