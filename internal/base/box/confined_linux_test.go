package box

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"raddle.dev/internal/base/proc"
)

// newConfinedScene makes a scene whose box holds without namespaces. Nothing in the workspace is hidden, because that cannot be held.
func newConfinedScene(t *testing.T, change func(*Spec)) *scene {
	t.Helper()
	if landlockVersion() < neededLandlock {
		t.Skip("the kernel has no Landlock of the version that is needed")
	}
	return makeScene(t, []way{&confined{}}, func(spec *Spec) {
		hidden := spec.Hidden()
		spec.Hidden = func() []string { return hidden[:2] }
		if err := os.Remove(filepath.Join(spec.Workspace, ".env")); err != nil {
			t.Fatal(err)
		}
		spec.Aside = filepath.Join(filepath.Dir(spec.Private), "aside")
		if change != nil {
			change(spec)
		}
	})
}

func TestConfinedCommand(t *testing.T) {
	t.Parallel()
	p := newConfinedScene(t, nil)
	d := p.run(`set -e; pwd; echo A >> a.txt; echo new > new.txt; rm dir/b.txt; mkdir -p x/y; ln -s a.txt link; cat ../notes.txt; echo z > $TMPDIR/z; cat <(echo sub); echo x > /dev/null; mktemp; ls ~ > /dev/null; echo out > /dev/stdout`)
	if d.code != 0 {
		t.Fatalf("code %d: %s", d.code, d.out)
	}
	if want := []string{"changed a.txt", "removed dir/b.txt", "created link", "created new.txt", "created x/y"}; !slices.Equal(names(d.outcome.Changes), want) {
		t.Errorf("changes %q, want %q", names(d.outcome.Changes), want)
	}
	if len(d.outcome.Held) > 0 {
		t.Errorf("held %v", d.outcome.Held)
	}
	if d = p.run(`cat $TMPDIR/z`); d.out != "z\n" {
		t.Errorf("the next command in the box reads %q", d.out)
	}
}

// Modes and times of files of the workspace are changed for the command, and those of others are not.
func TestConfinedAttributes(t *testing.T) {
	t.Parallel()
	p := newConfinedScene(t, nil)
	d := p.run(`set -e; chmod +x a.txt; chmod 4755 dir; touch -d 2001-02-03T00:00:00Z dir/b.txt; ln -s ../notes.txt out; touch -h -d 2001-02-03T00:00:00Z out; cp -p dir/b.txt copy; cp -a dir dir2; chown "$(id -u)" a.txt
		! chmod 777 out; ! touch out; ! chmod 777 ../notes.txt; ! touch ../notes.txt; ! chown 1 a.txt; ! chmod 777 /proc/self/root/etc; cd dir; chmod 600 b.txt; chmod 644 ../a.txt; chmod 700 ../a.txt`)
	if d.code != 0 {
		t.Fatalf("code %d: %s", d.code, d.out)
	}
	for name, mode := range map[string]os.FileMode{"a.txt": 0o700, "dir": os.ModeDir | 0o755, "dir/b.txt": 0o600, "../notes.txt": 0o644} {
		if info, err := os.Stat(filepath.Join(p.work, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	for _, name := range []string{"dir/b.txt", "out", "copy", "dir2/b.txt"} {
		if info, err := os.Lstat(filepath.Join(p.work, name)); err != nil || info.ModTime().Unix() != 981158400 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// What commands do to protected paths is taken back, and kept aside.
func TestConfinedPutsAside(t *testing.T) {
	t.Parallel()
	p := newConfinedScene(t, nil)
	d := p.run(`echo evil > .git/config; mkdir -p .vscode x/.git/hooks; echo task > .vscode/tasks.json; echo hook > x/.git/hooks/pre-push; mkdir __pycache__; echo code > __pycache__/a.pyc; echo ok > ok.txt`)
	if got := names(d.outcome.Changes); !slices.Equal(got, []string{"created ok.txt"}) {
		t.Errorf("changes %q", got)
	}
	if len(d.outcome.Held) != 3 || p.read(".git/config") != "[core]\n" || p.read(".vscode/tasks.json") != "none" || p.read("x/.git/hooks/pre-push") != "none" || p.read("__pycache__/a.pyc") != "none" {
		t.Errorf("held %v", d.outcome.Held)
	}
	for _, h := range d.outcome.Held {
		_, aside, found := strings.Cut(h.Why, "it was put aside: ")
		if data, err := os.ReadFile(aside); !found || err != nil || len(data) < 4 {
			t.Errorf("%s: %q, %v", h.Why, data, err)
		}
	}
}

// Protected names in directories that the command has locked are found, and are in no later scan either.
func TestConfinedOpensLockedDirectories(t *testing.T) {
	t.Parallel()
	p := newConfinedScene(t, nil)
	d := p.run(`mkdir -p x/.git/hooks y/.vscode ro; echo e > x/.git/hooks/pre-push; chmod 555 x/.git/hooks; chmod 0 x; echo e > y/.vscode/t; chmod 0 y/.vscode; echo r > ro/f; chmod 555 ro; exit 0`)
	if len(d.outcome.Held) < 2 || p.read("x/.git/hooks/pre-push") != "none" || p.read("y/.vscode/t") != "none" || p.read(".git/config") != "[core]\n" {
		t.Errorf("held %v", d.outcome.Held)
	}
	for name, mode := range map[string]os.FileMode{"x": 0, "ro": 0o555} {
		info, err := os.Stat(filepath.Join(p.work, name))
		if err == nil && info.Mode().Perm() != mode || err != nil && name != "x" {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	for _, name := range []string{"ro", "x"} {
		_ = os.Chmod(filepath.Join(p.work, name), 0o755)
	}
}

// A workspace that holds what must be hidden has no box without namespaces.
func TestConfinedRefusesHidden(t *testing.T) {
	t.Parallel()
	p := newConfinedScene(t, nil)
	p.write(filepath.Join(p.work, "sub", ".env"), "SECRET-ENV")
	p.spec.Hidden = func() []string { return []string{filepath.Join(p.work, "sub", ".env")} }
	if _, err := newBox(p.spec, []way{&confined{}}); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "sub/.env") {
		t.Errorf("got %v", err)
	}
}

func TestConfinedRemovesObjects(t *testing.T) {
	t.Parallel()
	s := newSiege(t, true)
	d := s.run(`rm -rf .git/objects`)
	if got := names(d.outcome.Changes); !slices.Equal(got, []string{"removed .git/objects"}) {
		t.Errorf("changes %q", got)
	}
}

// The next process takes back what a command did to protected paths whose owner was killed before.
func TestConfinedSettlesWhatWasCutOff(t *testing.T) {
	t.Parallel()
	p := newConfinedScene(t, nil)
	stay, err := p.box.EnterBox(t.Context(), proc.Command{Path: "bash", Args: []string{"-c", `echo evil > .git/config; echo x > new; mkdir .vscode; echo x > .vscode/t`}, Dir: p.work, Env: []string{"PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := proc.Run(t.Context(), stay.Command); err != nil {
		t.Fatal(err)
	}
	if p.read(".git/config") != "evil\n" {
		t.Fatal("the command wrote nothing")
	}
	w := p.box.way.(*confined)
	_ = w.lock.Close() // as the end of the process does
	b, err := newBox(p.spec, []way{&confined{}})
	if err != nil {
		t.Fatal(err)
	}
	if p.read(".git/config") != "[core]\n" || p.read(".vscode/t") != "none" || p.read("new") != "x\n" {
		t.Error("the protected paths are not what they were")
	}
	p.box = b
	if d := p.run(`true`); len(d.outcome.Held) != 2 {
		t.Errorf("held %v", d.outcome.Held)
	}
}

// What a command makes with a mode, and without a call that changes it, gets no rights of its owner; named pipes do not stay.
func TestConfinedMakesNoPrograms(t *testing.T) {
	t.Parallel()
	p := newConfinedScene(t, nil)
	d := p.run(`umask 0; /usr/bin/python3 -c 'import os; os.open("suid", os.O_CREAT|os.O_WRONLY, 0o4755)'; mkfifo pipe; echo x > ok`)
	if info, err := os.Stat(filepath.Join(p.work, "suid")); err == nil && info.Mode() != 0o755 {
		t.Errorf("suid: %v", info.Mode())
	}
	if _, err := os.Lstat(filepath.Join(p.work, "pipe")); err == nil || len(d.outcome.Held) != 1 {
		t.Errorf("held %v", d.outcome.Held)
	}
}

// Commands at the same time are all compared with what was there before the first of them.
func TestConfinedAtTheSameTime(t *testing.T) {
	t.Parallel()
	p := newConfinedScene(t, nil)
	long, err := p.box.EnterBox(t.Context(), proc.Command{Path: "bash", Args: []string{"-c", `echo evil > .git/config; until [ -e go ]; do sleep 0.01; done`}, Dir: p.work, Env: []string{"PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := proc.Run(t.Context(), long.Command)
		done <- err
	}()
	await(t, "the first command wrote", func() bool { return p.read(".git/config") == "evil\n" })
	if d := p.run(`cat .git/config > seen; echo x > go`); len(d.outcome.Held) != 1 || p.read(".git/config") != "[core]\n" {
		t.Errorf("held %v", d.outcome.Held)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if o, err := long.LeaveBox(nil); err != nil || p.read(".git/config") != "[core]\n" {
		t.Errorf("%v, %v", o, err)
	}
	if entries, err := filepath.Glob(filepath.Join(p.spec.Aside, "*.kept")); err != nil || len(entries) > 0 {
		t.Errorf("%v is left", entries)
	}
}

// Changes are told with what the files were before.
func TestConfinedTellsOldFiles(t *testing.T) {
	t.Parallel()
	p := newConfinedScene(t, nil)
	was := map[string]string{}
	_, _, err := p.box.Run(t.Context(), proc.Command{Path: "bash", Args: []string{"-c", `echo A > a.txt; rm -r dir; echo n > new`}, Dir: p.work, Env: []string{"PATH=" + os.Getenv("PATH")}}, func(c PathChange) {
		was[c.Path] = "none"
		if c.Old != nil && c.Old.Kept {
			was[c.Path] = string(c.Old.Data)
		}
	})
	if want := map[string]string{"a.txt": "a\n", "dir/b.txt": "b\n", "new": "none"}; err != nil || !maps.Equal(was, want) {
		t.Errorf("got %v, want %v: %v", was, want, err)
	}
}

// Where the system really forbids namespaces, the box holds without.
func TestNewWithoutNamespaces(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("RADDLE_TEST_FORBID"); dir != "" {
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			t.Skip(err)
		}
		b, err := New(ownersSpec(dir))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := b.way.(*confined); !ok {
			t.Errorf("the box holds by %s", b.DescribeBox().Way)
		}
		res, r, err := b.Run(t.Context(), proc.Command{Path: "bash", Args: []string{"-c", `echo x > hook; echo x > file; unshare -Ur true && echo ESCAPED; echo "$HOME"`}, Dir: filepath.Join(dir, "work"), Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=/home"}}, nil)
		if err != nil || string(res.Stdout) != "/home\n" || len(r.Held) != 1 || len(r.Changes) != 1 {
			t.Errorf("%q %+v %v", res.Stdout, r, err)
		}
		if escaped, tried, err := b.AttackBox(t.Context(), os.Environ()); err != nil || len(escaped) > 0 || tried != len(attacks) {
			t.Errorf("escaped %q of %d: %v", escaped, tried, err)
		}
		return
	}
	if landlockVersion() < neededLandlock {
		t.Skip("the kernel has no Landlock of the version that is needed")
	}
	dir := t.TempDir()
	for _, name := range []string{"work", "private"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestNewWithoutNamespaces$")
	cmd.Env = append(os.Environ(), "RADDLE_TEST_FORBID="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skip(err)
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A command waits for one of another process only as long as its context lasts, and does not keep others of its own process from ending.
func TestConfinedWaitEnds(t *testing.T) {
	t.Parallel()
	p := newConfinedScene(t, nil)
	lock, err := os.OpenFile((&confined{}).stateFile(p.box, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil { // as another process does
		t.Fatal(err)
	}
	reason := errors.New("the person has interrupted it")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	began := time.Now()
	if _, err := p.box.EnterBox(ctx, proc.Command{Path: "true", Dir: p.work}); !errors.Is(err, reason) || errors.Is(err, ErrNone) {
		t.Errorf("error %v", err)
	}
	if waited := time.Since(began); waited > lockWait/2 {
		t.Errorf("it waited %v", waited)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if d := p.run(`echo x > new`); p.read("new") != "x\n" || len(d.outcome.Held) != 0 {
		t.Errorf("the next command: %+v", d.outcome)
	}
}
