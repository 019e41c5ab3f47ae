package server

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// stateFiles are what a service keeps on disk besides the journals: a mark for each run that it drives or has in its
// queue, the places at which runs stop, and the runs of idempotency keys. They belong to one store.
type stateFiles struct {
	drives string // directory of the marks, named by run
	breaks string // directory of the places at which runs stop, named by run
	keys   string // directory of the keys: in one directory for each day, named by their hash
	now    func() time.Time
}

// openStateFiles creates the directories for the store with a URL.
func openStateFiles(dir, store string) (*stateFiles, error) {
	sum := sha256.Sum256([]byte(store))
	dir = filepath.Join(dir, hex.EncodeToString(sum[:8]))
	f := &stateFiles{drives: filepath.Join(dir, "drives"), breaks: filepath.Join(dir, "breaks"), keys: filepath.Join(dir, "keys"), now: time.Now}
	for _, d := range []string{f.drives, f.breaks, f.keys} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("the files of the server: %w", err)
		}
	}
	return f, nil
}

// addMark records that the service drives a run.
func (f *stateFiles) addMark(run string) error {
	if err := writeSynced(filepath.Join(f.drives, run), nil); err != nil {
		return fmt.Errorf("record that run %s is driven: %w", run, err)
	}
	return nil
}

// removeMark records that the service does not drive a run any more.
func (f *stateFiles) removeMark(run string) { _ = os.Remove(filepath.Join(f.drives, run)) }

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

// A keyEntry is what an idempotency key stands for.
type keyEntry struct {
	Run     string `json:"run"`
	Request string `json:"request"` // hash of what was requested
}

// readKey returns the entry of a key; ok is false if there is none.
func (f *stateFiles) readKey(key string) (e keyEntry, ok bool, err error) {
	var text []byte
	for _, day := range f.keptDays() {
		if text, err = os.ReadFile(f.keyPath(day, key)); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return e, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		return e, false, fmt.Errorf("the idempotency key: %w", err)
	}
	return e, true, nil
}

// writeKey saves the entry of a key. The first key of a day removes those that are too old.
func (f *stateFiles) writeKey(key string, e keyEntry) error {
	text, err := json.Marshal(e)
	path := f.keyPath(f.keptDays()[0], key)
	if err == nil {
		if err = os.Mkdir(filepath.Dir(path), 0o700); err == nil {
			err = f.removeOldKeys()
		} else if errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err == nil {
		err = writeSynced(path, text)
	}
	if err != nil {
		return fmt.Errorf("save the idempotency key: %w", err)
	}
	return nil
}

// keptDays returns the directories of the days whose keys are kept, today's first: a key is kept for a day at least, and for two at most.
func (f *stateFiles) keptDays() []string {
	now := f.now().UTC()
	return []string{now.Format(time.DateOnly), now.AddDate(0, 0, -1).Format(time.DateOnly)}
}

// removeOldKeys removes the keys of the days before those that are kept.
func (f *stateFiles) removeOldKeys() error {
	days, err := os.ReadDir(f.keys)
	if err != nil {
		return err
	}
	for _, day := range days {
		if !slices.Contains(f.keptDays(), day.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.keys, day.Name())))
		}
	}
	return err
}

func (f *stateFiles) keyPath(day, key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(f.keys, day, hex.EncodeToString(sum[:]))
}

// partSuffix is that of files that are not complete.
const partSuffix = ".part"

// writeSynced writes a file that is complete after a power loss, or absent.
func writeSynced(path string, text []byte) error {
	file, err := os.OpenFile(path+partSuffix, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(path+partSuffix, path)
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
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
