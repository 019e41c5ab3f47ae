package box

import (
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// failedCode is the exit code of a first process that could not prepare the box.
const failedCode = 125

// init takes over the process if it is the first one of a box: nothing else of the program may run then.
func init() {
	switch {
	case len(os.Args) != 1:
	case os.Args[0] == childName && os.Getpid() == 1:
		os.Exit(runChild())
	case os.Args[0] == confinedName:
		os.Exit(runConfined())
	}
}

// runChild prepares the box, runs the command and returns its exit code, with 128 added to the number of a signal that
// ended it.
func runChild() int {
	runtime.LockOSThread()                                     // rights and filters belong to threads
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)           // the command must not look into this process
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) // whatever this process has inherited stays here
	file := os.NewFile(controlFile, "control")
	p, err := readPlan(file)
	if err == nil {
		err = prepareBox(p)
	}
	if err == nil && p.Proxy != "" {
		err = passListener(p.Proxy)
	}
	if err != nil {
		writeReport(file, report{Failed: err.Error()})
		return failedCode
	}
	if p.Path == "" {
		return 0
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	if err := giveUpRights(p.writableDirs()); err != nil {
		writeReport(file, report{Failed: err.Error()})
		return failedCode
	}
	pid, err := syscall.ForkExec(p.Path, p.Args, &syscall.ProcAttr{Dir: p.Dir, Env: p.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		fmt.Fprintf(os.NewFile(2, "stderr"), "%s: %v\n", p.Path, err) // that of the command
		return 127
	}
	go func() {
		for s := range signals {
			_ = unix.Kill(-pid, s.(syscall.Signal))
		}
	}()
	return awaitCommand(pid)
}

// passListener listens in the network of the box and passes the listener out: who accepts on it is in the network
// outside.
func passListener(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("listen for the proxy: %w", err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}), unix.Listen(fd, 128)); err != nil {
		return fmt.Errorf("listen for the proxy: %w", err)
	}
	if err := unix.Sendmsg(passSocket, []byte{1}, unix.UnixRights(fd), nil, 0); err != nil {
		return fmt.Errorf("pass the listener of the proxy: %w", err)
	}
	return unix.Close(passSocket)
}

// awaitCommand reaps all processes until the command ends, and returns its exit code. The system ends all others with
// this process.
func awaitCommand(pid int) int {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR || err == nil && got != pid:
		case err != nil:
			return failedCode
		case status.Signaled():
			return 128 + int(status.Signal())
		case status.Exited():
			return status.ExitStatus()
		}
	}
}

// readPlan reads the plan from the control file.
func readPlan(file *os.File) (p plan, err error) {
	err = gob.NewDecoder(io.NewSectionReader(file, 0, 64<<20)).Decode(&p)
	return p, err
}

// writeReport puts the report in the place of the plan.
func writeReport(file *os.File, r report) {
	data, _ := json.Marshal(r)
	_ = file.Truncate(0)
	_, _ = file.WriteAt(append([]byte("!"), data...), 0)
}

// A mounted is a mount without a place, and the place that it gets.
type mounted struct {
	at string
	fd int
}

// prepareBox makes the view of the file system, and brings the loopback interface up. All mounts are made before the
// rest becomes read-only, because they show what is there now.
func prepareBox(p plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	var mounts []mounted
	for _, o := range p.Overlays {
		fd, err := mountOverlay(o)
		if err != nil {
			return fmt.Errorf("cover %s with a layer: %w", o.Dir, err)
		}
		mounts = append(mounts, mounted{o.Dir, fd})
	}
	for _, dir := range p.Writable {
		fd, err := cloneMount(dir, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
		if err != nil {
			return fmt.Errorf("keep %s writable: %w", dir, err)
		}
		mounts = append(mounts, mounted{dir, fd})
	}
	for _, dir := range p.Shown {
		fd, err := cloneMount(dir, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_RDONLY)
		if err != nil {
			return fmt.Errorf("show %s: %w", dir, err)
		}
		mounts = append(mounts, mounted{dir, fd})
	}
	devices, err := openDevices()
	if err != nil {
		return err
	}
	hidden, err := openHidden(p.Hidden)
	if err != nil {
		return err
	}
	all := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &all); err != nil {
		return fmt.Errorf("make the file system read-only: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := mountDevices(devices); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	slices.SortStableFunc(mounts, func(a, b mounted) int { return strings.Count(a.at, "/") - strings.Count(b.at, "/") })
	for _, m := range mounts {
		if err := placeMount(m); err != nil {
			return err
		}
	}
	for _, m := range hidden {
		if err := placeMount(m); err != nil {
			return err
		}
	}
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("bring the loopback interface up: %w", err)
	}
	return nil
}

// placeMount puts a mount at its place.
func placeMount(m mounted) error {
	if err := unix.MoveMount(m.fd, "", unix.AT_FDCWD, m.at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", m.at, err)
	}
	return unix.Close(m.fd)
}

// mountOverlay returns a mount of a directory with a layer. Paths are given as open files: the options of a layer
// cannot hold every path.
func mountOverlay(o overlay) (int, error) {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, option := range [][2]string{{"lowerdir", o.Dir}, {"upperdir", o.Upper}, {"workdir", o.Work}} {
		dir, err := unix.Open(option[1], unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		defer unix.Close(dir)
		if err := unix.FsconfigSetString(fs, option[0], fmt.Sprintf("/proc/self/fd/%d", dir)); err != nil {
			return -1, fmt.Errorf("%s: %w", option[0], err)
		}
	}
	if err := unix.FsconfigSetFlag(fs, "userxattr"); err != nil {
		return -1, err
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// cloneMount returns a mount of what is at a path, with attributes in addition.
func cloneMount(path string, attributes uint64) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, err
	}
	return fd, unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: attributes})
}

// devices are the files of /dev that commands need.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// openDevices returns mounts of those devices that are there. They are read-only: that does not keep data from a
// device, but its mode from a change.
func openDevices() (found []mounted, err error) {
	for _, name := range devices {
		fd, err := unix.OpenTree(unix.AT_FDCWD, "/dev/"+name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			continue
		}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}); err != nil {
			return nil, fmt.Errorf("protect /dev/%s: %w", name, err)
		}
		found = append(found, mounted{"/dev/" + name, fd})
	}
	return found, nil
}

// newTmpfs returns a mount of an empty file system in memory.
func newTmpfs(size string) (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, option := range [][2]string{{"size", size}, {"mode", "0755"}} {
		if err := unix.FsconfigSetString(fs, option[0], option[1]); err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// mountDevices puts an own /dev over that of the system: with harmless devices, terminals of its own, and shared memory
// of its own.
func mountDevices(found []mounted) error {
	fd, err := newTmpfs("64m")
	if err != nil {
		return err
	}
	if err := placeMount(mounted{"/dev", fd}); err != nil {
		return err
	}
	for _, m := range found {
		if err := os.WriteFile(m.at, nil, 0o666); err != nil {
			return err
		}
		if err := placeMount(m); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, "/dev/"+name); err != nil {
			return err
		}
	}
	if err := os.Mkdir("/dev/shm", 0o1777); err != nil {
		return err
	}
	if err := os.Mkdir("/dev/pts", 0o755); err != nil {
		return err
	}
	if unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620") == nil {
		return os.Symlink("pts/ptmx", "/dev/ptmx")
	}
	return nil
}

// openHidden returns mounts of empty files and directories for paths that must not be read. A path that does not exist
// needs none.
func openHidden(paths []string) (found []mounted, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	empty, err := newTmpfs("64k")
	if err != nil {
		return nil, err
	}
	defer unix.Close(empty)
	// The directory for mounts is that of the processes, which gets its own mount later.
	const stage = "/proc"
	if err := unix.MoveMount(empty, "", unix.AT_FDCWD, stage, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, fmt.Errorf("prepare what hides secrets: %w", err)
	}
	defer unix.Unmount(stage, unix.MNT_DETACH)
	if err := os.Mkdir(filepath.Join(stage, "dir"), 0o555); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(stage, "file"), nil, 0o444); err != nil {
		return nil, err
	}
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	var places []string
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			places = append(places, real)
		}
	}
	slices.Sort(places)
	for _, real := range places {
		if slices.ContainsFunc(found, func(m mounted) bool { return isWithin(m.at, real) }) {
			continue // it is not there any more
		}
		info, err := os.Stat(real)
		if err != nil {
			continue
		}
		name := "file"
		if info.IsDir() {
			name = "dir"
		}
		fd, err := unix.OpenTree(unix.AT_FDCWD, filepath.Join(stage, name), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("hide %s: %w", real, err)
		}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &readOnly); err != nil {
			return nil, fmt.Errorf("hide %s: %w", real, err)
		}
		found = append(found, mounted{real, fd})
	}
	return found, nil
}

// raiseLoopback brings the loopback interface of the network namespace up, so that a command can talk to servers that
// it starts itself.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, r); err != nil {
		return err
	}
	r.SetUint16(r.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

// maxProcesses bounds the processes and threads of a box. The system does not apply it to root.
const maxProcesses = 8192

// giveUpRights takes from this thread, and from the command that it starts, all capabilities, new privileges and
// dangerous system calls.
func giveUpRights(writable []string) error {
	for c := uintptr(0); ; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
			break
		} else if err != nil {
			return fmt.Errorf("give up capabilities: %w", err)
		}
	}
	if err := clearCapabilities(); err != nil {
		return err
	}
	if err := closePipes(writable); err != nil {
		return err
	}
	_, err := installFilter(buildFilter, 0)
	return err
}

// clearCapabilities takes all capabilities and new privileges from this thread, and sets its limits.
func clearCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	limits := map[int]uint64{unix.RLIMIT_NPROC: maxProcesses, unix.RLIMIT_CORE: 0}
	for what, most := range limits {
		var now unix.Rlimit
		if unix.Getrlimit(what, &now) == nil && now.Max > most {
			_ = unix.Setrlimit(what, &unix.Rlimit{Cur: most, Max: most})
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	return nil
}

// closePipes keeps this thread, and what it starts, from writing to named pipes outside of the directories that are
// writable: a mount that is read-only lets that pass. Kernels without Landlock, or with its first version, which does
// not know files that are moved, do without.
func closePipes(writable []string) error {
	if landlockVersion() < 2 {
		return nil
	}
	const move, write = unix.LANDLOCK_ACCESS_FS_REFER, unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	rules, err := newRules(unix.LandlockRulesetAttr{Access_fs: move | write})
	if err != nil {
		return fmt.Errorf("close named pipes: %w", err)
	}
	defer rules.closeRules()
	for _, dir := range append([]string{"/dev", "/proc"}, writable...) {
		if err := rules.allowPath(dir, move|write); err != nil {
			return fmt.Errorf("close named pipes: %w", err)
		}
	}
	if err := rules.restrictThread(); err != nil {
		return fmt.Errorf("close named pipes: %w", err)
	}
	return nil
}
