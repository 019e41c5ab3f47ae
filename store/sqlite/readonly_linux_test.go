package sqlite_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"raddle.dev/store/sqlite"
)

// withFilePermissions calls f on a thread to which the permissions of files apply. To root they do not
// without this.
func withFilePermissions(t *testing.T, f func()) {
	if os.Geteuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all [2]unix.CapUserData
	if err := unix.Capget(&header, &all[0]); err != nil {
		t.Fatal(err)
	}
	fewer := all
	fewer[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&header, &fewer[0]); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Capset(&header, &all[0]); err != nil {
			panic(err) // The thread must not serve other tests.
		}
	}()
	f()
}

func TestOpenOfWhatCannotBeWritten(t *testing.T) {
	for _, test := range []struct {
		name      string
		file, dir os.FileMode
		want      string
	}{
		{"file", 0o444, 0o777, "the file cannot be written"},
		{"file and directory", 0o444, 0o555, "write permission"},
		{"unreadable file", 0o000, 0o777, "read and write permission"},
		{"directory", 0, 0o555, "read and write permission"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "runs.db")
			if test.file != 0 || test.dir != 0o555 {
				if err := open(t, path).Close(); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(path, test.file); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, test.dir); err != nil {
				t.Fatal(err)
			}
			defer os.Chmod(dir, 0o755) // so that it can be removed
			withFilePermissions(t, func() {
				s, err := sqlite.Open(path)
				if err == nil {
					t.Fatal("Open took it", s.Close())
				}
				if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
					t.Errorf("%v\nwant %q", err, test.want)
				}
			})
		})
	}
}

// TestOpenReadOnly: what Open refuses because it cannot be written can be read, and
// only read, of this schema and of those before.
func TestOpenReadOnly(t *testing.T) {
	for _, test := range []struct {
		name      string
		file, dir os.FileMode
		schema    int // 0: the newest
	}{
		{"file", 0o444, 0o755, 0},
		{"file and directory", 0o444, 0o555, 0},
		{"of schema 1", 0o444, 0o555, 1},
		{"of schema 2", 0o444, 0o555, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "runs.db")
			if test.schema > 0 {
				writeOldFile(t, path, test.schema)
			} else {
				s := open(t, path)
				if err := s.Append(t.Context(), "a", 0, batch(3)); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			for d, mode := range map[string]os.FileMode{path: test.file, filepath.Dir(dir): 0o755, dir: test.dir} {
				if err := os.Chmod(d, mode); err != nil {
					t.Fatal(err)
				}
			}
			defer os.Chmod(dir, 0o755) // so that it can be removed
			withFilePermissions(t, func() {
				if s, err := sqlite.Open(path); err == nil {
					t.Fatal("Open took it", s.Close())
				}
				s, err := sqlite.OpenReadOnly(path)
				if err != nil {
					t.Fatal(err)
				}
				if n := count(t, s, "a"); n != 3 {
					t.Errorf("%d records, want 3", n)
				}
				for info, err := range s.Threads(t.Context(), "") {
					if err != nil || info.Name != "a" || info.Head != 3 {
						t.Errorf("listed %+v, %v", info, err)
					}
				}
				if l, err := s.ReadLease(t.Context(), "a"); err != nil || l.Owner != "" {
					t.Errorf("%+v, %v", l, err)
				}
				_, acquired := s.AcquireLease(t.Context(), "a", "me", "", time.Minute)
				for what, err := range map[string]error{"Append": s.Append(t.Context(), "a", 3, batch(1)), "Prune": s.Prune(t.Context(), "a", 2), "AcquireLease": acquired} {
					if err == nil || !strings.Contains(err.Error(), "for reading only") || !strings.Contains(err.Error(), path) {
						t.Errorf("%s: %v", what, err)
					}
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			if files, err := os.ReadDir(dir); err != nil || test.dir == 0o555 && len(files) != 1 {
				t.Errorf("%v is left, %v", files, err)
			}
		})
	}
}

// TestOpenWhereTheDirectoryIsGone: a relative path means nothing in a working directory that was removed.
func TestOpenWhereTheDirectoryIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(path string) (*sqlite.Store, error){"Open": sqlite.Open, "OpenReadOnly": sqlite.OpenReadOnly} {
		if s, err := open("runs.db"); err == nil || !strings.Contains(err.Error(), "getwd") {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}
