package tempdir

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TestMain is also the process that is killed: it creates a directory, prints its name and waits.
func TestMain(m *testing.M) {
	if os.Getenv("RADDLE_TEST_TEMPDIR") == "" {
		os.Exit(m.Run())
	}
	dir, _, err := New("call-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(dir)
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

// startHolder starts a process that has a temporary directory.
func startHolder(t *testing.T) (dir string, kill func()) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RADDLE_TEST_TEMPDIR=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the process has no directory")
	}
	return lines.Text(), kill
}

func entries(t *testing.T, dir string) int {
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestRemoveStale(t *testing.T) {
	root := t.TempDir()
	t.Setenv("TMPDIR", root)
	t.Setenv("TMP", root)
	dead, kill := startHolder(t)
	live, _ := startHolder(t)
	own, remove, err := New("call-*")
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	for _, name := range []string{"raddle-tmp", "raddle-old", "other"} { // directories that are not raddle's
		if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	RemoveStale()
	if got := entries(t, root); got != 6 {
		t.Errorf("%d entries with three processes alive, want 6", got)
	}
	kill()
	RemoveStale()
	if _, err := os.Stat(filepath.Dir(dead)); !os.IsNotExist(err) {
		t.Errorf("the directory of the killed process is still there: %v", err)
	}
	for _, dir := range []string{live, own} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	if got := entries(t, root); got != 5 {
		t.Errorf("%d entries, want 5", got)
	}
}

// A directory from New is private, and nothing is left of it when everything is removed.
func TestNew(t *testing.T) {
	root := t.TempDir()
	t.Setenv("TMPDIR", root)
	t.Setenv("TMP", root)
	var users sync.WaitGroup
	for range 20 {
		users.Go(func() {
			for range 20 {
				dir, remove, err := New("call-*")
				if err != nil {
					t.Error(err)
					return
				}
				if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o077 != 0 && filepath.Separator == '/' {
					t.Errorf("%v, %v", info, err)
				}
				remove()
				remove()
			}
		})
	}
	users.Wait()
	if got := entries(t, root); got != 0 {
		t.Errorf("%d entries are left", got)
	}
}
