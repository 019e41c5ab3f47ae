package box

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"raddle.dev/internal/base/proc"
)

// A scene is a home directory with a workspace and a box for it.
type scene struct {
	t       *testing.T
	home    string
	work    string
	private string
	spec    Spec
	box     *Box
}

// newScene makes a home directory with secrets and a workspace with a repository.
func newScene(t *testing.T, change func(*Spec)) *scene {
	t.Helper()
	return makeScene(t, []way{&layered{}}, change)
}

// makeScene makes a scene whose box holds commands in one of some ways.
func makeScene(t *testing.T, ways []way, change func(*Spec)) *scene {
	t.Helper()
	base := t.TempDir()
	p := &scene{t: t, home: filepath.Join(base, "home"), work: filepath.Join(base, "home", "wörk: a,b c"), private: filepath.Join(base, "private")}
	p.write(filepath.Join(p.home, ".ssh", "id"), "SECRET-KEY")
	p.write(filepath.Join(p.home, ".netrc"), "SECRET-NETRC")
	p.write(filepath.Join(p.home, "notes.txt"), "notes")
	p.write(filepath.Join(p.home, ".cache", "kept"), "cached")
	p.write(filepath.Join(p.work, ".env"), "SECRET-ENV")
	p.write(filepath.Join(p.work, "a.txt"), "a\n")
	p.write(filepath.Join(p.work, "dir", "b.txt"), "b\n")
	p.write(filepath.Join(p.work, ".git", "config"), "[core]\n")
	if err := os.MkdirAll(p.private, 0o700); err != nil {
		t.Fatal(err)
	}
	p.spec = Spec{
		Workspace: p.work, Private: p.private,
		Hidden: func() []string {
			return []string{filepath.Join(p.home, ".ssh"), filepath.Join(p.home, ".netrc"), filepath.Join(p.work, ".env"), filepath.Join(p.home, ".none")}
		},
		Layers: []string{filepath.Join(p.home, ".cache")},
		Protected: func(path, _ string) string {
			if strings.Contains(path, "/.git/config") || strings.Contains(path, "/.git/hooks") || strings.Contains(path, "/.vscode/") {
				return "runs later"
			}
			return ""
		},
	}
	if change != nil {
		change(&p.spec)
	}
	b, err := newBox(p.spec, ways)
	if err != nil {
		t.Fatal(err)
	}
	p.box = b
	return p
}

func (p *scene) write(path, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// read returns a file of the workspace, or "none".
func (p *scene) read(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.work, name))
	if err != nil {
		return "none"
	}
	return string(data)
}

// A done command is what a command in the box printed and left behind.
type done struct {
	out     string
	code    int
	outcome Remains
}

// run runs a shell text in the box.
func (p *scene) run(script string) done {
	p.t.Helper()
	stay, err := p.box.EnterBox(p.t.Context(), proc.Command{Path: "bash", Args: []string{"-c", script}, Dir: p.work, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home}})
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := proc.Run(p.t.Context(), stay.Command)
	if _, ok := errors.AsType[*proc.ExitError](err); err != nil && !ok {
		p.t.Fatal(err)
	}
	if err := stay.DescribeFailure(); err != nil {
		p.t.Fatal(err)
	}
	o, err := stay.LeaveBox(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return done{out: string(res.Stdout) + string(res.Stderr), code: res.ExitCode, outcome: o}
}

func names(changes []PathChange) (out []string) {
	for _, c := range changes {
		out = append(out, string(c.Kind)+" "+c.Path)
	}
	return out
}

func TestBoxMovesChanges(t *testing.T) {
	t.Parallel()
	p := newScene(t, nil)
	d := p.run(`set -e; pwd; echo A >> a.txt; echo new > new.txt; rm dir/b.txt; mkdir -p x/y; ln -s a.txt link; chmod +x a.txt; cat ../notes.txt; echo z > $TMPDIR/z; echo c > ~/.cache/c; cat ~/.cache/kept; id -u`)
	if d.code != 0 {
		t.Fatalf("code %d: %s", d.code, d.out)
	}
	if want := []string{"changed a.txt", "removed dir/b.txt", "created link", "created new.txt", "created x/y"}; !slices.Equal(names(d.outcome.Changes), want) {
		t.Errorf("changes %q, want %q", names(d.outcome.Changes), want)
	}
	if len(d.outcome.Held) > 0 {
		t.Errorf("held %v", d.outcome.Held)
	}
	if p.read("a.txt") != "a\nA\n" || p.read("new.txt") != "new\n" || p.read("dir/b.txt") != "none" || p.read("link") != "a\nA\n" {
		t.Error("the changes are not in the workspace")
	}
	if d = p.run(`cat $TMPDIR/z ~/.cache/c`); d.out != "z\nc\n" {
		t.Errorf("the next command in the box reads %q", d.out)
	}
	if _, err := os.Stat(filepath.Join(p.home, ".cache", "c")); err == nil {
		t.Error("the cache outside of the box has changed")
	}
}

func TestBoxKeepsBytes(t *testing.T) {
	t.Parallel()
	p := newScene(t, func(s *Spec) {
		hidden := s.Hidden
		s.Hidden = func() []string {
			return append(hidden(), filepath.Join(s.Workspace, "key\xff"), filepath.Join(s.Workspace, "..", ".ssh", "id"))
		}
	})
	p.write(filepath.Join(p.work, "key\xff"), "SECRET-LATIN")
	if d := p.run("cat key*; echo 'caf\xe9' > caf\xe9; cat ../.ssh/id"); strings.Contains(d.out, "SECRET") {
		t.Error("a path that is no UTF-8 is not hidden: " + d.out)
	}
	if p.read("caf\xe9") != "caf\xe9\n" {
		t.Error("a text that is no UTF-8 has changed on its way")
	}
}

func TestLeave(t *testing.T) {
	t.Parallel()
	p := newScene(t, nil)
	p.write(filepath.Join(p.work, "old", "deep", "f"), "f")
	p.write(filepath.Join(p.work, "old", ".vscode", "t"), "t")
	p.write(filepath.Join(p.work, "tree", "deep", "f"), "f")
	p.write(filepath.Join(p.work, "f.raddle-new"), "mine")
	d := p.run(`set -e; echo x > f; ln f hard; truncate -s 1T sparse; echo end >> sparse; truncate -s 3 sparse; truncate -s 40G holes; mkdir -m 750 empty; touch -d 2001-02-03T00:00:00Z f; chmod 4751 f; ln -s nowhere dangling; ln -s / root
		mkdir ro; echo r > ro/f; chmod 555 ro; mv tree moved; rm -rf old || true; mkfifo pipe; rm a.txt; mkdir a.txt; echo in > a.txt/in; rm -r dir; echo file > dir; head -c 3000000 /dev/urandom > big; sha256sum < big`)
	if d.code != 0 {
		t.Fatalf("code %d: %s", d.code, d.out)
	}
	info, err := os.Lstat(filepath.Join(p.work, "f"))
	if err != nil || info.Mode() != 0o751 || info.ModTime().Unix() != 981158400 {
		t.Errorf("f: %v %v", info, err)
	}
	if info, err := os.Lstat(filepath.Join(p.work, "holes")); err != nil || info.Size() != 40<<30 || info.Sys().(*syscall.Stat_t).Blocks > 1000 {
		t.Errorf("holes: %v %v", info, err)
	}
	for name, mode := range map[string]os.FileMode{"empty": os.ModeDir | 0o750, "ro": os.ModeDir | 0o555, "dangling": os.ModeSymlink | 0o777, "moved/deep/f": 0o644} {
		if info, err := os.Lstat(filepath.Join(p.work, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	for name, want := range map[string]string{"hard": "x\n", "f.raddle-new": "mine", "a.txt/in": "in\n", "dir": "file\n", "ro/f": "r\n", "old/.vscode/t": "t", "tree/deep/f": "none"} {
		if got := p.read(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(p.work, "pipe")); err == nil || len(d.outcome.Held) < 2 {
		t.Errorf("a named pipe is in the workspace, or held is %v", d.outcome.Held)
	}
	sums := d.out
	if d := p.run(`sha256sum < big`); !strings.Contains(sums, d.out) {
		t.Error(d.out)
	}
	if err := os.Chmod(filepath.Join(p.work, "ro"), 0o755); err != nil {
		t.Error(err)
	}
}

func TestLeaveHoldsBackWhatPeopleChanged(t *testing.T) {
	t.Parallel()
	p := newScene(t, nil)
	stay, err := p.box.EnterBox(t.Context(), proc.Command{Path: "bash", Args: []string{"-c", `echo command > a.txt; rm -rf dir; echo dir > dir; rm -rf x`}, Dir: p.work, Env: []string{"PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := proc.Run(t.Context(), stay.Command); err != nil {
		t.Fatal(err)
	}
	p.write(filepath.Join(p.work, "a.txt"), "person")
	p.write(filepath.Join(p.work, "dir", "new.txt"), "person")
	o, err := stay.LeaveBox(nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.read("a.txt") != "person" || p.read("dir/new.txt") != "person" || p.read("dir/b.txt") != "b\n" || len(o.Held) != 2 {
		t.Errorf("held %v", o.Held)
	}
}

// TestLeaveCopies moves files of a layer that lies on another file system.
func TestLeaveCopies(t *testing.T) {
	t.Parallel()
	upper, err := os.MkdirTemp("/dev/shm", "raddle-box-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(upper) })
	p := &scene{t: t, work: t.TempDir()}
	p.write(filepath.Join(p.work, "f"), "old")
	p.write(filepath.Join(p.work, "f.raddle-new"), "mine")
	p.write(filepath.Join(upper, "f"), "new")
	p.write(filepath.Join(upper, "holes"), "begin")
	long := strings.Repeat("n", 255)
	p.write(filepath.Join(upper, long), "long")
	then := time.Unix(981158400, 0)
	if err := errors.Join(os.Truncate(filepath.Join(upper, "holes"), 40<<30), os.Symlink("f", filepath.Join(upper, "link")), os.Chmod(filepath.Join(upper, "f"), 0o751), os.Chtimes(filepath.Join(upper, "f"), then, then)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(p.work)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	l := &layer{upper: upper, root: root, workspace: p.work, began: time.Now().Add(time.Hour)}
	l.moveDirectory("")
	if len(l.failed) > 0 || len(l.outcome.Held) > 0 {
		t.Fatalf("%v %v", l.failed, l.outcome.Held)
	}
	if info, err := os.Lstat(filepath.Join(p.work, "f")); err != nil || info.Mode() != 0o751 || !info.ModTime().Equal(then) {
		t.Errorf("f: %v %v", info, err)
	}
	if info, err := os.Lstat(filepath.Join(p.work, "holes")); err != nil || info.Size() != 40<<30 || info.Sys().(*syscall.Stat_t).Blocks > 1000 {
		t.Errorf("holes: %v %v", info, err)
	}
	if p.read("f") != "new" || p.read("f.raddle-new") != "mine" || p.read("link") != "new" || p.read(long) != "long" {
		t.Error("the files are not in the workspace")
	}
	entries, err := os.ReadDir(p.work)
	if err != nil || len(entries) != 5 {
		t.Errorf("the workspace has %v, %v", entries, err)
	}
}
