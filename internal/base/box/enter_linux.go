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
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"raddle.dev/internal/base/proc"
)

// childName is the name under which this program is started as the first process of a box.
const childName = "raddle-box"

// These are the numbers of the file with the plan, and of the socket over which a file comes back, in the first
// process.
const (
	controlFile = 3
	passSocket  = 4
)

// A control is how this process and the first process of a box talk: by a file with the plan before and the report
// after, and by a socket over which an open file comes: the listener of the proxy, or of system calls.
type control struct {
	file  *os.File
	ours  *os.File // nil: no file comes
	other *os.File // the end of the first process
}

// A way is how the system holds the commands of a box.
type way interface {
	means
	// prepareStay makes what the command of a stay needs, and says what its first process prepares.
	// It may wait for other commands until ctx ends.
	prepareStay(ctx context.Context, s *Stay) (plan, error)
	// serveStay serves the first process and what it starts, until the function that it returns is called. It is called
	// if the plan passes a file.
	serveStay(s *Stay) (end func() error)
	// gatherRemains says what a command that has ended left behind, after it has brought it into the workspace, or what
	// is protected out of it.
	gatherRemains(s *Stay, before func(PathChange)) (Remains, error)
	// releaseStay frees what prepareStay has made, however far it came.
	releaseStay(s *Stay)
}

// means are what a way uses of the system.
type means interface {
	// checkSystem returns why commands of a box cannot be held this way, as far as that is known without a command.
	checkSystem(b *Box) error
	// separateProcess says how the first process is started.
	separateProcess(cmd *exec.Cmd)
	// changeEnvironment returns the environment of a command as this way needs it.
	changeEnvironment(b *Box, env []string) []string
	// describeWay says how commands are held, and what is not held.
	describeWay() Description
}

// newControl returns a control. passes says that the first process passes an open file.
func newControl(passes bool) (*control, error) {
	fd, err := unix.MemfdCreate("raddle-box", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	c := &control{file: os.NewFile(uintptr(fd), "raddle-box")}
	if !passes {
		return c, nil
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		_ = c.file.Close()
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	c.ours, c.other = os.NewFile(uintptr(pair[0]), "pass"), os.NewFile(uintptr(pair[1]), "pass")
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

// receiveFile returns the open file that the first process passes.
func (c *control) receiveFile() (*os.File, error) {
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
		return nil, errors.Join(errors.New("the box has passed no file"), err)
	}
	rights, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(rights[0]), "passed"), nil
}

// EnterBox prepares a stay for a command. The caller runs Stay.Command once, and then calls Leave. Without a layer it
// may wait for a command of another run in this workspace, until ctx ends.
func (b *Box) EnterBox(ctx context.Context, c proc.Command) (*Stay, error) {
	b.mu.Lock()
	b.stays++
	s := &Stay{box: b, dir: filepath.Join(b.spec.Private, "stay"+strconv.Itoa(b.stays))}
	b.mu.Unlock()
	p, err := b.way.prepareStay(ctx, s)
	if err == nil {
		s.control, err = newControl(p.Passes)
	}
	if err != nil {
		s.releaseStay()
		return nil, err
	}
	if p.Passes {
		s.endService = b.way.serveStay(s)
	}
	s.Command = c
	s.Command.Env = b.way.changeEnvironment(b, b.boxedEnvironment(c.Env))
	s.began = time.Now()
	s.Command.Inside = func(cmd *exec.Cmd) error { return s.wrapCommand(p, cmd) }
	return s, nil
}

// wrapCommand changes how a command is started: this program starts first, prepares the box, and runs the command
// there.
func (s *Stay) wrapCommand(p plan, cmd *exec.Cmd) error {
	p.Path = cmd.Path
	p.Args = cmd.Args
	p.Env = cmd.Env
	p.Dir = cmd.Dir
	if p.Path != "" && !filepath.IsAbs(p.Path) {
		p.Path = filepath.Join(p.Dir, p.Path)
	}
	if err := s.control.startProcess(p, cmd); err != nil {
		return err
	}
	s.box.way.separateProcess(cmd)
	return nil
}

// startProcess writes the plan and makes cmd start this program, which reads it.
func (c *control) startProcess(p plan, cmd *exec.Cmd) error {
	if err := gob.NewEncoder(io.NewOffsetWriter(c.file, 0)).Encode(p); err != nil {
		return err
	}
	cmd.Path = "/proc/self/exe"
	cmd.Dir = "/"
	// a program with the race detector otherwise ends a second later
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=off", "GORACE=atexit_sleep_ms=0"}
	cmd.ExtraFiles = append(cmd.ExtraFiles, c.file)
	if c.other != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.other)
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
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

// endServing ends what is served to the command, once, and waits until that has ended.
func (s *Stay) endServing() error {
	end := s.endService
	s.endService = nil
	if end == nil {
		return nil
	}
	return end()
}

// LeaveBox ends the stay after the command has ended: what it wrote is in the workspace then, except what is protected
// and what a person has changed since the command began. before, which may be nil, is called for each change of a file;
// see [PathChange].
func (s *Stay) LeaveBox(before func(PathChange)) (Remains, error) {
	defer s.releaseStay()
	if err := s.endServing(); err != nil || s.box.spec.ReadOnly {
		return Remains{}, err
	}
	return s.box.way.gatherRemains(s, before)
}

// releaseStay frees what the stay uses.
func (s *Stay) releaseStay() {
	_ = s.endServing()
	if s.control != nil {
		s.control.closeFiles()
	}
	s.box.way.releaseStay(s)
	removeTree(s.dir)
}

// removeTree removes a directory whose subdirectories may be locked: the system leaves such ones in the work directory
// of a layer.
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

// DescribeFailure returns why the box of a stay could not be prepared, wrapping [ErrNone]; nil: it was prepared, and
// the command ran in it. It may be called when the command has ended, before Leave.
func (s *Stay) DescribeFailure() error {
	r, err := s.control.readReport()
	if err == nil && r.Failed != "" {
		err = fmt.Errorf("%w: %s", ErrNone, r.Failed)
	}
	return err
}

// waysToHold returns the ways in which this system may hold commands, the best one first.
func waysToHold() []way { return []way{&layered{}, &confined{}} }

// DescribeBox says how the box holds commands.
func (b *Box) DescribeBox() Description { return b.way.describeWay() }

// tryBox prepares the box in one of the ways and runs nothing in it. It returns why none holds.
func (b *Box) tryBox(ways []way) error {
	var all []error
	for _, w := range ways {
		b.way = w
		err := b.tryWay()
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrNone) {
			return err
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

// tryWay runs nothing in the box, in the way that was chosen.
func (b *Box) tryWay() error {
	if err := b.way.checkSystem(b); err != nil {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	s, err := b.EnterBox(context.Background(), proc.Command{Path: "/proc/self/exe", Dir: "/"})
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
