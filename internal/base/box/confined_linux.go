package box

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// confined is the way of a box that holds commands by Landlock and a filter of system calls, where the system offers no
// namespaces. There is no layer: commands write the workspace itself, and what they did to protected paths is found and
// taken back when they have ended.
type confined struct {
	mu      sync.Mutex
	running map[*Stay]bool
	kept    baseline // before the first of the commands that run
	lock    *os.File // held while commands run, against other processes
	settled []Held   // what a process left that was cut off, until a stay tells it
	copies  copies   // of files of the workspace
}

// checkSystem returns what the kernel lacks, or why this workspace cannot be held.
func (w *confined) checkSystem(b *Box) error {
	if version := landlockVersion(); version < neededLandlock {
		return fmt.Errorf("without namespaces, a box needs version %d of Landlock (Linux 6.12), and this kernel has %d", neededLandlock, version)
	}
	if b.spec.Aside == "" {
		return errors.New("without namespaces, a box needs a place for what commands must not change")
	}
	if slices.ContainsFunc(realPlaces([]string{b.spec.Aside}), func(aside string) bool { return overlaps(b.spec.Workspace, aside) }) {
		return errors.New("without namespaces, no box holds for a workspace that holds raddle's own files, or lies among them")
	}
	return w.checkHidden(b.spec.Workspace, b.hiddenPaths())
}

// checkHidden returns which of the hidden paths lies in the workspace: Landlock cannot take a name out of a directory
// that may be written.
func (w *confined) checkHidden(workspace string, hidden []string) error {
	for _, path := range realPlaces(hidden) {
		if _, err := os.Lstat(path); err == nil && isWithin(workspace, path) {
			return fmt.Errorf("without namespaces, no box can hide %s, because it lies in the workspace", path)
		}
	}
	return nil
}

// prepareStay looks through the workspace. The first of several commands that run at the same time keeps the protected
// paths for all of them.
func (w *confined) prepareStay(ctx context.Context, s *Stay) (plan, error) {
	b := s.box
	hidden := append(b.hiddenPaths(), b.spec.Aside)
	if err := w.checkHidden(b.spec.Workspace, hidden); err != nil {
		return plan{}, fmt.Errorf("%w: %w", ErrNone, err)
	}
	if b.spec.ReadOnly {
		return plan{Writable: []string{b.TempDir()}, Hidden: hidden, Passes: true}, nil
	}
	if err := w.lockWorkspace(ctx, b); err != nil {
		return plan{}, err
	}
	defer w.mu.Unlock()
	if w.running == nil {
		w.running = map[*Stay]bool{}
	}
	w.running[s] = true
	state, err := scanTree(b.spec.Workspace)
	if err == nil && w.kept == nil {
		w.kept, err = keepProtected(b.spec.Workspace, state, b.spec.Protected)
		if err == nil {
			err = w.pending(b).write(w.kept)
		}
	}
	if err != nil {
		return plan{}, fmt.Errorf("%w: %w", ErrNone, err)
	}
	s.was, s.copies = state, w.copies.refresh(b.spec.Workspace, state)
	w.copies = s.copies
	return plan{Writable: []string{b.spec.Workspace, b.TempDir()}, Hidden: hidden, Passes: true}, nil
}

// stateFile returns the path of a file about the workspace among raddle's own.
func (w *confined) stateFile(b *Box, ending string) string {
	sum := sha256.Sum256([]byte(b.spec.Workspace))
	return filepath.Join(b.spec.Aside, hex.EncodeToString(sum[:8])+ending)
}

// pending returns the file that keeps the baseline while commands run.
func (w *confined) pending(b *Box) pending { return pending{w.stateFile(b, ".kept")} }

// lockWait is how long a command waits until the commands of another process have ended that run in the same workspace.
const lockWait = 10 * time.Second

// lockPoll is how often it looks.
const lockPoll = 20 * time.Millisecond

// lockWorkspace waits until no other process runs commands in the workspace, and returns with w.mu locked. While it
// waits, it is not locked. The error is that of ctx, or wraps ErrNone.
func (w *confined) lockWorkspace(ctx context.Context, b *Box) error {
	for end := time.Now().Add(lockWait); ; {
		w.mu.Lock()
		if len(w.running) > 0 {
			return nil
		}
		err := w.beginCommands(b)
		if err == nil {
			return nil
		}
		w.mu.Unlock()
		if !errors.Is(err, errLocked) || time.Now().After(end) {
			return fmt.Errorf("%w: %w", ErrNone, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

// errLocked says that a command of another process runs in the workspace.
var errLocked = fmt.Errorf("another run is running a command in this workspace, and without namespaces only one run can: its command did not end within %v", lockWait)

// beginCommands keeps other processes from running commands in the workspace, and settles what one has left that was
// cut off. It does not wait: the error is errLocked while another process runs one. The caller holds w.mu.
func (w *confined) beginCommands(b *Box) error {
	if err := os.MkdirAll(b.spec.Aside, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(w.stateFile(b, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		_ = lock.Close()
		if err == unix.EWOULDBLOCK {
			return errLocked
		}
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	w.lock = lock
	w.kept = nil
	kept, err := w.pending(b).read()
	if err != nil || kept == nil {
		return err
	}
	held, _, _, err := w.settle(b, kept, treeState{})
	w.settled = append(w.settled, held...)
	return err
}

// settle takes back what commands did to protected paths. It returns what the workspace was before that, and the paths
// that were handled.
func (w *confined) settle(b *Box, kept baseline, was treeState) (held []Held, is treeState, handled map[string]bool, err error) {
	root, err := os.OpenRoot(b.spec.Workspace)
	if err != nil {
		return nil, nil, nil, err
	}
	defer root.Close()
	is, locked, err := rescanTree(b.spec.Workspace, was)
	aside := filepath.Join(b.spec.Aside, time.Now().UTC().Format("2006-01-02T15-04-05.000000000"))
	t := &settlement{root: root, workspace: b.spec.Workspace, protected: b.spec.Protected, aside: aside, kept: kept, was: was, is: is, handled: map[string]bool{}}
	t.note(err)
	t.settleTree()
	for name, mode := range locked {
		if _, ok := kept[name]; !ok && !t.isGone(name) {
			_ = root.Chmod(filepath.FromSlash(name), mode.Perm())
		}
	}
	return t.held, is, t.handled, errors.Join(t.failed...)
}

// serveStay answers the system calls that the command may not make itself, until none of its processes is left.
func (w *confined) serveStay(s *Stay) (end func() error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f, err := s.control.receiveFile()
		if err != nil {
			return
		}
		defer f.Close()
		d := &deputy{listener: int(f.Fd()), writable: []string{s.box.TempDir()}}
		if !s.box.spec.ReadOnly {
			d.writable = append(d.writable, s.box.spec.Workspace)
		}
		d.serveCalls()
	}()
	return func() error {
		_ = s.control.other.Close() // the listener may never have come
		select {
		case <-done:
			return nil
		case <-time.After(endWait):
			return fmt.Errorf("the processes of a command have not ended within %v: what they do to protected files cannot be taken back", endWait)
		}
	}
}

// endWait is how long the end of all processes of a command may take after they have been killed.
const endWait = 20 * time.Second

// separateProcess starts a process under the name by which it knows what to do.
func (w *confined) separateProcess(cmd *exec.Cmd) { cmd.Args = []string{confinedName} }

// gatherRemains takes back what the command did to protected paths, and lists what else it changed.
func (w *confined) gatherRemains(s *Stay, before func(PathChange)) (Remains, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held, is, handled, err := w.settle(s.box, w.kept, s.was)
	r := Remains{Changes: listChanges(s.was, is, handled), Held: append(w.settled, held...)}
	w.settled = nil
	r.sortChanges()
	if before != nil {
		announceLate(r.Changes, s.was, s.copies, before)
	}
	return r, err
}

// releaseStay forgets the baseline when no command runs any more.
func (w *confined) releaseStay(s *Stay) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, s)
	if len(w.running) > 0 || w.lock == nil {
		return
	}
	w.pending(s.box).remove()
	_ = w.lock.Close()
	w.lock = nil
	w.kept = nil
}

// cacheVariables name directories of build tools that lie in the directory for temporary files of a box without layers.
var cacheVariables = map[string]string{"XDG_CACHE_HOME": "cache", "GOCACHE": "cache/go-build", "npm_config_cache": "cache/npm", "PIP_CACHE_DIR": "cache/pip", "UV_CACHE_DIR": "cache/uv"}

// changeEnvironment gives caches a place, and takes away what names a proxy: there is no network.
func (w *confined) changeEnvironment(b *Box, env []string) []string {
	gone := variableNames(b.spec.Variables)
	env = slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, cache := cacheVariables[name]
		return cache || slices.Contains(gone, name)
	})
	for name, dir := range cacheVariables {
		env = append(env, name+"="+filepath.Join(b.TempDir(), filepath.FromSlash(dir)))
	}
	return env
}

// describeWay says how commands are held.
func (w *confined) describeWay() Description {
	return Description{
		Way: "Landlock (version " + strconv.Itoa(landlockVersion()) + ") and a filter of system calls, because the system offers no namespaces",
		Missing: []string{
			"commands have no sockets: what needs the network, or a server on this machine, asks",
			"there is no layer: what a command that was cut off has written is in the workspace",
			"what is removed of a repository's data stays removed; files that run later are put back when the command has ended",
			"the names, sizes and times of hidden files can be seen, and the arguments of other processes",
		},
	}
}
