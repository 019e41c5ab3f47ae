package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

// linker is the program that makes files of Windows.
const linker = "x86_64-w64-mingw32-ld"

// A windows is an installation of Windows without anything but what comes with it, made by Wine.
type windows struct {
	t   *testing.T
	dir string
	env []string
}

// newWindows makes one, or skips the test.
func newWindows(t *testing.T) *windows {
	t.Helper()
	testneed.RequirePrograms(t, "go", "wine", linker)
	w := &windows{t: t, dir: t.TempDir()}
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "WINEPREFIX=" + filepath.Join(w.dir, "wine"), "WINEDEBUG=-all", "LANG=C.UTF-8"}
	if out, err := w.start("wineboot", "--init").CombinedOutput(); err != nil {
		t.Skipf("wine cannot be used: %v\n%s", err, out)
	}
	t.Cleanup(func() { w.start("wineboot", "--kill").Run() })
	w.addRandom()
	return w
}

// addRandom adds the library that gives every program of Go its random numbers, where Wine is too old to have it (before 9.0): it passes
// the calls on to the function that it replaces.
func (w *windows) addRandom() {
	w.t.Helper()
	library := filepath.Join(w.dir, "wine", "drive_c", "windows", "system32", "bcryptprimitives.dll")
	if _, err := os.Stat(library); err == nil {
		return
	}
	exports := filepath.Join(w.dir, "random.def")
	if err := os.WriteFile(exports, []byte("LIBRARY bcryptprimitives.dll\nEXPORTS\nProcessPrng = advapi32.SystemFunction036\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if out, err := exec.CommandContext(w.t.Context(), linker, "-shared", "--entry=0", "-o", library, exports).CombinedOutput(); err != nil {
		w.t.Fatalf("%v\n%s", err, out)
	}
}

// start returns a command of a program of Windows in the directory of the repository.
func (w *windows) start(program string, args ...string) *exec.Cmd {
	c := exec.Command("wine", append([]string{program}, args...)...)
	c.Env, c.Dir = w.env, testneed.FindRoot()
	return c
}

// build compiles for Windows, with the flags of make platforms, so that what it has compiled is used.
func (w *windows) build(name string, args ...string) string {
	w.t.Helper()
	program := filepath.Join(w.dir, name)
	c := exec.CommandContext(w.t.Context(), "go", append(args[:1:1], append([]string{"-trimpath", "-o", program}, args[1:]...)...)...)
	c.Env, c.Dir = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0"), testneed.FindRoot()
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("go %s: %v\n%s", args, err, out)
	}
	return program
}

// On a clean Windows the first commands of the README do what it says. There is no bash, and the second one says so and keeps its place.
func TestOptionalWindows(t *testing.T) {
	w := newWindows(t)
	raddle := w.build("raddle.exe", "build", "./cmd/raddle")
	commands := readFirstCommands(t)
	if len(commands) != 2 {
		t.Fatalf("the README begins with %q: what do they do on Windows?", commands)
	}
	out, err := w.start(raddle, strings.Fields(commands[0])...).CombinedOutput()
	if err != nil || string(out) != "Good morning, Ada!\n" {
		t.Errorf("raddle %s: %v\n%s", commands[0], err, out)
	}
	out, err = w.start(raddle, strings.Fields(commands[1])...).CombinedOutput()
	id := regexp.MustCompile(`next: fix this, then continue: raddle resume (\w+)`).FindSubmatch(out)
	if err == nil || !strings.Contains(string(out), "bash could not be started") || id == nil {
		t.Fatalf("raddle %s: %v\n%s", commands[1], err, out)
	}
	out, err = w.start(raddle, "runs", "ls").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "hello") || !strings.Contains(string(out), string(id[1])) {
		t.Errorf("raddle runs ls: %v\n%s", err, out)
	}
	out, err = w.start(raddle, "doctor").CombinedOutput()
	if !strings.Contains(string(out), `~\AppData\Local\raddle\runs.db, 2 runs`) || !strings.Contains(string(out), "bash is missing") {
		t.Errorf("raddle doctor: %v\n%s", err, out)
	}
}

// Tests of what differs on Windows pass there: names of variables without case, the directories of raddle, jobs of processes, the replacement of
// a program that runs.
func TestOptionalWindowsPackages(t *testing.T) {
	w := newWindows(t)
	for _, tt := range []struct{ of, run string }{
		{"./internal/base/environ", "."},
		{"./internal/storage/config", "^TestWindows"},
		{"./internal/base/proc", "^Test"},
		{"./internal/terminal/updateview", "^Test(Update|Check)"},
	} {
		test := w.build(filepath.Base(tt.of)+".test.exe", "test", "-c", tt.of)
		out, err := w.start(test, "-test.v", "-test.timeout", "5m", "-test.run", tt.run).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%s: %v\n%s", tt.of, err, out)
		}
	}
}

// readFirstCommands returns what the README tells a newcomer to run without a key or a network, without "raddle".
func readFirstCommands(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testneed.FindRoot(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "**Without a key or a network.**")
	_, rest, _ = strings.Cut(rest, "```console\n")
	block, _, _ := strings.Cut(rest, "```")
	var commands []string
	for line := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ raddle "); ok {
			commands = append(commands, command)
		}
	}
	return commands
}
