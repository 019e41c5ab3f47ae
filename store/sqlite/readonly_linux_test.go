package sqlite_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"raddle.dev/store/sqlite"
)

// asNobody calls f on a thread that may do with files what user nobody may: the
// permissions of files mean nothing to root.
func asNobody(t *testing.T, f func()) {
	if os.Geteuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const nobody = 65534
	// Neither call reports an error; what they return is the id before.
	_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0)
	defer func() { _, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0) }()
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
			asNobody(t, func() {
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
