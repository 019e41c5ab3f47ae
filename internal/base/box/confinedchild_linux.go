package box

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// confinedName is the name under which this program is started to hold a command without namespaces.
const confinedName = "raddle-confined"

// neededLandlock is the version of Landlock that a box without namespaces needs: the first one that keeps signals
// inside.
const neededLandlock = 6

// These are the ways to use files that Landlock decides about.
const (
	readTree  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeTree = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO
	otherUses = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	fileUses  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	scopes    = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	allPorts  = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
)

// guardText is the program of the guard: it ends all processes of the box when the process that holds the other end of
// its input has ended, however.
const guardText = "read _; kill -s KILL -- -1"

// runConfined holds the command of a plan without namespaces and returns its exit code. Only one thread of this process
// is restricted, with what it starts: the others are outside of the box.
func runConfined() int {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // the command must not look into this process
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	pids := make(chan int, 1)
	code := make(chan int)
	go func() {
		runtime.LockOSThread() // it is never unlocked: rights and filters belong to the thread
		code <- confineCommand(pids)
	}()
	for pid := 0; ; {
		select {
		case c := <-code:
			return c
		case pid = <-pids:
		case s := <-signals:
			if pid > 0 {
				_ = unix.Kill(-pid, s.(syscall.Signal))
			}
		}
	}
}

// confineCommand restricts this thread, runs the command, sends its process id, and ends all processes that it has
// left.
func confineCommand(pids chan<- int) int {
	file := os.NewFile(controlFile, "control")
	p, err := readPlan(file)
	var guard guardian
	if err == nil {
		guard, err = confineThread(p)
	}
	if err != nil {
		writeReport(file, report{Failed: err.Error()})
		guard.endBox()
		return failedCode
	}
	if p.Path == "" {
		guard.endBox()
		return 0
	}
	pid, err := syscall.ForkExec(p.Path, p.Args, &syscall.ProcAttr{Dir: p.Dir, Env: p.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		fmt.Fprintf(os.NewFile(2, "stderr"), "%s: %v\n", p.Path, err) // that of the command
		guard.endBox()
		return 127
	}
	pids <- pid
	code := awaitCommand(pid)
	guard.endBox()
	return code
}

// confineThread restricts this thread to what the plan allows, and starts the guard. The processes that it starts later
// cannot signal the guard.
func confineThread(p plan) (guardian, error) {
	if version := landlockVersion(); version < neededLandlock {
		return guardian{}, fmt.Errorf("the kernel has version %d of Landlock, and a box without namespaces needs %d (Linux 6.12)", version, neededLandlock)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return guardian{}, fmt.Errorf("adopt the processes of the command: %w", err)
	}
	rules, err := listRules(p)
	if err != nil {
		return guardian{}, err
	}
	defer rules.closeRules()
	if err := dropBounds(); err != nil {
		return guardian{}, err
	}
	if err := clearCapabilities(); err != nil {
		return guardian{}, err
	}
	guard, err := startGuard()
	if err != nil {
		return guard, err
	}
	if err := rules.restrictThread(); err != nil {
		return guard, err
	}
	listener, err := installFilter(buildConfinedFilter, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if err != nil {
		return guard, err
	}
	defer unix.Close(listener)
	if err := unix.Sendmsg(passSocket, []byte{1}, unix.UnixRights(listener), nil, 0); err != nil {
		return guard, fmt.Errorf("pass the listener of system calls: %w", err)
	}
	return guard, unix.Close(passSocket)
}

// dropBounds takes from this thread the capabilities that programs could get. Only a thread that may has any to lose.
func dropBounds() error {
	for c := uintptr(0); ; c++ {
		switch err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err {
		case nil:
		case unix.EINVAL, unix.EPERM:
			return nil
		default:
			return fmt.Errorf("give up capabilities: %w", err)
		}
	}
}

// A guardian is the guard of a box: a process that no command can signal, and that ends all commands when this process
// has ended.
type guardian struct {
	alive *os.File // the end of its input that this process holds
}

// startGuard restricts this thread to signals to what it starts, and starts the guard, whose signals therefore reach
// the processes of this box and no other.
func startGuard() (guardian, error) {
	scope, err := newRules(unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_SIGNAL})
	if err != nil {
		return guardian{}, err
	}
	defer scope.closeRules()
	if err := scope.restrictThread(); err != nil {
		return guardian{}, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return guardian{}, err
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		w.Close()
		return guardian{}, err
	}
	defer null.Close()
	_, err = syscall.ForkExec("/bin/sh", []string{"sh", "-c", guardText}, &syscall.ProcAttr{Dir: "/", Files: []uintptr{r.Fd(), null.Fd(), null.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		w.Close()
		return guardian{}, fmt.Errorf("start the guard of the box (/bin/sh): %w", err)
	}
	return guardian{alive: w}, nil
}

// endBox ends all processes of the box, and waits until they have ended. The system delivers the signal to all of them
// at once, so that none can start another.
func (g guardian) endBox() {
	if g.alive == nil {
		return
	}
	_ = g.alive.Close()
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && err != unix.EINTR {
			return
		}
	}
}

// maxRules bounds the entries of directories that are allowed one by one.
const maxRules = 50_000

// A ruleList allows what is not hidden, entry by entry where something is.
type ruleList struct {
	rules  landlockRules
	hidden map[string]bool // what is not allowed, without links
	above  map[string]bool // the directories that something hidden lies in
	left   int
}

// newRuleList returns a list that leaves out what is hidden.
func newRuleList(rules landlockRules, hidden []string) *ruleList {
	l := &ruleList{rules: rules, hidden: map[string]bool{}, above: map[string]bool{}, left: maxRules}
	for _, path := range hidden {
		l.hidden[path] = true
		for dir := filepath.Dir(path); !l.above[dir]; dir = filepath.Dir(dir) {
			l.above[dir] = true
		}
	}
	return l
}

// listRules returns the rules of a plan: what is not hidden may be read, names everywhere may be listed, and some
// directories may be written.
func listRules(p plan) (landlockRules, error) {
	rules, err := newRules(unix.LandlockRulesetAttr{Access_fs: readTree | writeTree | otherUses, Access_net: allPorts, Scoped: scopes})
	if err != nil {
		return rules, err
	}
	l := newRuleList(rules, append(realPlaces(p.Hidden), "/dev"))
	err = errors.Join(rules.allowPath("/", unix.LANDLOCK_ACCESS_FS_READ_DIR), l.allowReading("/"))
	for _, dir := range p.Writable {
		err = errors.Join(err, rules.allowPath(dir, readTree|writeTree))
	}
	for _, name := range devices {
		if _, statErr := os.Stat("/dev/" + name); statErr == nil {
			err = errors.Join(err, rules.allowPath("/dev/"+name, fileUses&^unix.LANDLOCK_ACCESS_FS_EXECUTE))
		}
	}
	if err != nil {
		rules.closeRules()
		return rules, fmt.Errorf("list what the command may read: %w", err)
	}
	return rules, nil
}

// realPlaces returns paths without links. Of one that does not exist the directories that do are resolved, so that it
// is hidden when it is made.
func realPlaces(paths []string) (places []string) {
	for _, path := range paths {
		rest := ""
		for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
			if real, err := filepath.EvalSymlinks(dir); err == nil {
				places = append(places, filepath.Join(real, rest))
				break
			}
			rest = filepath.Join(filepath.Base(dir), rest)
			if dir == "/" {
				break
			}
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// allowReading allows a directory that something hidden lies in, entry by entry.
func (l *ruleList) allowReading(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // what this user cannot list stays closed
	}
	list := os.NewFile(uintptr(fd), dir)
	defer list.Close()
	names, err := list.Readdirnames(-1)
	if err != nil {
		return nil
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if l.left--; l.left < 0 {
			return fmt.Errorf("the directories that hold what is hidden have more than %d entries, the last one in %s", maxRules, dir)
		}
		switch {
		case l.hidden[path]:
		case l.above[path]:
			err = l.allowReading(path)
		default:
			err = l.allowEntry(fd, name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// allowEntry allows to read an entry of a directory. A link needs no permission.
func (l *ruleList) allowEntry(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // it has gone
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return nil
	case unix.S_IFDIR:
		return l.rules.allowFile(fd, readTree)
	}
	return l.rules.allowFile(fd, readTree&fileUses)
}
