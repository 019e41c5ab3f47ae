package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/internal/base/failure"
)

// stateFiles are what a service keeps on disk in addition to the journals: a mark for each run that it drives or has in
// its queue, and the places at which runs stop. They belong to one store.
type stateFiles struct {
	drives string // directory of the marks, named by run
	breaks string // directory of the places at which runs stop, named by run
	now    func() time.Time

	mu sync.Mutex // held while a mark is read and changed
}

// openStateFiles creates the directories for the store with a URL.
func openStateFiles(dir, store string) (*stateFiles, error) {
	sum := sha256.Sum256([]byte(store))
	dir = filepath.Join(dir, hex.EncodeToString(sum[:8]))
	f := &stateFiles{drives: filepath.Join(dir, "drives"), breaks: filepath.Join(dir, "breaks"), now: time.Now}
	for _, d := range []string{f.drives, f.breaks} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("the files of the server: %w", err)
		}
	}
	return f, f.removeParts()
}

// removeParts removes files that were being written when a service was killed. Another service that is writing one
// writes it again.
func (f *stateFiles) removeParts() error {
	for _, pattern := range []string{filepath.Join(f.drives, "*"), filepath.Join(f.breaks, "*")} {
		left, err := filepath.Glob(pattern + partSuffix)
		if err != nil {
			return err
		}
		for _, path := range left {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("the files of the server: %w", err)
			}
		}
	}
	return nil
}

// A mark says that a service drives a run or has it in its queue.
type mark struct {
	ID string // of who took the run up last: who takes it up makes a new mark
	// Pending says that the run is to be continued even if it is paused: it waits for a place, or a service has stopped
	// it because it ended itself.
	Pending bool
}

// pendingNote follows the id in the mark of a run that is to be continued even if it is paused.
const pendingNote = " drained"

// addMark records that the service drives a run, and returns the id of the mark.
func (f *stateFiles) addMark(run string) (id string, err error) {
	id = rand.Text()
	f.mu.Lock()
	defer f.mu.Unlock()
	return id, f.writeMark(run, id)
}

// notePending adds to the mark of a run, if there is one, that the run is to be continued even if it is paused.
func (f *stateFiles) notePending(run string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.readMark(run)
	if !ok || m.Pending { // it has just stopped
		return nil
	}
	return f.writeMark(run, m.ID+pendingNote)
}

func (f *stateFiles) writeMark(run, text string) error {
	if err := writeSynced(filepath.Join(f.drives, run), []byte(text+"\n")); err != nil {
		return &failure.Error{Kind: failure.Unavailable, Err: fmt.Errorf("record that run %s is driven: %w", run, err), Next: noRoom}
	}
	return nil
}

// readMark returns the mark of a run; ok is false if there is none.
func (f *stateFiles) readMark(run string) (m mark, ok bool) {
	text, err := os.ReadFile(filepath.Join(f.drives, run))
	m.ID, m.Pending = strings.CutSuffix(strings.TrimSuffix(string(text), "\n"), pendingNote)
	return m, !errors.Is(err, fs.ErrNotExist)
}

// hasMark reports whether a run has a mark.
func (f *stateFiles) hasMark(run string) bool {
	_, ok := f.readMark(run)
	return ok
}

// removeMark records that the service does not drive a run any more. It does nothing if the mark has another id:
// another service has taken the run up since.
func (f *stateFiles) removeMark(run, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := f.readMark(run); ok && m.ID == id {
		_ = os.Remove(filepath.Join(f.drives, run))
	}
}

// noRoom is what to do about files of the state directory that cannot be written.
const noRoom = "make room for the state directory, and try again"

// isOldMark reports whether the mark of a run is so old that what was to be recorded then is recorded or never will be.
func (f *stateFiles) isOldMark(run string) bool {
	info, err := os.Stat(filepath.Join(f.drives, run))
	return err == nil && f.now().Sub(info.ModTime()) > time.Hour
}

// listMarks returns the runs that were driven, those that started first in front.
func (f *stateFiles) listMarks() ([]string, error) {
	entries, err := os.ReadDir(f.drives)
	if err != nil {
		return nil, fmt.Errorf("the runs that the server was driving: %w", err)
	}
	var list []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), partSuffix) {
			list = append(list, e.Name())
		}
	}
	slices.Sort(list) // ids begin with their time
	return list, nil
}

func hashText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// partSuffix is that of files that are not complete.
const partSuffix = ".part"

// writeSynced writes a file that is complete after a power loss, or absent. A service that starts removes files that
// are being written: then the file is written again.
func writeSynced(path string, text []byte) error {
	err := writeOnce(path, text)
	for range 3 {
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		err = writeOnce(path, text)
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func writeOnce(path string, text []byte) error {
	// several services may write it at once
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+partSuffix)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		_ = os.Remove(file.Name())
		return err
	}
	return os.Rename(file.Name(), path)
}

// syncDir saves the names of a directory's files. Systems that cannot do that save them with the files.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
