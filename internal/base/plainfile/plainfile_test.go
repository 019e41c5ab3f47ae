//go:build unix

package plainfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testfile"
)

// readers are the ways to read a file of a directory, with a limit of 100 bytes.
var readers = map[string]func(dir, name string) ([]byte, error){
	"Read":        func(dir, name string) ([]byte, error) { return Read(filepath.Join(dir, name), 100) },
	"ReadBeneath": func(dir, name string) ([]byte, error) { return ReadBeneath(dir, name, 100) },
	"ReadInside": func(dir, name string) ([]byte, error) {
		return ReadInside(filepath.Dir(dir), filepath.Base(dir), name, 100)
	},
}

func TestReadRefusesWhatIsNoFile(t *testing.T) {
	for how, read := range readers {
		for _, trap := range testfile.Traps() {
			t.Run(how+" "+trap.Name, func(t *testing.T) {
				dir := t.TempDir()
				trap.Put(t, filepath.Join(dir, "f"))
				began := time.Now()
				text, err := read(dir, "f")
				if err == nil || len(text) > 0 {
					t.Fatalf("read %d bytes without an error", len(text))
				}
				if p := (*fs.PathError)(nil); !errors.As(err, &p) || !strings.HasSuffix(p.Path, "f") {
					t.Errorf("the error does not name the file: %v", err)
				}
				if d := time.Since(began); d > patience/2 {
					t.Errorf("it took %v", d)
				}
			})
		}
	}
}

func TestReadSaysWhy(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("large", strings.Repeat("x", 101))
	write("full", strings.Repeat("x", 100))
	write("empty", "")
	for name, want := range map[string]error{"large": ErrTooLarge, ".": ErrNotRegular, "nothing": fs.ErrNotExist, "full": nil, "empty": nil, "full/below": syscallNotDir()} {
		for how, read := range readers {
			if _, err := read(dir, name); !errors.Is(err, want) {
				t.Errorf("%s of %s: %v, want %v", how, name, err, want)
			}
		}
	}
}

// syscallNotDir returns the error for a path below a file.
func syscallNotDir() error {
	_, err := os.Stat("/dev/null/x")
	return errors.Unwrap(err)
}

func TestReadBeneathStaysInside(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"f", "deep/er/f"} {
		for _, way := range testfile.WaysOut() {
			t.Run(way.Name+" "+name, func(t *testing.T) {
				root := t.TempDir()
				way.Put(t, root, name, secret)
				if text, err := ReadBeneath(root, name, 100); !errors.Is(err, ErrOutside) || len(text) > 0 || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), root) {
					t.Errorf("got %q, %v", text, err)
				}
				if err := CheckBeneath(root, name); !errors.Is(err, ErrOutside) {
					t.Errorf("CheckBeneath: %v", err)
				}
				if text, err := Read(filepath.Join(root, name), 100); err != nil || string(text) != "secret" {
					t.Errorf("a file without a directory is read through links: got %q, %v", text, err)
				}
			})
		}
	}
	root := t.TempDir()
	for _, name := range []string{"../" + filepath.Base(outside) + "/secret", secret, "/etc/passwd", "a/../../x"} {
		if _, err := ReadBeneath(root, name, 100); !errors.Is(err, ErrOutside) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckBeneath(root, "nothing"); err != nil {
		t.Errorf("what does not exist is nowhere: %v", err)
	}
}

func TestReadBeneathFollowsLinksInside(t *testing.T) {
	parent := t.TempDir()
	real, root := filepath.Join(parent, "real"), filepath.Join(parent, "root")
	err := errors.Join(os.MkdirAll(filepath.Join(real, "a"), 0o700), os.WriteFile(filepath.Join(real, "a", "f"), []byte("text"), 0o600), os.Symlink("real", root),
		os.Symlink("a/f", filepath.Join(real, "relative")), os.Symlink(filepath.Join(root, "a", "f"), filepath.Join(real, "absolute")),
		os.Symlink("../real/a", filepath.Join(real, "round")), os.Symlink("absolute", filepath.Join(real, "chain")))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/f", "relative", "absolute", "round/f", "chain", filepath.Join(root, "a", "f"), "a/../a/f"} {
		if text, err := ReadBeneath(root, name, 100); err != nil || string(text) != "text" {
			t.Errorf("%s: got %q, %v", name, text, err)
		}
	}
}

// TestOptionalReadNeverWaitsForTheKernel, for which the right to read the log of the kernel is needed, reads a file that looks regular and whose read waits for the next message of the kernel.
func TestOptionalReadNeverWaitsForTheKernel(t *testing.T) {
	const endless = "/proc/kmsg"
	f, err := Open(endless)
	if err != nil {
		t.Skipf("%s cannot be opened here: %v", endless, err)
	}
	defer f.Close()
	if err := f.SetReadDeadline(time.Now()); err != nil {
		t.Fatalf("a read of %s cannot be ended: %v", endless, err)
	}
	if _, err := io.Copy(io.Discard, f); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the read ended with %v", err)
	}
}

func TestReadIsSafeWhileTheFileIsReplaced(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	root := t.TempDir()
	path, next := filepath.Join(root, "f"), filepath.Join(root, "next")
	if err := errors.Join(os.WriteFile(outside, []byte("secret"), 0o600), os.WriteFile(path, []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan error)
	go func() {
		defer close(done)
		for {
			for _, put := range []func() error{func() error { return os.Symlink(outside, next) }, func() error { return os.WriteFile(next, []byte("text"), 0o600) }} {
				if err := errors.Join(put(), os.Rename(next, path)); err != nil {
					done <- err
					return
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for range 2000 {
		if text, err := ReadBeneath(root, "f", 100); err == nil && string(text) != "text" && len(text) > 0 {
			t.Fatalf("read %q", text)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestReadInsideStaysInBothDirectories(t *testing.T) {
	parent := t.TempDir()
	root := filepath.Join(parent, "root")
	testfile.WriteFiles(t, parent, map[string]string{"root/dir/f": "text", "root/dir/sub/f": "text", "root/other/f": "secret", "out/f": "secret"})
	for at, to := range map[string]string{"root/dir/own": "sub/f", "root/dir/absolute": filepath.Join(root, "dir/f"), "root/dir/aside": "../other/f", "root/dir/out": "../../out/f", "root/inner": "dir", "root/away": "../out"} {
		if err := os.Symlink(to, filepath.Join(parent, at)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		dir, name string
		want      error
	}{
		{"dir", "f", nil}, {"dir", "sub/f", nil}, {"dir", "own", nil}, {"dir", "absolute", nil}, {filepath.Join(root, "dir"), "f", nil}, {"dir", filepath.Join(root, "dir", "f"), nil}, {"inner", "f", nil}, {"inner", "own", nil}, {".", "dir/f", nil},
		{"dir", "aside", ErrOutside}, {"dir", "out", ErrOutside}, {"dir", "../other/f", ErrOutside}, {"dir", filepath.Join(root, "other", "f"), ErrOutside}, {"away", "f", ErrOutside}, {"../out", "f", ErrOutside},
		{filepath.Join(parent, "out"), "f", ErrOutside}, {"dir", "nothing", fs.ErrNotExist}, {"nothing", "f", fs.ErrNotExist}, {"dir", "sub", ErrNotRegular},
	} {
		if text, err := ReadInside(root, c.dir, c.name, 100); !errors.Is(err, c.want) || (c.want == nil) != (string(text) == "text") || strings.Contains(string(text), "secret") {
			t.Errorf("%s in %s: %q, %v, want %v", c.name, c.dir, text, err, c.want)
		}
	}
}

// The directory and the file may be named from the working directory and from the root, each in its own way.
func TestReadBeneathTakesBothKindsOfPaths(t *testing.T) {
	parent := t.TempDir()
	testfile.WriteFiles(t, parent, map[string]string{"dir/f": "text", "f": "secret"})
	t.Chdir(parent)
	for _, root := range []string{"dir", "./dir", filepath.Join(parent, "dir"), "dir/../dir"} {
		for _, name := range []string{"f", "./f", filepath.Join(parent, "dir", "f")} {
			if text, err := ReadBeneath(root, name, 100); err != nil || string(text) != "text" {
				t.Errorf("%s in %s: %q, %v", name, root, text, err)
			}
		}
		for _, name := range []string{"../f", filepath.Join(parent, "f")} {
			if text, err := ReadBeneath(root, name, 100); !errors.Is(err, ErrOutside) {
				t.Errorf("%s in %s: %q, %v", name, root, text, err)
			}
		}
	}
	if text, err := ReadBeneath("", filepath.Join(parent, "dir", "f"), 100); err != nil || string(text) != "text" {
		t.Errorf("in the working directory: %q, %v", text, err)
	}
}
