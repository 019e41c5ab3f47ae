package box

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"raddle.dev/internal/base/proc"
)

// An assault is one attack of a group. Its script prints ESCAPED where only the command itself can see that it broke out.
type assault struct{ name, script string }

// A siege is a scene with servers and files outside, which must not notice anything.
type siege struct {
	*scene
	confined bool // the box holds without namespaces
	before   map[string]string
	env      []string
	arrived  chan string // what reached a server outside
	streams  []net.Listener
	packets  []net.PacketConn
	fifo     int
}

// besiegeEachWay runs attacks on a box with namespaces, and on one without.
func besiegeEachWay(t *testing.T, attack func(t *testing.T, s *siege)) {
	t.Parallel()
	t.Run("layered", func(t *testing.T) {
		t.Parallel()
		attack(t, newSiege(t, false))
	})
	t.Run("confined", func(t *testing.T) {
		t.Parallel()
		attack(t, newSiege(t, true))
	})
}

// newSiege builds the outside of a box.
func newSiege(t *testing.T, confined bool) *siege {
	t.Helper()
	build := newScene
	if confined {
		build = newConfinedScene
	}
	s := &siege{confined: confined, scene: build(t, func(spec *Spec) {
		spec.Protected = func(path, _ string) string {
			for _, part := range []string{"/.git/config", "/.git/hooks", "/.git/info/attributes", "/.vscode", "/.mcp.json", "/agents.md", "/.github/workflows"} {
				if strings.Contains(strings.ToLower(path), part) {
					return "runs later"
				}
			}
			if strings.HasSuffix(path, "/.git") {
				return "names the repository"
			}
			return ""
		}
	}), arrived: make(chan string, 64)}
	s.write(filepath.Join(s.home, ".bashrc"), "# mine\n")
	s.write(filepath.Join(s.home, "project", "main.c"), "int main;\n")
	for _, name := range []string{".git/hooks/pre-commit", ".git/info/attributes", ".git/objects/aa/bb", ".vscode/tasks.json", ".mcp.json", "AGENTS.md", ".github/workflows/ci.yml", "sub/.git/config", "sub/.vscode/tasks.json", "sub/code.c"} {
		s.write(filepath.Join(s.work, name), "mine "+name+"\n")
	}
	for name, target := range map[string]string{"out": s.home, "keylink": "../.ssh/id", "keydir": filepath.Join(s.home, ".ssh")} {
		if err := os.Symlink(target, filepath.Join(s.work, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, address := range [][2]string{{"tcp4", "127.0.0.1:0"}, {"tcp6", "[::1]:0"}, {"unix", s.short("home.sock")}, {"unix", s.short("w.sock")}, {"unix", "@" + filepath.Base(filepath.Dir(s.home)) + strconv.Itoa(os.Getpid()) + t.Name()}} {
		l, err := net.Listen(address[0], address[1])
		if err != nil && address[0] == "tcp6" {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		s.streams = append(s.streams, l)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				s.arrived <- "a connection to " + l.Addr().String()
				c.Close()
			}
		}()
	}
	for _, address := range [][2]string{{"udp4", "127.0.0.1:0"}, {"unixgram", s.short("log.sock")}} {
		l, err := net.ListenPacket(address[0], address[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		s.packets = append(s.packets, l)
		go func() {
			data := make([]byte, 256)
			for {
				n, _, err := l.ReadFrom(data)
				if err != nil {
					return
				}
				s.arrived <- "a packet to " + l.LocalAddr().String() + ": " + string(data[:n])
			}
		}()
	}
	fifo := filepath.Join(s.home, "fifo")
	if err := unix.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.fifo, err = unix.Open(fifo, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(s.fifo) })
	s.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "WORK=" + s.work, "PRIVATE=" + s.private, "PID=" + strconv.Itoa(os.Getpid()), "SSH_AUTH_SOCK=/gone", "DISPLAY=:0", "DOCKER_HOST=unix:///gone",
		"STREAMS=" + joinAddresses(s.streams), "PACKETS=" + s.packets[0].LocalAddr().String() + " " + s.packets[1].LocalAddr().String(),
	}
	s.before = s.snapshot()
	return s
}

// openWithoutNamespaces are the attacks that a box without namespaces does not hold, by their scripts or names, with the reason. Each is asserted to be as it is
// documented; that the objects of a repository can be removed is asserted by TestConfinedRemovesObjects.
var openWithoutNamespaces = map[string]string{
	`[ -w /etc ] && echo ESCAPED`:                   "access(2) answers by the owner and mode of a file, which Landlock does not change; writing fails",
	`[ -w /usr/bin ] && echo ESCAPED`:               "access(2), as above",
	`[ -w /etc/passwd ] && echo ESCAPED`:            "access(2), as above",
	`[ -w /proc/sys/kernel/panic ] && echo ESCAPED`: "access(2), as above",
	`[ -w /proc/sysrq-trigger ] && echo ESCAPED`:    "access(2), as above",
	`[ -w /sys/kernel/mm/ksm/run ] && echo ESCAPED`: "access(2), as above",
	"pidfd":              "a handle of a process outside can be had, but signals by it and what it has open cannot: see the attacks pidfd signal and pidfd_getfd",
	"capability":         "an ordinary user cannot take anything from the set that bounds capabilities (as root it is held); without new privileges no program gets any from it",
	".git/objects/aa/bb": "there is no layer: data of a repository that a command removes is gone",
}

// short returns a name of a socket, which must not be long.
func (s *siege) short(name string) string {
	dir, err := os.MkdirTemp("/tmp", "rs")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, name)
}

func joinAddresses(listeners []net.Listener) string {
	var all []string
	for _, l := range listeners {
		all = append(all, l.Addr().String())
	}
	return strings.Join(all, " ")
}

// snapshot returns what must not change: everything outside of the workspace, and what is protected in it.
func (s *siege) snapshot() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	note := func(path string, info fs.FileInfo) {
		data := ""
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				s.t.Fatal(err)
			}
			data = string(text)
		}
		owner := info.Sys().(*syscall.Stat_t)
		stamp := info.ModTime().UnixNano()
		if path == s.private {
			stamp = 0
		}
		all[path] = fmt.Sprint(info.Mode(), owner.Uid, owner.Nlink, stamp, data)
	}
	err := filepath.WalkDir(filepath.Dir(s.home), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == s.work || path == s.spec.Aside || isWithin(s.private, path) && path != s.private {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err == nil {
			note(path, info)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{".env", ".git/objects/aa/bb", ".git/config", ".git/hooks/pre-commit", ".git/info/attributes", ".vscode/tasks.json", ".mcp.json", "AGENTS.md", ".github/workflows/ci.yml", "sub/.git/config", "sub/.vscode/tasks.json"} {
		if s.confined && openWithoutNamespaces[name] != "" {
			continue
		}
		path := filepath.Join(s.work, name)
		if info, err := os.Lstat(path); err == nil {
			note(path, info)
		}
	}
	for _, path := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/etc", "/usr", "/"} {
		if info, err := os.Lstat(path); err == nil {
			all[path] = fmt.Sprint(info.Mode())
		}
	}
	return all
}

// storm runs a group of attacks in one stay and looks at what happened outside. It returns how many ran.
func (s *siege) storm(program string, args []string, want []assault) done {
	t := s.t
	t.Helper()
	stay, err := s.box.EnterBox(t.Context(), proc.Command{Path: program, Args: args, Dir: s.work, Env: s.env, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	res, err := proc.Run(t.Context(), stay.Command)
	if _, ok := errors.AsType[*proc.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	if err := stay.DescribeFailure(); err != nil {
		t.Fatal(err)
	}
	o, err := stay.LeaveBox(nil)
	if err != nil {
		t.Errorf("leave: %v", err)
	}
	d := done{out: string(res.Stdout) + string(res.Stderr), code: res.ExitCode, outcome: o}
	for _, a := range want {
		if !strings.Contains(d.out, "ran "+a.name+"\n") {
			t.Errorf("%s did not run: exit code %d, %s", a.name, d.code, d.out)
			break
		}
	}
	s.verify(d.out)
	return d
}

// attackName returns the name of an attack that says itself that it escaped.
func attackName(line string) string {
	name, _ := strings.CutPrefix(line, "ESCAPED ")
	name, _, _ = strings.Cut(name, " ")
	return name
}

// verify compares the outside with what it was.
func (s *siege) verify(output string) {
	t := s.t
	t.Helper()
	for line := range strings.Lines(output) {
		if name := attackName(line); s.confined && openWithoutNamespaces[name] != "" && (name != "capability" || os.Geteuid() != 0) {
			continue
		}
		if strings.Contains(line, "ESCAPED") || strings.Contains(line, "SECRET-") {
			t.Errorf("it escaped: %s", line)
		}
	}
	after := s.snapshot()
	for path, was := range s.before {
		if after[path] != was {
			t.Errorf("%s was %q and is %q", path, was, after[path])
		}
	}
	for path, is := range after {
		if _, was := s.before[path]; !was {
			t.Errorf("%s is new: %q", path, is)
		}
	}
	data := make([]byte, 100)
	if n, err := unix.Read(s.fifo, data); err != unix.EAGAIN {
		t.Errorf("the named pipe outside got %q, %v", data[:max(n, 0)], err)
	}
	select {
	case got := <-s.arrived:
		t.Errorf("a server outside got %s", got)
	default:
	}
	_ = filepath.WalkDir(s.work, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Base(path) != ".env" {
			if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte("SECRET-")) {
				t.Errorf("%s holds a secret", path)
			}
		}
		return nil
	})
}

// attackWith runs attacks as subshells of one shell.
func (s *siege) attackWith(attacks []assault) done {
	s.t.Helper()
	var text strings.Builder
	for _, a := range attacks {
		if why := openWithoutNamespaces[a.script]; s.confined && why != "" {
			if _, err := os.Stat(strings.Fields(a.script)[2]); err == nil && os.Geteuid() == 0 && !strings.Contains(s.run(a.script).out, "ESCAPED") {
				s.t.Errorf("%s is held: it need not be listed (%s)", a.script, why)
			}
			a.script = "true"
		}
		fmt.Fprintf(&text, "echo 'ran %s'; ( %s\n) </dev/null 2>&1 | head -c 2000\n", a.name, a.script)
	}
	return s.storm("bash", []string{"-c", text.String()}, attacks)
}

// python returns the program, which a test cannot do without.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("python3 is not installed")
	return ""
}

// preamble is what attacks in Python share: attempt reports an attack that raised nothing and did not return False.
const preamble = `
import os,sys,ctypes,errno,socket,struct,fcntl,mmap,stat,signal,time
H=os.environ["HOME"]; W=os.environ["WORK"]; P=os.environ["PRIVATE"]; PID=int(os.environ["PID"])
libc=ctypes.CDLL(None,use_errno=True)
def attempt(name,f):
    sys.stdout.write("ran %s\n"%name); sys.stdout.flush()
    try: r=f()
    except BaseException as e: return
    if r is not False: print("ESCAPED",name,repr(r)[:80])
def call(name,*a,ok=(1,13,38)):
    def f():
        ctypes.set_errno(0)
        r=libc.syscall(*[ctypes.c_long(x) if isinstance(x,int) else x for x in a])
        e=ctypes.get_errno()
        if r!=-1 or e not in ok: return (r,e)
        return False
    attempt(name,f)
`

// names returns attacks that Python counts itself: those whose names it prints are in the output.
func countRan(out string) (n int) {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "ran ") {
			n++
		}
	}
	return n
}

// writers are ways to change the file $T.
var writers = []string{
	`echo x > "$T"`, `echo x >> "$T"`, `cp a.txt "$T"`, `cp -f --remove-destination a.txt "$T"`, `echo m > m; mv -f m "$T"`, `ln -f a.txt "$T"`, `ln -sfn a.txt "$T"`, `dd if=/dev/zero of="$T" count=1 conv=notrunc status=none`, `sed -i s/o/x/ "$T"`,
	`truncate -s 0 "$T"`, `echo x | tee -a "$T"`, `install -m 777 a.txt "$T"`, `rm -f "$T"`, `unlink "$T"`, `chmod 777 "$T"`, `chown 1:1 "$T"`, `touch -d 1999-01-01 "$T"`, `mkdir -p "$T.d/e"`, `mkfifo "$T.f"`, `mknod "$T.n" c 0 0`,
	`mv "$T" "$T.moved"`, `tar cf - a.txt | tar xf - -C "$(dirname "$T")"`, `cd "$(dirname "$T")" && echo x > planted`, `exec 5<>"$T" && echo x >&5`, `ln "$T" hard && echo x > hard`, `find "$(dirname "$T")" -maxdepth 1 -name '*.txt' -delete`,
}

func TestAttackWrites(t *testing.T) { besiegeEachWay(t, attackWrites) }

func attackWrites(t *testing.T, s *siege) {
	targets := map[string]string{"home": `$HOME/notes.txt`, "rc": `$HOME/.bashrc`, "linked": `out/notes.txt`, "root": `/proc/self/root$HOME/notes.txt`, "cwd": `/proc/self/cwd/../project/main.c`, "private": `$PRIVATE/../x.txt`}
	total := 0
	var all []assault
	for place, target := range targets {
		for i, script := range writers {
			all = append(all, assault{fmt.Sprintf("write %s %d", place, i), `T="` + target + `"; ` + script})
		}
	}
	for _, script := range []string{`(echo x > $HOME/fifo)`, `(exec 5<>$HOME/fifo; echo x >&5)`, `chmod "$(stat -c %a /dev/null)" /dev/null && echo ESCAPED`, `touch -r /dev/urandom /dev/urandom && echo ESCAPED`, `[ -w /etc ] && echo ESCAPED`, `[ -w /usr/bin ] && echo ESCAPED`, `[ -w /etc/passwd ] && echo ESCAPED`, `rmdir $HOME/project`, `rm -rf $HOME/project`, `rm -rf out/project`, `ln -s $HOME d; mkdir d/x; echo x > d/y`,
		`mount --bind $HOME dir && echo ESCAPED`, `mount -o remount,rw / && echo ESCAPED`, `echo x > /proc/1/root$HOME/notes.txt`, `[ -w /proc/sys/kernel/panic ] && echo ESCAPED`, `[ -w /proc/sysrq-trigger ] && echo ESCAPED`, `[ -w /sys/kernel/mm/ksm/run ] && echo ESCAPED`,
		`echo 5 > /proc/1/oom_score_adj && echo ESCAPED`, `echo $$ > /sys/fs/cgroup/cgroup.procs && echo ESCAPED`, `mkdir /sys/fs/cgroup/x && echo ESCAPED`, `echo x > /proc/1/mem && echo ESCAPED`} {
		all = append(all, assault{fmt.Sprintf("write more %d", len(all)), script})
	}
	for len(all) > 0 {
		n := min(40, len(all))
		total += countRan(s.attackWith(all[:n]).out)
		all = all[n:]
	}
	if want := 170; total < want {
		t.Errorf("%d attacks ran, want %d", total, want)
	}
}

func TestAttackFilesByCalls(t *testing.T) { besiegeEachWay(t, attackFilesByCalls) }

func attackFilesByCalls(t *testing.T, s *siege) {
	d := s.storm(python(t), []string{"-c", preamble + `
def linked(p):
    fd=os.open(os.path.dirname(p),os.O_TMPFILE|os.O_RDWR); os.link("/proc/self/fd/%d"%fd,p+".t")
def reopened(p):
    fd=os.open(p,os.O_RDONLY); os.write(os.open("/proc/self/fd/%d"%fd,os.O_RDWR),b"x")
def byDirectory(p):
    fd=os.open(os.path.dirname(p),os.O_RDONLY); os.write(os.open("d.txt",os.O_CREAT|os.O_WRONLY,dir_fd=fd),b"x")
def fromPath(p):
    fd=os.open(p,os.O_PATH); os.write(os.open("/proc/self/fd/%d"%fd,os.O_WRONLY),b"x")
def flags(p):
    fd=os.open(p,os.O_RDONLY); fcntl.ioctl(fd,0x40086602,struct.pack("l",0x10))
def futimes(p):
    os.utime(os.open(p,os.O_RDONLY),(1,1))
def fchmod(p): os.fchmod(os.open(p,os.O_RDONLY),0o777)
def mapped(p):
    m=mmap.mmap(os.open(p,os.O_RDONLY),1,mmap.MAP_SHARED,mmap.PROT_READ|mmap.PROT_WRITE); m[0:1]=b"x"
def exchange(p):
    if libc.renameat2(-100,b"a.txt",-100,p.encode(),2)!=0: raise OSError
def cloned(p):
    fcntl.ioctl(os.open(p,os.O_RDONLY),0x40049409,os.open("a.txt",os.O_RDONLY))
ways={"truncate":lambda p:os.truncate(p,0),"append":lambda p:open(p,"a").write("x"),"rename":lambda p:os.rename("a.txt",p),"away":lambda p:os.rename(p,"stolen"),"link":lambda p:os.link("a.txt",p+".l"),"steal":lambda p:os.link(p,"hard"),
 "symlink":lambda p:os.symlink("x",p+".s"),"mkdir":lambda p:os.mkdir(p+".d"),"unlink":os.unlink,"chmod":lambda p:os.chmod(p,0o777),"chown":lambda p:os.chown(p,1,1),"utime":lambda p:os.utime(p,(1,1)),"xattr":lambda p:os.setxattr(p,"user.x",b"x"),"overlay":lambda p:os.setxattr(p,"user.overlay.opaque",b"y"),
 "fifo":lambda p:os.mkfifo(p+".p"),"node":lambda p:os.mknod(p+".n",stat.S_IFCHR|0o600,os.makedev(0,0)),"O_TMPFILE":linked,"reopen":reopened,"openat":byDirectory,"O_PATH":fromPath,"flags":flags,"futimes":futimes,"fchmod":fchmod,"mmap":mapped,"exchange":exchange,"clone":cloned}
for place,p in {"notes":H+"/notes.txt","rc":H+"/.bashrc","link":W+"/out/notes.txt","self":"/proc/self/root"+H+"/project/main.c","key":H+"/.ssh/id"}.items():
    for name,way in ways.items(): attempt("call %s %s"%(place,name),lambda:way(p))
for n in ("null","zero","full","random","urandom"):
    attempt("chmod "+n,lambda:os.chmod("/dev/"+n,stat.S_IMODE(os.stat("/dev/"+n).st_mode))); attempt("utime "+n,lambda:os.utime("/dev/"+n,ns=(os.stat("/dev/"+n).st_atime_ns,os.stat("/dev/"+n).st_mtime_ns)))
attempt("fifo",lambda:os.write(os.open(H+"/fifo",os.O_WRONLY|os.O_NONBLOCK),b"x"))
attempt("fifo rw",lambda:os.write(os.open(H+"/fifo",os.O_RDWR|os.O_NONBLOCK),b"x"))
for n in ("mem","kmsg","tty","sda","vda","nvme0n1","fuse","kvm","net/tun","port","tty0","console","loop0","dri/card0","snapshot","userfaultfd","vhost-net"):
    attempt("device "+n,lambda:os.open("/dev/"+n,os.O_RDONLY))
for n in (os.makedev(1,1),os.makedev(8,0),os.makedev(254,0),os.makedev(10,229),os.makedev(0,0)):
    attempt("mknod %d"%n,lambda:os.mknod("node",stat.S_IFCHR|0o666,n)); attempt("mknod block %d"%n,lambda:os.mknod("node",stat.S_IFBLK|0o666,n))
`}, nil)
	if n := countRan(d.out); n < 160 {
		t.Errorf("%d attacks ran: %s", n, d.out)
	}
}

func TestAttackSecrets(t *testing.T) { besiegeEachWay(t, attackSecrets) }

func attackSecrets(t *testing.T, s *siege) {
	readers := []string{`cat "$T"`, `head -c 99 "$T"`, `tail -n 9 "$T"`, `dd if="$T" status=none`, `grep . "$T"`, `sed -n p "$T"`, `awk '{print}' "$T"`, `base64 "$T" | base64 -d`, `cp "$T" c1; cat c1`, `ln -f "$T" c2; cat c2`, `ln -sfn "$(readlink -f "$T")" c3; cat c3`, `tar chf c4 "$T"; tar xOf c4`,
		`sort "$T"`, `cut -c1- "$T"`, `tac "$T"`, `mapfile x < "$T"; echo "${x[@]}"`, `echo "$(<"$T")"`, `mv "$T" c5; cat c5`, `. "$T"`, `diff "$T" a.txt`, `find "$(dirname "$T")" -type f -exec cat {} +`, `cd "$(dirname "$T")"; for f in ./* .[a-z]*; do [ -f "$f" ] && cat "$f"; done`, `exec 7<"$T"; cat /proc/self/fd/7`, `cat -- "$(dirname "$T")/../$(basename "$(dirname "$T")")/$(basename "$T")"`, `rm -f "$T"; cat "$T"; umount "$T"; cat "$T"`}
	places := map[string]string{"key": `$HOME/.ssh/id`, "netrc": `$HOME/.netrc`, "env": `$WORK/.env`, "link": `keylink`, "dir": `keydir/id`, "root": `/proc/self/root$HOME/.ssh/id`, "cwd": `/proc/self/cwd/.env`, "one": `/proc/1/cwd$HOME/.ssh/id`}
	total := 0
	for name, place := range places {
		var all []assault
		for i, script := range readers {
			all = append(all, assault{fmt.Sprintf("read %s %d", name, i), `T="` + place + `"; ` + script})
		}
		total += countRan(s.attackWith(all).out)
	}
	if total < 190 {
		t.Errorf("%d attacks ran", total)
	}
	if d := s.run(`cat /proc/1/environ /proc/1/maps /proc/1/mem; cat /proc/1/fd/3 && echo "ESCAPED"; cat /proc/$PPID/environ`); strings.Contains(d.out, "ESCAPED") {
		t.Error(d.out)
	}
}

// protectedAttacks change protected names in ways that their paths do not show.
var protectedAttacks = []string{
	`echo x > .git/config`, `echo x > .git/config.worktree; rm .git/config`, `sed -i s/core/evil/ .git/config`, `echo x > n; mv n .git/config`, `ln -sfn ../a.txt .git/config`, `rm -f .git/config; mkdir .git/config`, `rm -rf .git/hooks; ln -s ../dir .git/hooks`, `rm -rf .git/hooks; echo x > .git/hooks`,
	`echo x > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit`, `chmod 755 .git/hooks/pre-commit`, `chmod 777 .git/hooks`, `chmod 700 .vscode`, `touch -d 1999-01-01 AGENTS.md`, `echo x > .git/hooks/post-checkout`, `mkdir -p .git/modules/x; echo x > .git/info/attributes`,
	`rm -rf .git; mkdir .git; echo x > .git/config`, `mv .git g; mv g .git`, `mv .git g; mkdir .git; echo x > .git/config`, `rm -rf .git; ln -s dir .git`, `rm -rf .git; echo 'gitdir: dir' > .git`, `rm -rf sub; mkdir -p sub/.git; echo x > sub/.git/config`, `mv sub s2; mkdir sub; mv s2/.git sub/.git; echo x > sub/.git/config`,
	`rm -rf sub`, `rm -rf sub; echo x > sub`, `rm -rf sub; ln -s dir sub`, `rm -rf sub/.vscode`, `rm -rf .vscode; mkdir .vscode`, `rm -rf .vscode; ln -s dir .vscode`, `mkdir e; echo x > e/tasks.json; rm -rf .vscode; mv e .vscode`, `rm -rf .github; mkdir -p .github/workflows`, `rm -rf .github`, `mv .github .hub; rm -rf .hub`,
	`rm AGENTS.md`, `rm AGENTS.md; mkdir AGENTS.md`, `rm AGENTS.md; mkfifo AGENTS.md`, `ln -f a.txt AGENTS.md`, `echo x | tee .mcp.json`, `ln -s .git/hooks h; echo x > h/pre-commit`, `ln -s .git g; echo x > g/config`, `ln -s "$PWD" here; echo x > here/.vscode/tasks.json`, `cd .git/hooks; echo x > pre-commit`, `cd dir; echo x > ../AGENTS.md`,
	`ln .mcp.json hard && echo x > hard`, `setfattr -n user.overlay.opaque -v y .vscode`, `setfattr -n user.overlay.opaque -v y .git`, `setfattr -n user.overlay.redirect -v /x .git`, `setfattr -n user.overlay.whiteout -v y AGENTS.md`, `setfattr -n trusted.overlay.opaque -v y .git`, `echo x > /proc/self/cwd/.git/config`, `mv dir .github/d2; mv .github/workflows dir`,
	`git config core.fsmonitor /evil`, `git config --file .git/config alias.x '!evil'`, `git init -q .; git config core.hooksPath x`, `rm -rf .git/objects; mkdir .git/objects; rm -rf .git`, `truncate -s 0 .git/hooks/pre-commit`, `chmod -R a+rwx .git/hooks`, `chown -R 0 .git/hooks; touch .git/hooks/pre-commit`,
}

func TestAttackProtectedNames(t *testing.T) { besiegeEachWay(t, attackProtectedNames) }

func attackProtectedNames(t *testing.T, s *siege) {
	// Each attack is a command of its own, because each begins with the workspace as it is.
	for i, script := range protectedAttacks {
		name := fmt.Sprintf("protected %d", i)
		s.attackWith([]assault{{name, script}})
		if t.Failed() {
			t.Fatalf("%s: %s", name, script)
		}
	}
	s.write(filepath.Join(s.work, "deep", "dir", "f"), "x")
	long := strings.Repeat("n", 250)
	d := s.attackWith([]assault{
		{"new protected", `mkdir -p .VSCODE x/.vscode x/.git/hooks; echo x > .VSCODE/tasks.json; echo x > x/.vscode/t; echo x > x/.git/hooks/pre-push; echo x > x/.git/config; echo x > Agents.md; echo x > x/AGENTS.md; mkdir -p x/.github/workflows; echo x > x/.github/workflows/y`},
		{"by a parent", `mkdir -p p/q; echo x > p/q/config; mkdir p/.git; mv p/q p/.git/hooks; mkdir r; mkdir r/v; echo x > r/v/tasks.json; mv r/v r/.vscode; mv r rr`},
		{"names", `echo x > ` + long + `; echo x > $'new\nline'; echo x > $'bad\xff'; echo x > ' '; mkdir $'d\xff'; echo x > $'d\xff/y'`},
	})
	for _, name := range []string{".VSCODE/tasks.json", "x/.vscode/t", "x/.git/hooks/pre-push", "x/.git/config", "Agents.md", "x/AGENTS.md", "x/.github/workflows/y", "p/.git/hooks/config", "rr/.vscode/tasks.json"} {
		if s.read(name) != "none" {
			t.Errorf("%s is in the workspace", name)
		}
	}
	for _, name := range []string{long, "new\nline", "bad\xff", " ", "d\xff/y"} {
		if s.read(name) != "x\n" {
			t.Errorf("%q is not in the workspace: %v", name, d.outcome.Held)
		}
	}
}

func TestAttackNetwork(t *testing.T) { besiegeEachWay(t, attackNetwork) }

func attackNetwork(t *testing.T, s *siege) {
	d := s.storm(python(t), []string{"-c", preamble + `
for n in range(0,46):
    for kind in (1,2,3,5):
        if n in (2,10,16) and kind!=3: continue
        if n==16: continue
        attempt("socket %d %d"%(n,kind),lambda:socket.socket(n,kind,0) and None)
for kind in (2,3): attempt("socketpair %d"%kind,lambda:socket.socketpair(socket.AF_UNIX,kind) and None)
streams=os.environ["STREAMS"].split(" "); packets=os.environ["PACKETS"].split(" ")
def tcp(a):
    h,p=a.rsplit(":",1); h=h.strip("[]")
    c=socket.create_connection((h,int(p)),1); c.send(b"x")
for a in streams:
    if ":" in a: attempt("tcp "+a,lambda:tcp(a))
    else:
        a="\0"+a[1:] if a[0]=="@" else a
        def unix(kind=1):
            c=socket.socket(1,kind); c.connect(a)
        attempt("unix stream",unix)
        def pair():
            x,y=socket.socketpair(); y.close(); x.connect(a)
        attempt("pair connect",pair)
def udp():
    c=socket.socket(2,2); h,p=packets[0].split(":"); c.sendto(b"x",(h,int(p)))
try: udp()
except OSError: pass
def gram():
    x,y=socket.socketpair(socket.AF_UNIX,socket.SOCK_DGRAM); x.sendto(b"from inside",packets[1])
attempt("datagram of a pair",gram)
def gram2():
    x,y=socket.socketpair(socket.AF_UNIX,socket.SOCK_DGRAM); x.connect(packets[1]); x.send(b"from inside")
attempt("connected pair",gram2)
def seq():
    x,y=socket.socketpair(socket.AF_UNIX,socket.SOCK_SEQPACKET); x.sendto(b"from inside",packets[1])
try: seq()
except OSError: pass
x,y=socket.socketpair(); x.send(b"ok"); assert y.recv(9)==b"ok"
attempt("listen on a pair",lambda:socket.socketpair()[0].listen(1))
for h in ("192.0.2.1","10.0.0.1","169.254.169.254","8.8.8.8","2001:db8::1"):
    for p in (53,80,443): attempt("connect %s %d"%(h,p),lambda:socket.create_connection((h,p),1))
    def send():
        c=socket.socket(10 if ":" in h else 2,2); c.sendto(b"x",(h,53))
    attempt("udp "+h,send)
attempt("dns",lambda:socket.getaddrinfo("example.com",80))
l=socket.socket(); l.bind(("127.0.0.1",0)); l.listen(1); socket.create_connection(l.getsockname(),2)
print("loopback works")
attempt("terminal",lambda:fcntl.ioctl(0,0x5412,b"x")); attempt("terminal 2",lambda:fcntl.ioctl(0,0x541c,b"\x03"))
m,sl=os.openpty()
attempt("own terminal",lambda:fcntl.ioctl(sl,0x5412,b"x"))
`}, nil)
	if n := countRan(d.out); n < 190 || strings.Contains(d.out, "loopback works") == s.confined {
		t.Errorf("%d attacks ran: %s", n, d.out)
	}
}

func TestAttackKernel(t *testing.T) { besiegeEachWay(t, attackKernel) }

func attackKernel(t *testing.T, s *siege) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the numbers are those of amd64")
	}
	// A descriptor that is open here, without close-on-exec.
	fd, err := unix.Open(filepath.Join(s.home, ".ssh", "id"), unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	d := s.storm(python(t), []string{"-c", preamble + `
b=ctypes.create_string_buffer(4096)
table={"ptrace":(101,16,1,0,0),"traceme":(101,0,0,0,0),"vm_readv":(310,1,b,1,b,1,0),"vm_writev":(311,1,b,1,b,1,0),"kcmp":(312,1,1,0,0,0),"pidfd_getfd":(438,0,0,0),"madvise":(440,0,b,0,0,0),"keyctl":(250,0,-3,1),"add_key":(248,b"user",b"x",b"y",1,-3),"request_key":(249,b"user",b"x",0,0),
"mount":(165,b"x",b"/mnt",b"tmpfs",0,0),"bind":(165,H.encode(),(W+"/dir").encode(),0,4096,0),"remount":(165,0,b"/",0,32|4096,0),"umount":(166,(H+"/.ssh").encode(),2),"pivot":(155,b"/",b"/"),"chroot":(161,b"/"),"open_tree":(428,-100,b"/",1),"move_mount":(429,-100,b"/",-100,b"/mnt",0),"fsopen":(430,b"tmpfs",0),"fsconfig":(431,0,6,0,0,0),"fsmount":(432,0,0,0),"fspick":(433,-100,b"/",0),"mount_setattr":(442,-100,b"/",0x8000,b,32),"open_tree_attr":(467,-100,b"/",1,b,32),
"quotactl":(179,0,b,0,b),"quotactl_fd":(443,0,0,0,b),"swapon":(167,b"/x",0),"swapoff":(168,b"/x"),"bpf":(321,0,b,64),"perf":(298,b,0,-1,-1,0),"userfaultfd":(323,0),"userfaultfd user":(323,1),"handle":(303,-100,b"/",b,b,0),"by handle":(304,-100,b,0),"fanotify":(300,0,0),"syslog":(103,3,b,100),"kexec":(246,0,0,0,0),"kexec_file":(320,0,0,0,0,0),"init_module":(175,b,0,b""),"finit_module":(313,0,b"",0),"delete_module":(176,b"x",0),"reboot":(169,0xfee1dead,672274793,0,0),"acct":(163,0),
"settimeofday":(164,b,0),"clock_settime":(227,0,b),"adjtimex":(159,b),"clock_adjtime":(305,0,b),"hostname":(170,b"x",1),"domain":(171,b"x",1),"vhangup":(153,),"iopl":(172,3),"ioperm":(173,0,1,1),"clone3":(435,b,88),"uring":(425,1,b),"uring enter":(426,0,0,0,0,0,0),"uring register":(427,0,0,0,0),"setuid":(105,1),"setgid":(106,1),"setgroups":(116,0,0),"nice":(141,0,0,-10),"mlock limit":(160,7,struct.pack("QQ",1<<30,1<<30)),"prlimit 1":(302,PID,7,b,0)}
for name,a in table.items(): call("kernel "+name,*a,ok=(1,3,13,22,38) if name in ("setuid","setgid") else (1,3,13,38))
for name,flag in {"user":0x10000000,"mount":0x20000,"pid":0x20000000,"net":0x40000000,"ipc":0x8000000,"uts":0x4000000,"cgroup":0x2000000,"time":0x80}.items():
    call("unshare "+name,272,flag)
    if name!="time": call("clone "+name,56,flag|17,0,0,0,0)
for n in ("mnt","net","pid","user","ipc","uts","cgroup","time"):
    attempt("ns 1 "+n,lambda:os.open("/proc/1/ns/"+n,0)); call("setns "+n,308,os.open("/proc/self/ns/"+n,0),0)
for c in range(0,41): attempt("capability %d"%c,lambda:libc.prctl(23,c,0,0,0)==1)
attempt("ambient",lambda:libc.prctl(47,2,21,0,0)==0)
attempt("new privileges",lambda:libc.prctl(38,0,0,0,0)==0)
attempt("seccomp off",lambda:libc.prctl(21,0,0,0,0)==0)
attempt("securebits",lambda:libc.prctl(28,0,0,0,0)==0)
attempt("mm",lambda:libc.prctl(35,13,0,0,0)==0)
code=mmap.mmap(-1,4096,prot=7)
def machine(x):
    code.seek(0); code.write(x)
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
for n in (20,39,102,120,21,26,359,310,11):
    # push rbx; mov eax,n; xor ebx,ebx; xor ecx,ecx; int 0x80; pop rbx; ret
    attempt("int80 %d"%n,lambda:False if machine(b"\x53\xb8"+struct.pack("<I",n)+b"\x31\xdb\x31\xc9\xcd\x80\x5b\xc3") in (-1,-38) else n)
for n in (39,165,41,101,56,272,513,520,521,545): call("x32 %d"%n,0x40000000|n,0,0,0,0,0)
for n in range(3,64): attempt("fd %d"%n,lambda:os.read(n,9) if n!=code else False)
for p in (PID,-PID,2**22,PID-1):
    for sig in (0,15,9):
        if abs(p)>400: attempt("kill %d %d"%(p,sig),lambda:os.kill(p,sig))
attempt("pidfd",lambda:os.pidfd_open(PID) if PID>400 else False)
for sig in (0,15,9): attempt("pidfd signal %d"%sig,lambda:signal.pidfd_send_signal(os.pidfd_open(PID),sig) if PID>400 else False)
def owned():
    r,w=os.pipe(); fcntl.fcntl(r,8,PID); fcntl.fcntl(r,10,9); fcntl.fcntl(r,4,os.O_ASYNC); os.write(w,b"x"); return False
if PID>400: attempt("owner of a pipe",owned)
if PID>400:
    for n,a in {"priority":(141,0,PID,10),"affinity":(203,PID,8,b"\x01"*8),"scheduler":(144,PID,0,b),"limits":(302,PID,7,b,0),"io priority":(251,1,PID,0),"migrate":(256,PID,1,b,b),"move":(279,PID,0,0,0,0,0)}.items(): call("outside "+n,*a,ok=(1,3,13,38))
    def niced(which): libc.setpriority(which,0,10); return os.getpriority(os.PRIO_PROCESS,PID)==10
    for which in (1,2): attempt("outside priority of %d"%which,lambda:niced(which))
for n,a in {"shmget":(29,1234,4096,0o1666),"semget":(64,1234,1,0o1666),"msgget":(68,1234,0o1666),"mq_open":(240,b"raddle-attack",0o102,0o666,0)}.items(): attempt("ipc "+n,lambda:libc.syscall(*a)!=-1 and W in open("/proc/sysvipc/shm").read())
attempt("init mem",lambda:open("/proc/1/mem","rb")); attempt("init environ",lambda:open("/proc/1/environ","rb").read()); attempt("init root",lambda:os.listdir("/proc/1/root")); [attempt("init fd %d"%n,lambda:os.open("/proc/1/fd/%d"%n,0)) for n in range(0,12)]; attempt("init exe",lambda:os.readlink("/proc/1/exe")); attempt("init cwd",lambda:os.listdir("/proc/1/cwd"))
attempt("uid_map",lambda:os.write(os.open("/proc/self/uid_map",1),b"0 0 10")); attempt("setgroups file",lambda:os.write(os.open("/proc/self/setgroups",1),b"allow"))
for v in ("SSH_AUTH_SOCK","DISPLAY","DOCKER_HOST"): attempt("variable "+v,lambda:os.environ[v])
def setuid(): 
    import subprocess
    return subprocess.run(["su","-c","true"],capture_output=True,stdin=subprocess.DEVNULL).returncode==0 and open("/proc/self/status").read().count("CapEff:\t0000000000000000")==0
attempt("su",setuid)
print("end")
`}, nil)
	if n := countRan(d.out); n < 245 || !strings.Contains(d.out, "end\n") {
		t.Errorf("%d attacks ran: %s", n, d.out)
	}
}

func TestAttackProcesses(t *testing.T) { besiegeEachWay(t, attackProcesses) }

func attackProcesses(t *testing.T, s *siege) {
	mark := "raddle-attack-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	d := s.attackWith([]assault{
		{"daemon", `setsid bash -c 'exec -a ` + mark + ` sleep 300' >/dev/null 2>&1 &`},
		{"double fork", `( ( setsid nohup bash -c 'exec -a ` + mark + ` sleep 300' >/dev/null 2>&1 & ) & )`},
		{"writes later", `setsid bash -c 'while :; do echo x >> later; sleep 0.01; done' >/dev/null 2>&1 &`},
		{"leaks", `echo leaked > /dev/shm/leak; echo leaked > $TMPDIR/leak`},
		{"flood", `yes | head -c 40000000`},
		{"bomb", `ulimit -u 200; timeout 1 bash -c 'for i in $(seq 300); do sleep 300 & done' >/dev/null 2>&1; true`},
	})
	if d.code != 0 {
		t.Errorf("code %d: %s", d.code, d.out)
	}
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range found {
		if text, err := os.ReadFile(path); err == nil && bytes.HasPrefix(text, []byte(mark)) {
			t.Errorf("%s is left", path)
		}
	}
	first := s.read("later")
	if d := s.run(`ls /dev/shm; cat later`); strings.Contains(d.out, "leak") || s.read("later") != first {
		t.Errorf("something is left: %s", d.out)
	}
	if d := s.run(`kill -9 $$; sleep 60`); d.code == 0 {
		t.Error("a command that killed itself has succeeded")
	}
	for _, signal := range []string{"TERM", "INT", "HUP", "ABRT", "SEGV", "KILL", "STOP", "QUIT", "TRAP"} {
		s.run(`[ $PPID = 1 ] && kill -` + signal + ` 1; sleep 0.01; echo x > after`)
	}
	s.verify("")
	other := newSiege(t, s.confined)
	if d := other.run(`cat $TMPDIR/leak /dev/shm/leak`); strings.Contains(d.out, "leaked") {
		t.Error("another box reads what the first one has written")
	}
}

// TestKilledOwner kills a process that runs a command in a box: nothing of it is left.
func TestKilledOwner(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("RADDLE_TEST_OWNER"); dir != "" {
		b, err := newBox(ownersSpec(dir), ownersWays(os.Getenv("RADDLE_TEST_CONFINED") != ""))
		if err != nil {
			t.Fatal(err)
		}
		stay, err := b.EnterBox(t.Context(), proc.Command{Path: "bash", Args: []string{"-c", `echo x > new; echo x > hook; setsid bash -c 'exec -a "$MARK" sleep 300' & echo $$ > "$TMPDIR/started"; exec -a "$MARK" sleep 300`}, Dir: filepath.Join(dir, "work"), Env: []string{"PATH=" + os.Getenv("PATH"), "MARK=" + filepath.Base(filepath.Dir(dir))}})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = proc.Run(context.Background(), stay.Command)
		return
	}
	t.Run("layered", func(t *testing.T) { killOwner(t, false) })
	t.Run("confined", func(t *testing.T) { killOwner(t, true) })
}

// ownersSpec returns what the box of a process that is killed allows.
func ownersSpec(dir string) Spec {
	protected := func(path, _ string) string {
		if filepath.Base(path) == "hook" {
			return "runs later"
		}
		return ""
	}
	return Spec{Workspace: filepath.Join(dir, "work"), Private: filepath.Join(dir, "private"), Aside: filepath.Join(dir, "aside"), Protected: protected}
}

// ownersWays returns the way of a box that holds with or without namespaces.
func ownersWays(confine bool) []way {
	if confine {
		return []way{&confined{}}
	}
	return []way{&layered{}}
}

// killOwner kills a process that runs a command in a box, and looks at what is left.
func killOwner(t *testing.T, confine bool) {
	if confine && landlockVersion() < neededLandlock {
		t.Skip("the kernel has no Landlock of the version that is needed")
	}
	dir := filepath.Join(t.TempDir(), "x")
	mark := filepath.Base(filepath.Dir(dir))
	mark = mark + strconv.Itoa(os.Getpid())
	dir = filepath.Join(filepath.Dir(dir), mark, "x")
	for _, name := range []string{"work", "private"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	owner := exec.Command(self, "-test.run=^TestKilledOwner$")
	owner.Env = append(os.Environ(), "RADDLE_TEST_OWNER="+dir)
	if confine {
		owner.Env = append(owner.Env, "RADDLE_TEST_CONFINED=1")
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the command runs", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "private", "tmp", "started"))
		return err == nil && len(text) > 0 && len(running(mark)) > 1
	})
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	await(t, "the command is gone", func() bool { return len(running(mark)) == 0 })
	if confine {
		if _, err := newBox(ownersSpec(dir), ownersWays(true)); err != nil {
			t.Error(err)
		}
	} else if _, err := os.Lstat(filepath.Join(dir, "work", "new")); err == nil {
		t.Error("a command that was cut off has changed the workspace")
	}
	if _, err := os.Lstat(filepath.Join(dir, "work", "hook")); err == nil {
		t.Error("a protected file of a command that was cut off is in the workspace")
	}
}

// running returns the processes whose name is a mark.
func running(mark string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if text, err := os.ReadFile(path); err == nil && bytes.HasPrefix(text, []byte(mark)) {
			found = append(found, path)
		}
	}
	return found
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	end := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
