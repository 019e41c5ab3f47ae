// Package plainfile opens the files that raddle finds by their names, and those that a file or a request names. It
// opens regular files only, never waits for one, reads no more of it than its caller allows, and stays beneath a
// directory where the file belongs to one.
//
// A test in the root of the repository finds code that opens files in another way.
package plainfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// These are the reasons of this package for not reading a file, for [errors.Is]. The errors that the functions return
// also say what to do.
var (
	// ErrNotRegular is for a directory, pipe, socket or device.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge is for a file with more bytes than the caller allows.
	ErrTooLarge = errors.New("too large")
	// ErrOutside is for a path, or a link, that leads out of the directory of the file.
	ErrOutside = errors.New("outside of its directory")
)

// patience is how long one opened file may make its reader wait: some files of /proc and /sys look regular, and have no
// end.
const patience = 10 * time.Second

// An unfit is why a file is not read, with an explanation.
type unfit struct {
	reason error
	text   string
}

func (r *unfit) Error() string { return r.text }
func (r *unfit) Unwrap() error { return r.reason }

// Read returns the content of the file at a path, which may be a link. A file with more than most bytes is an error,
// and is not read. Errors are a [*fs.PathError].
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	return readAll(path, f, most)
}

// ReadBeneath is [Read] for a file that must lie beneath the directory root: name is relative to root, or an absolute
// path in it. Links are followed as long as they lead to somewhere beneath root; root itself may be a link.
func ReadBeneath(root, name string, most int64) ([]byte, error) {
	f, err := OpenBeneath(root, name)
	if err != nil {
		return nil, err
	}
	return readAll(joinPath(root, name), f, most)
}

// ReadInside is [ReadBeneath] for a file that must also lie beneath the directory dir, which itself must lie beneath
// root. dir is relative to root, or an absolute path; name is relative to dir, or an absolute path.
func ReadInside(root, dir, name string, most int64) ([]byte, error) {
	f, err := openInside(root, dir, name)
	if err != nil {
		return nil, err
	}
	return readAll(joinPath(joinPath(root, dir), name), f, most)
}

// Open opens the file at a path for reading. The caller must close it, and limit what it reads. Reading a file that has
// no size and waits, as some of the kernel do, fails after ten seconds. Errors are a [*fs.PathError].
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path) // opening a device or a pipe can have effects of its own
	if err != nil {
		return nil, err
	}
	if err := checkMode(path, info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|withoutWaiting, 0)
	return checkOpened(path, f, err)
}

// OpenArgument is [Open] for a path that a person wrote on the command line. It also opens what a shell has opened for
// the command, such as the pipe of <(command): reading that waits, as reading standard input does.
func OpenArgument(path string) (*os.File, error) {
	if dir := filepath.Dir(filepath.Clean(path)); dir == "/dev/fd" || dir == "/proc/self/fd" || path == "/dev/stdin" {
		return os.Open(path)
	}
	return Open(path)
}

// OpenBeneath is [Open] for a file that must lie beneath the directory root, as for [ReadBeneath].
func OpenBeneath(root, name string) (*os.File, error) {
	path, rel, err := resolveBeneath(root, name)
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(cmp.Or(root, "."))
	if err != nil {
		return nil, err
	}
	return openIn(dir, path, rel)
}

// openInside opens a file as for [ReadInside].
func openInside(root, dir, name string) (*os.File, error) {
	path, rel, err := resolveBeneath(joinPath(root, dir), name)
	if err != nil {
		return nil, err
	}
	_, inner, err := resolveBeneath(root, dir)
	if err != nil {
		return nil, err
	}
	outer, err := os.OpenRoot(cmp.Or(root, "."))
	if err != nil {
		return nil, err
	}
	defer func() { _ = outer.Close() }() // only reads
	at, err := outer.OpenRoot(inner)
	if err != nil {
		return nil, renameError(path, err)
	}
	return openIn(at, path, rel)
}

// openIn opens a file in a directory, which it closes. path is for errors.
func openIn(dir *os.Root, path, rel string) (*os.File, error) {
	defer func() { _ = dir.Close() }() // only reads
	info, err := dir.Stat(rel)
	if err != nil {
		return nil, renameError(path, err)
	}
	if err := checkMode(path, info); err != nil {
		return nil, err
	}
	f, err := dir.OpenFile(rel, os.O_RDONLY|withoutWaiting, 0) // a link that was put there meanwhile does not lead out
	return checkOpened(path, f, renameError(path, err))
}

// CheckBeneath returns an error for a file that [OpenBeneath] would refuse because of where it leads; nil if there is
// no such file.
func CheckBeneath(root, name string) error {
	if _, _, err := resolveBeneath(root, name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// resolveBeneath returns the path of a file as its user knows it, and its place beneath root with all links followed.
func resolveBeneath(root, name string) (path, rel string, err error) {
	path = joinPath(root, name)
	top := root
	if filepath.IsAbs(path) {
		if top, err = filepath.Abs(root); err != nil {
			return path, "", err
		}
	}
	if rel, err := filepath.Rel(top, path); err != nil || !filepath.IsLocal(rel) {
		return path, "", &fs.PathError{Op: "open", Path: path, Err: &unfit{ErrOutside, "it is outside of " + root + ": put the file into that directory"}}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path, "", renameError(path, err)
	}
	if top, err = filepath.Abs(cmp.Or(root, ".")); err == nil { // a working directory may be behind a link, too
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return path, "", err
	}
	dir, err := filepath.EvalSymlinks(top)
	if err != nil {
		return path, "", err
	}
	if rel, err = filepath.Rel(dir, real); err != nil || !filepath.IsLocal(rel) {
		return path, "", &fs.PathError{Op: "open", Path: path, Err: &unfit{ErrOutside, "it is a link, or behind one, that leads out of " + root + ": put the file itself there"}}
	}
	return path, rel, nil
}

// joinPath returns the path of a name that is relative to root, or absolute.
func joinPath(root, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(root, name)
}

// renameError returns an error of the file system with the path that the user knows.
func renameError(path string, err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return &fs.PathError{Op: p.Op, Path: path, Err: p.Err}
	}
	if err != nil {
		err = &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return err
}

// checkOpened returns an opened file if it is still a regular one, and closes it otherwise.
func checkOpened(path string, f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = checkMode(path, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	if info.Size() == 0 {
		_ = f.SetReadDeadline(time.Now().Add(patience)) // files on a disk have no deadline, and need none
	}
	return f, nil
}

// checkMode returns an error for what is not a regular file.
func checkMode(path string, info fs.FileInfo) error {
	mode := info.Mode()
	kind := "a device"
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return &fs.PathError{Op: "open", Path: path, Err: &unfit{ErrNotRegular, "it is " + kind + ", and raddle reads regular files only: put a file there, or name another one"}}
}

// readAll reads and closes a file. path is for errors.
func readAll(path string, f *os.File, most int64) ([]byte, error) {
	defer func() { _ = f.Close() }() // only reads
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, newTooLarge(path, fmt.Sprintf("%d bytes", info.Size()), most)
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, renameError(path, err)
	}
	if int64(len(text)) > most { // it grows, or its size is not known before it is read
		return nil, newTooLarge(path, "more bytes than that", most)
	}
	return text, nil
}

func newTooLarge(path, size string, most int64) error {
	limit := fmt.Sprintf("%d bytes", most)
	switch {
	case most >= 1<<20 && most%(1<<20) == 0:
		limit = fmt.Sprintf("%d MiB", most>>20)
	case most >= 1<<10 && most%(1<<10) == 0:
		limit = fmt.Sprintf("%d KiB", most>>10)
	}
	return &fs.PathError{Op: "read", Path: path, Err: &unfit{ErrTooLarge, fmt.Sprintf("it has %s, and of a file of this kind raddle reads at most %s: make it smaller", size, limit)}}
}
