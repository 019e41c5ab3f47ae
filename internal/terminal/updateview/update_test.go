package updateview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/base/release"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/testkit/releasetest"
)

// This program is raddle update where the variable is set, so that the tests can replace a program that runs.
func TestMain(m *testing.M) {
	if os.Getenv("UPDATE_TEST_VERSION") == "" {
		os.Exit(m.Run())
	}
	release.Version = strings.TrimPrefix(os.Getenv("UPDATE_TEST_VERSION"), "-")
	release.Address = os.Getenv("UPDATE_TEST_ADDRESS")
	release.Key = os.Getenv("UPDATE_TEST_KEY")
	opts, cmd := NewCommand(console.New(os.Stdin, os.Stdout, os.Stderr, nil))
	opts.Output = os.Getenv("UPDATE_TEST_OUTPUT")
	cmd.SetArgs(os.Args[1:])
	cmd.SilenceErrors = true
	cmd.SilenceUsage = true
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// An installed program, with a server of releases.
type installed struct {
	*releasetest.Server
	t       *testing.T
	root    string
	program string
	version string
}

func install(t *testing.T, version string) *installed {
	t.Helper()
	// Windows may keep the program, and Wine fails to remove it: that is no failure of the test.
	dir, err := os.MkdirTemp("", "raddle-update-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := "raddle"
	if runtime.GOOS == "windows" {
		name = "raddle.exe"
	}
	i := &installed{Server: releasetest.Start(t), t: t, root: root, program: filepath.Join(root, "bin", name), version: version}
	i.ExpectAgent("raddle")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Dir(i.program), 0o755), os.WriteFile(i.program, content, 0o755)); err != nil {
		t.Fatal(err)
	}
	return i
}

// mark says that a package has installed the program.
func (i *installed) mark(text string) {
	i.t.Helper()
	file := filepath.Join(i.root, "lib", "raddle", release.MarkName)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		i.t.Fatal(err)
	}
}

// update runs the program with the flags of raddle update.
func (i *installed) update(output string, args ...string) (string, error) {
	i.t.Helper()
	cmd := exec.Command(i.program, args...)
	cmd.Env = append(os.Environ(), "UPDATE_TEST_VERSION="+i.version, "UPDATE_TEST_ADDRESS="+i.Address, "UPDATE_TEST_KEY="+i.Key, "UPDATE_TEST_OUTPUT="+output)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	return string(out) + stderr.String(), err
}

// isReplaced reports whether the program is now a text, and fails the test if anything else is next to it.
func (i *installed) isReplaced(text string) bool {
	i.t.Helper()
	entries, err := os.ReadDir(filepath.Dir(i.program))
	if err != nil {
		i.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(i.program) && !strings.HasPrefix(e.Name(), ".raddle-old-") { // which Windows keeps while it runs
			i.t.Errorf("%s was left", e.Name())
		}
	}
	content, err := os.ReadFile(i.program)
	if err != nil {
		i.t.Fatal(err)
	}
	return string(content) == text
}

// A program replaces itself by a newer release while it runs, and never by an older one.
func TestUpdate(t *testing.T) {
	i := install(t, "v1.2.0")
	i.Publish(t, "v1.2.0", []byte("the same"))
	if out, err := i.update("text"); err != nil || !strings.Contains(out, "raddle v1.2.0 is up to date") || i.isReplaced("the same") {
		t.Errorf("%v\n%s", err, out)
	}
	i.Publish(t, "v1.1.9", []byte("older"))
	if out, err := i.update("text"); err != nil || !strings.Contains(out, "the newest release is v1.1.9") || i.isReplaced("older") {
		t.Errorf("%v\n%s", err, out)
	}
	i.Publish(t, "v1.3.0", []byte("newer"))
	var exit *exec.ExitError
	if out, err := i.update("text", "--check"); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(out, "v1.3.0 is newer than this program, which is v1.2.0. To update it: raddle update") || i.isReplaced("newer") {
		t.Errorf("%v\n%s", err, out)
	}
	var r result
	out, err := i.update("json")
	if err != nil || !i.isReplaced("newer") {
		t.Fatalf("%v\n%s", err, out)
	}
	line, _, _ := strings.Cut(out, "\n")
	want := result{Version: "v1.2.0", Newest: "v1.3.0", Newer: true, Updated: true, Program: i.program, Installed: "archive", Command: "raddle update"}
	if err := json.Unmarshal([]byte(line), &r); err != nil || r != want {
		t.Errorf("%v\n%s", err, out)
	}
}

// Whatever goes wrong leaves the old program, and nothing next to it.
func TestUpdateRefuses(t *testing.T) {
	archive := release.NameArchive("v1.3.0", runtime.GOOS, runtime.GOARCH)
	for name, c := range map[string]struct {
		change func(*installed)
		want   string
	}{
		"a changed archive": {func(i *installed) {
			i.AnswerInstead(func(w http.ResponseWriter, path string, _ []byte) bool {
				if strings.HasSuffix(path, archive) {
					_, _ = w.Write([]byte("something else"))
				}
				return strings.HasSuffix(path, archive)
			})
		}, "cannot be trusted"},
		"another key": {func(i *installed) { i.Key = releasetest.Start(t).Key }, "cannot be trusted"},
		"no server":   {func(i *installed) { i.Address = "http://127.0.0.1:1/releases" }, "cannot be read"},
		"no address":  {func(i *installed) { i.Address = "" }, "built without the address"},
		"no release":  {func(i *installed) { i.version = "-" }, "was installed by the Go tool"},
		"a package": {func(i *installed) {
			i.mark("pip\npip install --upgrade raddle\n")
		}, "was installed by pip, so raddle does not change it"},
	} {
		t.Run(name, func(t *testing.T) {
			i := install(t, "v1.2.0")
			i.t = t
			i.Publish(t, "v1.3.0", []byte("newer"))
			c.change(i)
			if out, err := i.update("text"); err == nil || !strings.Contains(out, c.want) || i.isReplaced("newer") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A program of a package may look for a newer release, and names the command of the package.
func TestCheckOfPackages(t *testing.T) {
	i := install(t, "v1.2.0")
	i.Publish(t, "v1.3.0", []byte("newer"))
	i.mark("npm\nnpm install --global raddle@latest\x1b[31m\n")
	out, err := i.update("text", "--check")
	if err == nil || !strings.Contains(out, "To update it: npm install --global raddle@latest") || strings.Contains(out, "\x1b") {
		t.Errorf("%v\n%q", err, out)
	}
}

// A notice comes at most once a day, from what an earlier conversation has found; a server is asked at most once a day.
func TestNotice(t *testing.T) {
	s := releasetest.Start(t)
	s.ExpectAgent("raddle")
	s.Publish(t, "v1.3.0", []byte("newer"))
	source, err := release.NewSource(s.Address, s.Key)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	n := &Notice{Path: filepath.Join(t.TempDir(), "cache", noticeName), Source: source, Version: "v1.2.0", Now: func() time.Time { return now }}
	day := func(wantSaid bool, wantAsked int) {
		t.Helper()
		text := n.Say()
		n.Ask(context.Background())
		if asked := s.TakeRequests(); strings.HasPrefix(text, "raddle v1.3.0 is released (this is v1.2.0)") != wantSaid || len(asked) != wantAsked {
			t.Errorf("%s: it said %q and asked %v", now, text, asked)
		}
	}
	day(false, 2) // nothing is known yet
	day(true, 0)
	day(false, 0)
	now = now.Add(23 * time.Hour)
	day(false, 0)
	now = now.Add(time.Hour)
	day(true, 2)
	now = now.Add(-48 * time.Hour) // the clock was wrong
	day(true, 2)
	now = now.Add(24 * time.Hour)
	s.AnswerInstead(func(w http.ResponseWriter, _ string, _ []byte) bool {
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	day(true, 1)
	day(false, 0) // a server that failed is not asked again
	n.Version = "v1.3.0"
	now = now.Add(24 * time.Hour)
	day(false, 1)
	if err := os.WriteFile(n.Path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.Version = "v1.2.0"
	s.AnswerInstead(nil)
	day(false, 2)
}

// Without a yes of the person, without releases, and in programs that are none of a release there is no notice.
func TestNoNotice(t *testing.T) {
	if NewNotice(new(true), t.TempDir()) != nil {
		t.Error("a program without releases has a notice")
	}
	old := []string{release.Version, release.Address, release.Key}
	t.Cleanup(func() { release.Version, release.Address, release.Key = old[0], old[1], old[2] })
	release.Version, release.Address, release.Key = "v1.2.0", "https://example.com/r", "key"
	if NewNotice(nil, t.TempDir()) != nil || NewNotice(new(false), t.TempDir()) != nil {
		t.Error("a notice without a yes")
	}
	if NewNotice(new(true), t.TempDir()) == nil {
		t.Error("no notice with a yes")
	}
}
