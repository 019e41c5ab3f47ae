package box

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/proc"
)

// childName is the name under which this program is started as the first process of a box.
const childName = "raddle-box"

// These are the numbers of the file with the plan, and of the socket for the listener, in the first process.
const (
	controlFile = 3
	proxySocket = 4
)

// A control is how this process and the first process of a box talk: by a file with the plan before and the report after, and by a socket over which
// the listener of the proxy comes.
type control struct {
	file  *os.File
	ours  *os.File // nil: there is no proxy
	other *os.File // the end of the first process
}

// newControl makes the file, and the socket if there is a proxy.
func newControl(proxy bool) (*control, error) {
	fd, err := unix.MemfdCreate("raddle-box", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	c := &control{file: os.NewFile(uintptr(fd), "raddle-box")}
	if !proxy {
		return c, nil
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		_ = c.file.Close()
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	c.ours, c.other = os.NewFile(uintptr(pair[0]), "proxy"), os.NewFile(uintptr(pair[1]), "proxy")
	return c, nil
}

// closeFiles closes what is open.
func (c *control) closeFiles() {
	_ = c.file.Close()
	if c.ours != nil {
		_ = c.ours.Close()
		_ = c.other.Close()
	}
}

// receiveListener returns the listener that the first process made in its network.
func (c *control) receiveListener() (net.Listener, error) {
	conn, err := net.FileConn(c.ours)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	room := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), room)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(room[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("the box has passed no listener"), err)
	}
	rights, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(rights[0]), "listener")
	defer f.Close()
	return net.FileListener(f)
}

// serveNetwork serves the proxy of the stay until its command has ended.
func (s *Stay) serveNetwork() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if l, err := s.control.receiveListener(); err == nil {
			_ = s.box.spec.Serve(ctx, l, s.box.hosts)
			_ = l.Close()
		}
	}()
	s.served = func() {
		cancel()
		_ = s.control.other.Close() // the listener may never have come
		<-done
	}
}

// EnterBox prepares a stay for a command. The caller runs Stay.Command once, and then calls Leave.
func (b *Box) EnterBox(c proc.Command) (*Stay, error) {
	b.mu.Lock()
	b.stays++
	s := &Stay{box: b, dir: filepath.Join(b.spec.Private, "stay"+strconv.Itoa(b.stays)), shares: !b.shared}
	b.shared = true
	b.mu.Unlock()
	p, err := s.makePlan()
	if err != nil {
		s.releaseStay()
		return nil, err
	}
	if s.control, err = newControl(b.spec.Serve != nil); err != nil {
		s.releaseStay()
		return nil, err
	}
	if b.spec.Serve != nil {
		p.Proxy = ProxyAddress
		s.serveNetwork()
	}
	s.Command = c
	s.Command.Env = b.boxedEnvironment(c.Env)
	s.began = time.Now()
	s.Command.Inside = func(cmd *exec.Cmd) error { return s.wrapCommand(p, cmd) }
	return s, nil
}

// makePlan creates the directories of the stay and says what its first process prepares.
func (s *Stay) makePlan() (plan, error) {
	b := s.box
	p := plan{Writable: []string{b.TempDir()}}
	if b.spec.Hidden != nil {
		p.Hidden = b.spec.Hidden()
	}
	p.Overlays = append(p.Overlays, overlay{Dir: b.spec.Workspace, Upper: filepath.Join(s.dir, "upper"), Work: filepath.Join(s.dir, "work")})
	layers := filepath.Join(b.spec.Private, "layers")
	if !s.shares {
		layers = filepath.Join(s.dir, "layers")
	}
	for i, dir := range b.spec.Layers {
		if real, err := filepath.EvalSymlinks(dir); err == nil && !overlaps(real, b.spec.Private) {
			at := filepath.Join(layers, strconv.Itoa(i))
			p.Overlays = append(p.Overlays, overlay{Dir: real, Upper: filepath.Join(at, "upper"), Work: filepath.Join(at, "work")})
		}
	}
	for _, o := range p.Overlays {
		if err := errors.Join(os.MkdirAll(o.Upper, 0o700), os.MkdirAll(o.Work, 0o700)); err != nil {
			return plan{}, err
		}
		if info, err := os.Stat(o.Dir); err == nil {
			_ = os.Chmod(o.Upper, info.Mode().Perm()) // the layer's own directory gives the mode of the merged one
		}
	}
	return p, nil
}

// wrapCommand changes how a command is started: this program starts in new namespaces, and runs the command there.
func (s *Stay) wrapCommand(p plan, cmd *exec.Cmd) error {
	p.Path, p.Args, p.Env, p.Dir = cmd.Path, cmd.Args, cmd.Env, cmd.Dir
	if p.Path != "" && !filepath.IsAbs(p.Path) {
		p.Path = filepath.Join(p.Dir, p.Path)
	}
	return s.control.startProcess(p, cmd)
}

// startProcess writes the plan and makes cmd the first process of new namespaces.
func (c *control) startProcess(p plan, cmd *exec.Cmd) error {
	if err := gob.NewEncoder(io.NewOffsetWriter(c.file, 0)).Encode(p); err != nil {
		return err
	}
	cmd.Path, cmd.Args, cmd.Dir = "/proc/self/exe", []string{childName}, "/"
	cmd.Env = []string{"GOMAXPROCS=2", "GOGC=off", "GORACE=atexit_sleep_ms=0"} // a program with the race detector otherwise ends a second later
	cmd.ExtraFiles = append(cmd.ExtraFiles, c.file)
	if c.other != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.other)
	}
	a := cmd.SysProcAttr
	if a == nil {
		a = &syscall.SysProcAttr{}
		cmd.SysProcAttr = a
	}
	a.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	a.GidMappingsEnableSetgroups = false
	// Without the rights to files, which reach only files of this user, the system cannot keep a layer for an ordinary user.
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID}
	return nil
}

// readReport returns what the first process said at its end. Without one it was ended before.
func (c *control) readReport() (report, error) {
	data, err := io.ReadAll(io.NewSectionReader(c.file, 0, 1<<20))
	if err != nil {
		return report{}, err
	}
	var r report
	if len(data) == 0 || data[0] != '!' {
		return r, nil
	}
	return r, json.Unmarshal(data[1:], &r)
}

// releaseStay frees what the stay uses, and removes its layer.
func (s *Stay) releaseStay() {
	if s.served != nil {
		s.served()
	}
	if s.control != nil {
		s.control.closeFiles()
	}
	removeTree(s.dir)
	if s.shares {
		s.box.mu.Lock()
		s.box.shared = false
		s.box.mu.Unlock()
	}
}

// removeTree removes a directory whose subdirectories may be locked: the system leaves such ones in the work directory of a layer.
func removeTree(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// DescribeFailure returns why the box of a stay could not be prepared, wrapping [ErrNone]; nil: it was prepared, and the command ran in it. It may
// be called when the command has ended, before Leave.
func (s *Stay) DescribeFailure() error {
	r, err := s.control.readReport()
	if err == nil && r.Failed != "" {
		err = fmt.Errorf("%w: %s", ErrNone, r.Failed)
	}
	return err
}

// hasMounts reports whether other file systems are mounted below a directory: a layer would not show them.
func hasMounts(dir string) bool {
	data, err := plainfile.Read("/proc/self/mountinfo", 16<<20)
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && isWithin(dir, unescapeMount(fields[4])) && unescapeMount(fields[4]) != dir {
			return true
		}
	}
	return false
}

// unescapeMount returns the path that a field of mountinfo means.
func unescapeMount(field string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(field)
}

// tryBox prepares the box and runs nothing in it. It returns why the box does not hold.
func (b *Box) tryBox() error {
	if hasMounts(b.spec.Workspace) {
		return fmt.Errorf("%w for a workspace in which other file systems are mounted", ErrNone)
	}
	s, err := b.EnterBox(proc.Command{Path: "/proc/self/exe", Dir: "/"})
	if err != nil {
		return err
	}
	defer s.releaseStay()
	wrap := s.Command.Inside
	s.Command.Inside = func(cmd *exec.Cmd) error {
		cmd.Path = ""
		return wrap(cmd)
	}
	_, err = proc.Run(context.Background(), s.Command)
	if failed := s.DescribeFailure(); failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	return nil
}
