package box

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/base/proc"
)

// A living process runs in a box and answers shell texts, one a line.
type living struct {
	scene   *scene
	stay    *Stay
	process *proc.Process
	lines   *bufio.Reader
}

// startLiving starts a shell that lives in a view of the box.
func (p *scene) startLiving(b *Box) *living {
	p.t.Helper()
	stay, err := b.EnterBox(p.t.Context(), proc.Command{Path: "bash", Args: []string{"-c", `while read -r line; do eval "$line"; echo .; done`}, Dir: p.work, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home}})
	if err != nil {
		p.t.Fatal(err)
	}
	process, err := proc.Start(stay.Command, io.Discard)
	if err != nil {
		p.t.Fatal(err)
	}
	l := &living{scene: p, stay: stay, process: process, lines: bufio.NewReader(process)}
	p.t.Cleanup(func() { _ = process.Close() })
	return l
}

// ask runs a shell text in the process and returns what it prints, with its errors.
func (l *living) ask(text string) string {
	l.scene.t.Helper()
	if _, err := l.process.Write([]byte("{ " + text + "; } 2>&1\n")); err != nil {
		l.scene.t.Fatal(err)
	}
	var out strings.Builder
	for {
		line, err := l.lines.ReadString('\n')
		if err != nil {
			l.scene.t.Fatalf("%v after %q", err, out.String())
		}
		if line == ".\n" {
			return strings.TrimSpace(out.String())
		}
		out.WriteString(line)
	}
}

// end ends the process and its stay.
func (l *living) end() Remains {
	l.scene.t.Helper()
	_ = l.process.Close()
	r, err := l.stay.LeaveBox(nil)
	if err != nil {
		l.scene.t.Fatal(err)
	}
	return r
}

// replace writes a file of the workspace as editors do: a new one takes its place.
func (p *scene) replace(name, text string) {
	p.t.Helper()
	p.write(filepath.Join(p.work, name+".new"), text)
	if err := os.Rename(filepath.Join(p.work, name+".new"), filepath.Join(p.work, name)); err != nil {
		p.t.Fatal(err)
	}
}

// A process that lives in a read-only box sees each change of the workspace at once, makes none, and sees no secrets.
func TestReadOnlyBoxIsLive(t *testing.T) {
	t.Parallel()
	p := newScene(t, func(s *Spec) { s.ReadOnly = true })
	l := p.startLiving(p.box)
	if got := l.ask("cat a.txt; cat new.txt"); !strings.HasPrefix(got, "a\n") || !strings.Contains(got, "No such file") {
		t.Errorf("before: %q", got)
	}
	p.replace("a.txt", "b\n")
	p.write(filepath.Join(p.work, "new.txt"), "new\n")
	if err := os.Remove(filepath.Join(p.work, "dir", "b.txt")); err != nil {
		t.Fatal(err)
	}
	if got := l.ask("cat a.txt new.txt; ls dir"); got != "b\nnew" {
		t.Errorf("after: %q", got)
	}
	for _, text := range []string{"echo x > a.txt", "echo x > .git/hooks/x", "mkdir d", "rm a.txt", "touch ~/x", "chmod 777 a.txt", "ln a.txt $TMPDIR/l", "mv a.txt $TMPDIR/m"} {
		if got := l.ask(text); got == "" {
			t.Errorf("%s: no error", text)
		}
	}
	if got := l.ask("cat .env ~/.ssh/id ~/.netrc; echo x > $TMPDIR/x; echo c > ~/.cache/c; cat $TMPDIR/x ~/.cache/c"); !strings.HasSuffix(got, "x\nc") || strings.Contains(got, "SECRET") {
		t.Errorf("got %q", got)
	}
	if r := l.end(); len(r.Changes)+len(r.Held) != 0 || p.read("a.txt") != "b\n" {
		t.Errorf("left %+v, and a.txt is %q", r, p.read("a.txt"))
	}
}

// Commands share their layers over caches also while another one lives alone in the box.
func TestLivingAloneLeavesTheSharedLayers(t *testing.T) {
	t.Parallel()
	p := newScene(t, nil)
	l := p.startLiving(p.box.LivingAlone())
	l.ask("echo l > ~/.cache/l; echo w > w.txt; (trap '' TERM HUP; sleep 1000 &)")
	p.run("echo s > ~/.cache/s")
	if d := p.run("cat ~/.cache/s; cat ~/.cache/l w.txt"); !strings.HasPrefix(d.out, "s\n") || strings.Contains(d.out, "\nl") || strings.Contains(d.out, "\nw") {
		t.Errorf("got %q", d.out)
	}
	if p.read("w.txt") != "none" {
		t.Error("the change of a running command is in the workspace")
	}
	if r := l.end(); len(r.Changes) != 1 || p.read("w.txt") != "w\n" {
		t.Errorf("left %+v, and w.txt is %q", r, p.read("w.txt"))
	}
}
