package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/plainfile"
)

// listLocal lists a file, a folder, or the files that match a pattern.
func (l *lister) listLocal(p sourceSpec) {
	info, err := os.Stat(p.at)
	switch {
	case err == nil && info.IsDir():
		l.listFolder(folderWalk{source: p.source, root: p.root, top: p.at, follow: true})
	case err == nil && !info.Mode().IsRegular():
		l.addProblem(p.source, p.at, notRegular(info.Mode()))
	case err == nil:
		l.addFile(p.source, p.root, p.at)
	case !errors.Is(err, fs.ErrNotExist):
		l.addProblem(p.source, "", fmt.Errorf("cannot be opened: %w", withoutPath(err)))
	case isLink(p.at):
		l.addProblem(p.source, p.at, leadsNowhere(err))
	case strings.ContainsAny(p.at, "*?[{"):
		top, pattern := doublestar.SplitPattern(filepath.ToSlash(p.at))
		if !doublestar.ValidatePattern(pattern) {
			l.addProblem(p.source, "", errors.New("this pattern cannot be read: close its brackets and braces"))
			return
		}
		l.listFolder(folderWalk{source: p.source, root: p.root, top: filepath.FromSlash(top), pattern: pattern, follow: true})
	}
}

// A folderWalk lists the files of a folder.
type folderWalk struct {
	source  string
	root    string // as in sourceSpec; empty: top
	top     string
	pattern string   // of paths below top, with slashes; empty: all files
	follow  bool     // symbolic links
	above   []string // the real paths of the folders that contain the current file
}

func (l *lister) listFolder(w folderWalk) {
	if _, err := os.Stat(w.top); errors.Is(err, fs.ErrNotExist) {
		return
	}
	w.root = cmp.Or(w.root, w.top)
	l.walkFolder(w, w.top)
}

func (l *lister) walkFolder(w folderWalk, dir string) {
	if l.ctx.Err() != nil {
		return
	}
	real, err := filepath.EvalSymlinks(dir)
	if err == nil && slices.Contains(w.above, real) {
		l.addProblem(w.source, dir, fmt.Errorf("a symbolic link that leads back to %s: the loop is left out", real))
		return
	}
	entries, err2 := os.ReadDir(dir) // sorted
	if err := errors.Join(err, err2); err != nil {
		l.addProblem(w.source, dir, fmt.Errorf("this folder cannot be read: %w", withoutPath(err)))
		return
	}
	w.above = append(slices.Clip(w.above), real)
	deeper := w.pattern == "" || strings.Contains(w.pattern, "**") || strings.Contains(w.pattern, "/")
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		mode := e.Type()
		if mode&fs.ModeSymlink != 0 {
			if !w.follow {
				continue
			}
			info, err := os.Stat(path)
			if err != nil {
				l.brokenLink(w, path, err)
				continue
			}
			if leadsOut(w.root, path) {
				l.addProblem(w.source, path, linkOut(w.root))
				continue
			}
			mode = info.Mode().Type()
		}
		switch {
		case mode.IsDir() && e.Name() == ".git":
		case mode.IsDir() && deeper:
			l.walkFolder(w, path)
		case mode.IsDir() || !w.matchesPattern(path) || slices.Contains(l.o.Skip, filepath.Join(real, e.Name())):
		case mode.IsRegular():
			l.addFile(w.source, w.root, path)
		default:
			l.addProblem(w.source, path, notRegular(mode))
		}
	}
}

func (l *lister) brokenLink(w folderWalk, path string, err error) {
	if w.matchesPattern(path) {
		l.addProblem(w.source, path, leadsNowhere(err))
	}
}

// leadsNowhere returns the problem of a link to something that is not there.
func leadsNowhere(err error) error {
	return fmt.Errorf("a symbolic link that leads nowhere: %w", withoutPath(err))
}

// isLink reports whether there is a link at a path.
func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

func (w folderWalk) matchesPattern(path string) bool {
	if w.pattern == "" {
		return true
	}
	below, err := filepath.Rel(w.top, path)
	if err != nil {
		return false
	}
	ok, err := doublestar.Match(w.pattern, filepath.ToSlash(below))
	return err == nil && ok
}

// addFile adds a file that must lie beneath root, unless that is "".
func (l *lister) addFile(source, root, path string) {
	if slices.Contains(l.o.Skip, path) {
		return
	}
	l.addEntry(Entry{Path: path, Source: source, ext: fileExtension(path), local: true, fetch: l.o.fromDisk(root, path)})
}

// fromDisk reads a file when its entry is read.
func (o *Options) fromDisk(root, path string) func(context.Context) (pageData, error) {
	return func(context.Context) (pageData, error) {
		data, err := readFile(root, path, o.maxBytes())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = errors.New("it was deleted after it had been found")
		case errors.Is(err, fs.ErrPermission):
			err = errors.New("permission denied: give it read permission, or leave it out")
		default:
			err = withoutPath(err)
		}
		page := pageData{data: data, ext: fileExtension(path)}
		if info, failed := os.Stat(path); failed == nil && err == nil {
			page.changed = info.ModTime()
		}
		return page, err
	}
}

// fileExtension returns the extension in lower case, without its dot.
func fileExtension(path string) string {
	return strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
}

// notRegular returns the problem of an entry in the file system that is not a file: opening a pipe would wait for its
// writer.
func notRegular(mode fs.FileMode) error {
	kind := "a device"
	switch {
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode.IsDir():
		kind = "a folder"
	}
	return fmt.Errorf("%s, not a file: it is left out", kind)
}

// leadsOut reports whether a path is behind a link that leads out of root. An empty root has no outside.
func leadsOut(root, path string) bool {
	return root != "" && errors.Is(plainfile.CheckBeneath(root, path), plainfile.ErrOutside)
}

// linkOut returns the problem of a link to a file or folder that is not beneath root: it may come from a person who may
// not read the file.
func linkOut(root string) error {
	return fmt.Errorf("a symbolic link that leads out of %s: it is left out; to read what is there, name its absolute path in `documents`", root)
}

// readFile reads a document, which must lie beneath the directory root unless that is "".
func readFile(root, path string, most int64) ([]byte, error) {
	read := func() ([]byte, error) { return plainfile.ReadBeneath(root, path, most) }
	if root == "" {
		read = func() ([]byte, error) { return plainfile.Read(path, most) }
	}
	data, err := read()
	if err == nil || errors.Is(err, plainfile.ErrOutside) && root == "" {
		return data, err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	info, failed := os.Stat(path) // for what to say
	switch {
	case errors.Is(err, plainfile.ErrOutside):
		err = linkOut(root)
	case failed != nil:
	case errors.Is(err, plainfile.ErrNotRegular):
		err = notRegular(info.Mode())
	case errors.Is(err, plainfile.ErrTooLarge):
		err = tooLarge(max(info.Size(), most+1), most)
	}
	return nil, err
}

// withoutPath returns the cause of err without the path, which the message has already.
func withoutPath(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

func tooLarge(size, most int64) error {
	if formatMegabytes(size) == formatMegabytes(most) {
		return fmt.Errorf("too large: more than the %s that a document may have; divide it, or leave it out", formatMegabytes(most))
	}
	return fmt.Errorf("too large: %s, where a document may have %s; divide it, or leave it out", formatMegabytes(size), formatMegabytes(most))
}

func formatMegabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }

func homeDir(env []string) (string, error) {
	if home := environ.Environ(env).FindHome(); home != "" {
		return home, nil
	}
	return os.UserHomeDir()
}
