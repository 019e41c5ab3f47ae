package runs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	if _, yes := findDriver(dir, "r1"); yes {
		t.Error("a run that no process drives is reported as driven")
	}
	lock, err := TakeLock(dir, "r1")
	if err != nil {
		t.Fatal(err)
	}
	if pid, yes := findDriver(dir, "r1"); !yes || pid != os.Getpid() {
		t.Errorf("driven: %d %v", pid, yes)
	}
	var e *BusyError
	if _, err := TakeLock(dir, "r1"); !errors.As(err, &e) || e.PID != os.Getpid() || e.Run != "r1" {
		t.Errorf("a second lock: %v", err)
	}
	other, err := TakeLock(dir, "r2")
	if err != nil {
		t.Errorf("another run: %v", err)
	}
	other.Release()
	lock.Release()
	lock.Release() // releasing again does no harm
	if _, yes := findDriver(dir, "r1"); yes {
		t.Error("a run whose lock was released is said to be driven")
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("files are left: %v", entries)
	}
	// A file that a killed process left behind is not a lock.
	if err := os.WriteFile(filepath.Join(dir, "r3"), []byte("99999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, yes := findDriver(dir, "r3"); yes {
		t.Error("a file that no process holds is reported as a lock")
	}
	if lock, err := TakeLock(dir, "r3"); err != nil {
		t.Errorf("a file that no process holds: %v", err)
	} else {
		lock.Release()
	}
}

// A lock without the id of its owner, as on a full disk, is held all the same.
func TestLockWithoutAName(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run")
	if err := os.WriteFile(path, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path) // writing to it fails
	if err != nil {
		t.Fatal(err)
	}
	lock := recordLockHolder(f)
	if pid := readLockHolder(path); pid != 0 {
		t.Errorf("holder %d", pid)
	}
	lock.Release()
	if _, err := os.Stat(path); err == nil {
		t.Error("the lock's file is still there")
	}
}
