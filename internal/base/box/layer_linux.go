package box

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"raddle.dev/internal/base/plainfile"
)

// byProducts are names of directories that programs write beside sources to be faster. What is in them runs later in
// place of the sources, so it stays in the layer without a word.
var byProducts = []string{"__pycache__"}

// gatherRemains moves what the command wrote into the workspace. A change is held back if the path is protected, or if
// somebody else has changed it since the command began.
func (w *layered) gatherRemains(s *Stay, before func(PathChange)) (Remains, error) {
	root, err := os.OpenRoot(s.box.spec.Workspace)
	if err != nil {
		return Remains{}, err
	}
	defer root.Close()
	l := &layer{upper: filepath.Join(s.dir, "upper"), root: root, workspace: s.box.spec.Workspace, protected: s.box.spec.Protected, began: s.began, before: before}
	l.moveDirectory("")
	l.outcome.sortChanges()
	return l.outcome, errors.Join(l.failed...)
}

// A layer is what a command wrote, on its way into the workspace. Paths are relative, with slashes; "" is the workspace
// itself.
type layer struct {
	upper     string
	root      *os.Root
	workspace string
	protected func(path, made string) string
	began     time.Time
	before    func(PathChange)
	outcome   Remains
	failed    []error
}

// announceChange says that a file is about to change.
func (l *layer) announceChange(name string, kind ChangeKind) {
	if l.before != nil {
		l.before(PathChange{Path: name, Kind: kind})
	}
}

// holdChange notes a change that stays in the layer.
func (l *layer) holdChange(name string, kind ChangeKind, why string) {
	l.outcome.Held = append(l.outcome.Held, Held{PathChange{Path: name, Kind: kind}, why})
}

// noteFailure notes a change that could not be made.
func (l *layer) noteFailure(name string, kind ChangeKind, err error) {
	l.holdChange(name, kind, "could not be changed: "+err.Error())
	l.failed = append(l.failed, err)
}

// moveDirectory moves the entries of a directory of the layer into that of the workspace, which exists.
func (l *layer) moveDirectory(dir string) {
	entries, err := os.ReadDir(filepath.Join(l.upper, filepath.FromSlash(dir)))
	if err != nil {
		l.noteFailure(dir, Changed, err)
		return
	}
	for _, e := range entries {
		l.moveEntry(path.Join(dir, e.Name()))
	}
}

// moveEntry moves one entry of the layer.
func (l *layer) moveEntry(name string) {
	if slices.Contains(byProducts, path.Base(name)) {
		return
	}
	info, err := os.Lstat(filepath.Join(l.upper, filepath.FromSlash(name)))
	if err != nil {
		l.noteFailure(name, Changed, err)
		return
	}
	old, err := l.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		old = nil
	}
	kind := Created
	if old != nil {
		kind = Changed
	}
	switch {
	case isWhiteout(info):
		if old != nil {
			l.removeEntry(name, old)
		}
	case info.IsDir():
		l.mergeDirectory(name, info, old)
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0:
		l.holdChange(name, kind, "is neither a file nor a link nor a directory")
	default:
		if l.holdsBack(name, kind, old, filepath.Join(l.upper, filepath.FromSlash(name))) {
			return
		}
		if old != nil && old.IsDir() && !l.removeTree(name) {
			return
		}
		l.announceChange(name, kind)
		if err := l.moveFile(name, info); err != nil {
			l.noteFailure(name, kind, err)
			return
		}
		l.outcome.Changes = append(l.outcome.Changes, PathChange{Path: name, Kind: kind})
	}
}

// protectedReason returns why a path must not be changed, or be replaced by a file that the command made; "": it may.
func (l *layer) protectedReason(name, made string) string {
	if l.protected == nil {
		return ""
	}
	return l.protected(filepath.Join(l.workspace, filepath.FromSlash(name)), made)
}

// maxCompared is the length of the longest protected file that is compared with what a command made of it.
const maxCompared = 1 << 20

// isSame reports whether what a command made is what is in the workspace.
func (l *layer) isSame(name, made string, old fs.FileInfo) bool {
	info, err := os.Lstat(made)
	if err != nil || old == nil || !old.Mode().IsRegular() || info.Mode() != old.Mode() || info.Size() != old.Size() || info.Size() > maxCompared {
		return false
	}
	a, err := plainfile.Read(made, maxCompared)
	if err != nil {
		return false
	}
	b, err := l.root.ReadFile(filepath.FromSlash(name))
	return err == nil && bytes.Equal(a, b)
}

// holdsBack reports whether a change of a path must not be made, and notes why. made is the file that takes its place,
// if there is one.
func (l *layer) holdsBack(name string, kind ChangeKind, old fs.FileInfo, made string) bool {
	why := l.protectedReason(name, made)
	if why != "" && made != "" && l.isSame(name, made, old) {
		return true // it was only written again
	}
	if why == "" && old != nil && !old.IsDir() && changedSince(old, l.began) {
		why = "has changed while the command ran"
	}
	if why != "" {
		l.holdChange(name, kind, why)
	}
	return why != ""
}

// mergeDirectory makes the directory of the workspace what it is in the layer.
func (l *layer) mergeDirectory(name string, info, old fs.FileInfo) {
	opaque := isOpaque(filepath.Join(l.upper, filepath.FromSlash(name)))
	if old != nil && !old.IsDir() {
		if l.holdsBack(name, Changed, old, "") {
			return
		}
		l.announceChange(name, Removed)
		if err := l.root.Remove(filepath.FromSlash(name)); err != nil {
			l.noteFailure(name, Changed, err)
			return
		}
		old = nil
	}
	if old != nil && opaque && (l.holdsBack(name, Changed, old, "") || !l.removeMissing(name)) {
		return
	}
	if old == nil {
		if err := l.root.Mkdir(filepath.FromSlash(name), info.Mode().Perm()|0o700); err != nil {
			l.noteFailure(name, Created, err)
			return
		}
	}
	_ = os.Chmod(filepath.Join(l.upper, filepath.FromSlash(name)), 0o700) // files leave it
	changes := len(l.outcome.Changes)
	held := len(l.outcome.Held)
	l.moveDirectory(name)
	if old == nil && len(l.outcome.Changes) == changes {
		if len(l.outcome.Held) > held && l.root.Remove(filepath.FromSlash(name)) == nil {
			return // nothing of what the command put there may be there
		}
		l.outcome.Changes = append(l.outcome.Changes, PathChange{Path: name, Kind: Created})
	}
	if old == nil || old.Mode().Perm() != info.Mode().Perm() && !l.holdsBack(name, Changed, old, "") {
		if err := l.root.Chmod(filepath.FromSlash(name), info.Mode().Perm()); err != nil {
			l.noteFailure(name, Changed, err)
		}
	}
}

// removeMissing removes from a directory of the workspace what the command has removed together with the directory,
// before it made it again.
func (l *layer) removeMissing(name string) bool {
	dir, err := l.root.Open(filepath.FromSlash(name))
	if err != nil {
		l.noteFailure(name, Removed, err)
		return false
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		l.noteFailure(name, Removed, err)
		return false
	}
	for _, e := range entries {
		child := path.Join(name, e.Name())
		if _, err := os.Lstat(filepath.Join(l.upper, filepath.FromSlash(child))); err == nil {
			continue
		}
		if info, err := l.root.Lstat(filepath.FromSlash(child)); err == nil {
			l.removeEntry(child, info)
		}
	}
	return true
}

// removeEntry removes what the command has removed.
func (l *layer) removeEntry(name string, old fs.FileInfo) {
	if l.holdsBack(name, Removed, old, "") {
		return
	}
	if old.IsDir() {
		if !l.removeTree(name) {
			return
		}
	} else {
		l.announceChange(name, Removed)
		if err := l.root.Remove(filepath.FromSlash(name)); err != nil {
			l.noteFailure(name, Removed, err)
			return
		}
	}
	l.outcome.Changes = append(l.outcome.Changes, PathChange{Path: name, Kind: Removed})
}

// removeTree removes a directory of the workspace that the command has removed, unless a repository of git or a
// protected path is in it, or a file in it has changed meanwhile. It reports whether the directory is gone.
func (l *layer) removeTree(name string) bool {
	why := ""
	var files []string
	_ = fs.WalkDir(l.root.FS(), name, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		protected := ""
		if at != name {
			protected = l.protectedReason(at, "")
		}
		switch info, err := d.Info(); {
		case d.Name() == ".git" && !strings.Contains(at, "node_modules/"):
			why = "holds a repository of git"
		case protected != "":
			why = "holds " + at + ": " + protected
		case err == nil && !d.IsDir() && changedSince(info, l.began):
			why = "holds " + at + ", which has changed while the command ran"
		case err == nil && !d.IsDir():
			files = append(files, at)
		}
		if why != "" {
			return fs.SkipAll
		}
		return nil
	})
	if why != "" {
		l.holdChange(name, Removed, why)
		return false
	}
	for _, at := range files {
		l.announceChange(at, Removed)
	}
	if err := l.root.RemoveAll(filepath.FromSlash(name)); err != nil {
		l.noteFailure(name, Removed, err)
		return false
	}
	return true
}

// moveFile moves a file or link from the layer to its place in the workspace: as a whole, so that a reader never sees a
// part of it.
func (l *layer) moveFile(name string, info fs.FileInfo) error {
	from := filepath.Join(l.upper, filepath.FromSlash(name))
	for _, attribute := range []string{"origin", "impure", "metacopy", "redirect", "uuid"} {
		_ = unix.Lremovexattr(from, "user.overlay."+attribute)
	}
	if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		if err := os.Chmod(from, info.Mode().Perm()); err != nil {
			return err
		}
	}
	dir, err := l.root.Open(filepath.FromSlash(path.Dir(name)))
	if err != nil {
		return err
	}
	defer dir.Close()
	to := path.Base(name)
	err = unix.Renameat(unix.AT_FDCWD, from, int(dir.Fd()), to)
	if err != unix.EXDEV {
		return err
	}
	return copyFile(from, info, dir, to)
}

// copyFile copies a file or link to another file system, under another name first.
func copyFile(from string, info fs.FileInfo, dir *os.File, to string) error {
	name := ".raddle-" + rand.Text()
	fd := int(dir.Fd())
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err == nil {
			err = unix.Symlinkat(target, fd, name)
		}
		if err != nil {
			return err
		}
		if err = unix.Renameat(fd, name, fd, to); err != nil {
			_ = unix.Unlinkat(fd, name, 0)
		}
		return err
	}
	in, err := plainfile.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	made, err := unix.Openat(fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(made), name)
	err = copyContent(out, in, info.Size())
	err = errors.Join(err, out.Chmod(info.Mode().Perm()))
	times := []unix.Timespec{unix.NsecToTimespec(info.ModTime().UnixNano()), unix.NsecToTimespec(info.ModTime().UnixNano())}
	err = errors.Join(err, out.Close(), unix.UtimesNanoAt(fd, name, times, unix.AT_SYMLINK_NOFOLLOW))
	if err == nil {
		err = unix.Renameat(fd, name, fd, to)
	}
	if err != nil {
		_ = unix.Unlinkat(fd, name, 0)
	}
	return err
}

// copyContent copies a file without its holes.
func copyContent(out, in *os.File, size int64) error {
	for at := int64(0); at < size; {
		start, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			break // the rest is a hole
		}
		if err != nil {
			return err
		}
		end, err := unix.Seek(int(in.Fd()), start, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(out, start), io.NewSectionReader(in, start, end-start)); err != nil {
			return err
		}
		at = end
	}
	return out.Truncate(size)
}

// isWhiteout reports whether an entry of a layer says that the path was removed.
func isWhiteout(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Mode()&fs.ModeCharDevice != 0
	}
	return info.Mode()&fs.ModeCharDevice != 0 && stat.Rdev == 0
}

// isOpaque reports whether a directory of a layer replaces that of the workspace, and does not add to it.
func isOpaque(dir string) bool {
	var value [1]byte
	n, err := unix.Lgetxattr(dir, "user.overlay.opaque", value[:])
	return err == nil && n == 1 && value[0] == 'y'
}

// changedSince reports whether a file has changed after a moment.
func changedSince(info fs.FileInfo, moment time.Time) bool {
	var stat syscall.Stat_t
	switch s := info.Sys().(type) {
	case *syscall.Stat_t:
		stat = *s
	default:
		return info.ModTime().After(moment)
	}
	return time.Unix(stat.Ctim.Unix()).After(moment)
}
