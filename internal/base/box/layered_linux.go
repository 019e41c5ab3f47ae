package box

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"raddle.dev/internal/base/plainfile"
)

// layered is the way of a box that holds commands in namespaces of their own, with a layer over the workspace.
type layered struct {
	mu     sync.Mutex
	shared *Stay // the stay that uses the layers of the box; nil: none does
}

// checkSystem returns why a layer would not show the whole workspace.
func (w *layered) checkSystem(b *Box) error {
	if hasMounts(b.spec.Workspace) {
		return errors.New("other file systems are mounted in the workspace")
	}
	return nil
}

// prepareStay creates the directories of the layers of a stay. A command that runs at the same time as another one has
// layers of its own, and so has one that lives alone.
func (w *layered) prepareStay(_ context.Context, s *Stay) (plan, error) {
	b := s.box
	p := plan{Writable: []string{b.TempDir()}, Hidden: b.hiddenPaths(), Passes: b.spec.Serve != nil}
	if p.Passes {
		p.Proxy = ProxyAddress
	}
	if b.spec.ReadOnly {
		p.Shown = append(p.Shown, b.spec.Workspace)
	} else {
		p.Overlays = append(p.Overlays, overlay{Dir: b.spec.Workspace, Upper: filepath.Join(s.dir, "upper"), Work: filepath.Join(s.dir, "work")})
	}
	layers := filepath.Join(s.dir, "layers")
	w.mu.Lock()
	if w.shared == nil && !b.alone {
		w.shared = s
		layers = filepath.Join(b.spec.Private, "layers")
	}
	w.mu.Unlock()
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

// serveStay serves the proxy of a stay, whose listener is in the network of the command.
func (w *layered) serveStay(s *Stay) (end func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f, err := s.control.receiveFile()
		if err != nil {
			return
		}
		l, err := net.FileListener(f)
		_ = f.Close()
		if err == nil {
			_ = s.box.spec.Serve(ctx, l, s.box.hosts)
			_ = l.Close()
		}
	}()
	return func() error {
		cancel()
		_ = s.control.other.Close() // the listener may never have come
		<-done
		return nil
	}
}

// separateProcess makes a process the first one of new namespaces.
func (w *layered) separateProcess(cmd *exec.Cmd) {
	cmd.Args = []string{childName}
	a := cmd.SysProcAttr
	a.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	a.GidMappingsEnableSetgroups = false
	// Without the rights to files, which reach only files of this user, the system cannot keep a layer for an ordinary
	// user.
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID}
}

// changeEnvironment adds what names the proxy.
func (w *layered) changeEnvironment(b *Box, env []string) []string {
	return append(env, b.spec.Variables...)
}

// describeWay says how commands are held.
func (w *layered) describeWay() Description {
	return Description{Way: "namespaces of the kernel and a layer over the workspace", Layer: true, Network: true}
}

// releaseStay lets another stay use the layers of the box.
func (w *layered) releaseStay(s *Stay) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shared == s {
		w.shared = nil
	}
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
