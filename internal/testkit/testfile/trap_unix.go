//go:build unix

package testfile

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A Trap is something that is not a file to read, at the path of one: a program that reads it waits, or reads without
// an end.
type Trap struct {
	Name string
	Put  func(t testing.TB, path string)
}

// Traps returns the kinds of traps. The directory of a path must exist.
func Traps() []Trap {
	pipe := func(t testing.TB, path string) { must(t, syscall.Mkfifo(path, 0o600)) }
	sparse := func(t testing.TB, path string) {
		must(t, os.WriteFile(path, nil, 0o600))
		must(t, os.Truncate(path, 1<<40))
	}
	unreadable := func(t testing.TB, path string) {
		const failing = "/proc/self/mem" // a regular file whose first byte cannot be read, whatever the rights are
		if _, err := os.Stat(failing); err == nil {
			must(t, os.Symlink(failing, path))
			return
		}
		must(t, os.WriteFile(path, nil, 0o000))
	}
	return []Trap{
		{"pipe", pipe},
		{"link to a pipe", func(t testing.TB, path string) {
			target := filepath.Join(t.TempDir(), "pipe")
			pipe(t, target)
			must(t, os.Symlink(target, path))
		}},
		{"endless device", func(t testing.TB, path string) { must(t, os.Symlink("/dev/zero", path)) }},
		{"terminal", func(t testing.TB, path string) { must(t, os.Symlink("/dev/ptmx", path)) }},
		{"directory", func(t testing.TB, path string) { must(t, os.Mkdir(path, 0o700)) }},
		{"socket", func(t testing.TB, path string) {
			dir, err := os.MkdirTemp("", "s") // the path of a socket may have about 100 bytes, until it is renamed
			must(t, err)
			s, err := net.Listen("unix", filepath.Join(dir, "s"))
			must(t, err)
			t.Cleanup(func() { _ = s.Close() })
			must(t, os.Rename(filepath.Join(dir, "s"), path))
			must(t, os.Remove(dir))
		}},
		{"huge sparse file", sparse},
		{"unreadable file", unreadable},
		{"link to itself", func(t testing.TB, path string) { must(t, os.Symlink(filepath.Base(path), path)) }},
	}
}

// A WayOut puts a link, or a directory that is one, into root so that the file name in it is the file target, which is
// elsewhere.
type WayOut struct {
	Name string
	Put  func(t testing.TB, root, name, target string)
}

// WaysOut returns the ways in which a link leads out of a directory. The file must not exist.
func WaysOut() []WayOut {
	absolute := func(t testing.TB, root, name, target string) {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		must(t, os.Symlink(target, filepath.Join(root, name)))
	}
	return []WayOut{
		{"absolute link", absolute},
		{"relative link", func(t testing.TB, root, name, target string) {
			dir, err := filepath.EvalSymlinks(root)
			must(t, err)
			target, err = filepath.EvalSymlinks(target)
			must(t, err)
			rel, err := filepath.Rel(filepath.Dir(filepath.Join(dir, name)), target)
			must(t, err)
			absolute(t, root, name, rel)
		}},
		{"chain of links", func(t testing.TB, root, name, target string) {
			must(t, os.MkdirAll(filepath.Join(root, "chain"), 0o700))
			must(t, os.Symlink(target, filepath.Join(root, "chain", "two")))
			must(t, os.Symlink("two", filepath.Join(root, "chain", "one")))
			dir, err := filepath.Rel(filepath.Dir(name), "chain")
			must(t, err)
			absolute(t, root, name, filepath.Join(dir, "one"))
		}},
		{"linked directory", func(t testing.TB, root, name, target string) {
			must(t, os.Symlink(filepath.Dir(target), filepath.Join(root, "linked")))
			dir, err := filepath.Rel(filepath.Dir(name), "linked")
			must(t, err)
			absolute(t, root, name, filepath.Join(dir, filepath.Base(target)))
		}},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
