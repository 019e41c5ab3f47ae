package box

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"raddle.dev/internal/base/plainfile"
)

// maxKept bounds the bytes of the protected files of a workspace.
const maxKept = 64 << 20

// A keptPath is a protected path as it was before the commands that run now.
type keptPath struct {
	Mode     fs.FileMode
	Data     []byte // the content of a file, or the target of a link
	Links    uint64
	Modified time.Time
}

// A baseline is what the protected paths of a workspace were before the commands that run now. Without a layer a
// command can change them, so they are compared when it has ended, and put back.
type baseline map[string]keptPath

// A settlement puts protected paths back, and what commands made of them aside.
type settlement struct {
	root      *os.Root
	workspace string
	protected func(path, made string) string
	aside     string // where changed paths are put; created when it is needed
	kept      baseline
	was, is   treeState
	handled   map[string]bool
	held      []Held
	failed    []error
}

// keepProtected reads the protected paths of a workspace.
func keepProtected(workspace string, state treeState, protected func(path, made string) string) (baseline, error) {
	kept := baseline{}
	total := int64(0)
	if protected == nil {
		return kept, nil
	}
	for name, s := range state {
		at := filepath.Join(workspace, filepath.FromSlash(name))
		if protected(at, "") == "" {
			continue
		}
		k := keptPath{Mode: s.mode, Links: s.links}
		if total += s.size; total > maxKept {
			return nil, fmt.Errorf("the protected files of the workspace have more than %d MiB, which is too much to put back", maxKept>>20)
		}
		if info, err := os.Lstat(at); err == nil {
			k.Modified = info.ModTime()
		}
		data, err := readKept(at, s.mode)
		if err != nil {
			return nil, fmt.Errorf("read %s, which commands must not change: %w", at, err)
		}
		k.Data = data
		kept[name] = k
	}
	return kept, nil
}

// readKept returns the content of a file, or the target of a link; nothing of anything else.
func readKept(at string, mode fs.FileMode) ([]byte, error) {
	switch {
	case mode.IsRegular():
		return plainfile.Read(at, maxKept)
	case mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(at)
		return []byte(target), err
	}
	return nil, nil
}

// isUnchanged reports whether a protected path is what it was, but for its times.
func (k keptPath) isUnchanged(at string, s pathState) bool {
	if k.Mode != s.mode || !k.Mode.IsDir() && k.Links != s.links {
		return false
	}
	data, err := readKept(at, s.mode)
	return err == nil && bytes.Equal(data, k.Data)
}

// settleTree compares the protected paths with what they were. is is what the workspace is now.
func (t *settlement) settleTree() {
	names := make([]string, 0, len(t.is))
	for name := range t.is {
		names = append(names, name)
	}
	slices.Sort(names) // directories come before what is in them
	for _, name := range names {
		if t.isGone(name) {
			continue
		}
		if k, ok := t.kept[name]; ok {
			t.settleKept(name, k)
		} else {
			t.settleOther(name)
		}
	}
	var missing []string
	for name := range t.kept {
		if _, err := t.root.Lstat(filepath.FromSlash(name)); err != nil {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	for _, name := range missing {
		if !t.handled[name] {
			t.holdChange(name, Removed, t.reason(name, ""))
		}
		t.restore(name)
	}
}

// isGone reports whether a path went aside together with a directory.
func (t *settlement) isGone(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if t.handled[dir] {
			if info, err := t.root.Lstat(filepath.FromSlash(dir)); err != nil || !info.IsDir() {
				return true
			}
		}
	}
	return false
}

// reason returns why a path must not be changed.
func (t *settlement) reason(name, made string) string {
	if t.protected == nil {
		return ""
	}
	return t.protected(filepath.Join(t.workspace, filepath.FromSlash(name)), made)
}

// holdChange notes a change of a protected path that was taken back.
func (t *settlement) holdChange(name string, kind ChangeKind, why string) {
	t.handled[name] = true
	t.held = append(t.held, Held{PathChange{Path: name, Kind: kind}, why})
}

// settleKept puts a protected path back if it has changed.
func (t *settlement) settleKept(name string, k keptPath) {
	at := filepath.Join(t.workspace, filepath.FromSlash(name))
	now := t.is[name]
	if k.isUnchanged(at, now) {
		if !k.Mode.IsDir() && now != t.was[name] {
			t.handled[name] = true // it was only written again
			_ = unix.UtimesNanoAt(unix.AT_FDCWD, at, stamps(k.Modified), unix.AT_SYMLINK_NOFOLLOW)
		}
		return
	}
	why := t.reason(name, "")
	if k.Mode.IsDir() && now.mode.IsDir() {
		t.holdChange(name, Changed, why)
		t.note(t.root.Chmod(filepath.FromSlash(name), k.Mode.Perm()))
		return
	}
	place := t.putAside(name)
	t.holdChange(name, Changed, why+place)
	t.restore(name)
}

// settleOther puts a path aside that was not there before and is protected, and removes what Python would run instead
// of sources. A protected path that names no programs, as git makes them in new repositories, stays.
func (t *settlement) settleOther(name string) {
	now := t.is[name]
	old, existed := t.was[name]
	if now.mode.IsDir() || existed && old == now {
		return
	}
	if isByProduct(name) {
		t.handled[name] = true
		t.note(t.root.Remove(filepath.FromSlash(name)))
		return
	}
	why := t.reason(name, "")
	if why == "" && !now.mode.IsRegular() && now.mode&fs.ModeSymlink == 0 {
		t.holdChange(name, Created, "is neither a file nor a link nor a directory"+t.putAside(name))
		return
	}
	if why == "" {
		if now.mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			// it would give other users the rights of this one
			t.note(t.root.Chmod(filepath.FromSlash(name), now.mode.Perm()))
		}
		return
	}
	aside, err := t.moveAside(name)
	if err != nil {
		t.note(err)
		t.holdChange(name, Created, why+"; it could not be put aside, and is still there: "+err.Error())
		return
	}
	if why = t.reason(name, aside); why == "" {
		t.note(moveBack(aside, filepath.Join(t.workspace, filepath.FromSlash(name))))
		return
	}
	t.holdChange(name, Created, why+"; it was put aside: "+aside)
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, existed := t.was[dir]; existed || t.root.Remove(filepath.FromSlash(dir)) != nil {
			break // it holds something else
		}
		t.handled[dir] = true
	}
}

// note keeps an error.
func (t *settlement) note(err error) {
	if err != nil {
		t.failed = append(t.failed, err)
	}
}

// putAside moves a path out of the workspace and returns the end of a sentence that says where it is.
func (t *settlement) putAside(name string) string {
	aside, err := t.moveAside(name)
	if err != nil {
		t.note(err)
		return "; it could not be put aside: " + err.Error()
	}
	return "; it was put aside: " + aside
}

// moveAside moves a path out of the workspace and returns its new place.
func (t *settlement) moveAside(name string) (string, error) {
	to := filepath.Join(t.aside, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", err
	}
	for n := 2; ; n++ {
		if _, err := os.Lstat(to); err != nil {
			break
		}
		to = filepath.Join(t.aside, filepath.FromSlash(name)) + fmt.Sprintf(".%d", n)
	}
	return to, moveTree(filepath.Join(t.workspace, filepath.FromSlash(name)), to)
}

// moveBack moves a file that was put aside to its place again, unless there is another one now.
func moveBack(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s: there is a new file; the one that a command wrote is in %s", to, from)
	}
	return moveTree(from, to)
}

// moveTree moves a file or a directory, also to another file system.
func moveTree(from, to string) error {
	err := unix.Renameat(unix.AT_FDCWD, from, unix.AT_FDCWD, to)
	if err != unix.EXDEV {
		return err
	}
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		// a named pipe cannot be copied, and holds nothing
		return errors.Join(os.CopyFS(to, os.DirFS(from)), os.RemoveAll(from))
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	defer dir.Close()
	if !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0 {
		return os.Remove(from) // a named pipe holds nothing
	}
	if err := copyFile(from, info, dir, filepath.Base(to)); err != nil {
		return err
	}
	return os.Remove(from)
}

// stamps returns a time as both times of a file.
func stamps(at time.Time) []unix.Timespec {
	stamp := unix.NsecToTimespec(at.UnixNano())
	return []unix.Timespec{stamp, stamp}
}

// restore makes a protected path what it was. What replaces one of its directories goes aside.
func (t *settlement) restore(name string) {
	k := t.kept[name]
	if err := t.makeDirectory(path.Dir(name)); err != nil {
		t.note(err)
		return
	}
	if k.Mode.IsDir() {
		t.note(t.makeDirectory(name))
		return
	}
	at := filepath.FromSlash(name)
	var err error
	switch {
	case k.Mode.IsRegular():
		temporary := at + ".raddle-restored"
		_ = t.root.Remove(temporary)
		err = t.root.WriteFile(temporary, k.Data, 0o600)
		if err == nil {
			err = errors.Join(t.root.Chmod(temporary, k.Mode.Perm()), t.root.Chtimes(temporary, k.Modified, k.Modified), t.root.Rename(temporary, at))
		}
	case k.Mode&fs.ModeSymlink != 0:
		err = t.root.Symlink(string(k.Data), at)
	default:
		err = fmt.Errorf("%s was neither a file nor a link nor a directory, and cannot be put back", name)
	}
	t.note(err)
}

// makeDirectory makes a directory and those above it. A file or link that replaces one goes aside.
func (t *settlement) makeDirectory(name string) error {
	if name == "." {
		return nil
	}
	at := filepath.FromSlash(name)
	info, err := t.root.Lstat(at)
	if err == nil && info.IsDir() {
		return nil
	}
	if err := t.makeDirectory(path.Dir(name)); err != nil {
		return err
	}
	if err == nil {
		t.holdChange(name, Changed, "replaces a directory that holds protected files"+t.putAside(name))
	}
	mode := fs.FileMode(0o755)
	if k, ok := t.kept[name]; ok {
		mode = k.Mode.Perm()
	}
	if err := t.root.Mkdir(at, mode|0o700); err != nil {
		return err
	}
	return t.root.Chmod(at, mode)
}

// A pending file holds a baseline while commands run, so that the next process can compare if this one is cut off.
type pending struct{ path string }

// write writes the baseline.
func (p pending) write(kept baseline) error {
	var data bytes.Buffer
	if err := gob.NewEncoder(&data).Encode(kept); err != nil {
		return err
	}
	temporary := p.path + ".new"
	if err := os.WriteFile(temporary, data.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, p.path)
}

// read returns a baseline that a process has left which was cut off; nil: none has.
func (p pending) read() (kept baseline, err error) {
	data, err := plainfile.Read(p.path, 2*maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return kept, gob.NewDecoder(strings.NewReader(string(data))).Decode(&kept)
}

// remove removes the file.
func (p pending) remove() { _ = os.Remove(p.path) }
