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
)

// stateFiles are what a service keeps on disk besides the journals: a mark for each run that it drives or has in its
// queue, and the runs of idempotency keys. Both belong to one store.
type stateFiles struct {
	drives string // directory of the marks, named by run
	keys   string // directory of the keys, named by their hash
}

// openStateFiles creates the directories for the store with a URL.
func openStateFiles(dir, store string) (*stateFiles, error) {
	sum := sha256.Sum256([]byte(store))
	dir = filepath.Join(dir, hex.EncodeToString(sum[:8]))
	f := &stateFiles{drives: filepath.Join(dir, "drives"), keys: filepath.Join(dir, "keys")}
	for _, d := range []string{f.drives, f.keys} {
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
	text, err := os.ReadFile(f.keyPath(key))
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

// writeKey saves the entry of a key.
func (f *stateFiles) writeKey(key string, e keyEntry) error {
	text, err := json.Marshal(e)
	if err == nil {
		err = writeSynced(f.keyPath(key), text)
	}
	if err != nil {
		return fmt.Errorf("save the idempotency key: %w", err)
	}
	return nil
}

func (f *stateFiles) keyPath(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(f.keys, hex.EncodeToString(sum[:]))
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
