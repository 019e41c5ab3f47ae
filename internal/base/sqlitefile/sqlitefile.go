// Package sqlitefile creates the files of SQLite databases and writes their addresses.
package sqlitefile

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// creating makes sure that Create never closes a descriptor of a database that this
// process uses: that would drop every lock of the process on it.
var creating sync.Mutex

// Create creates an empty file at path, readable for its owner only, and the directories
// above it. It leaves an existing file as it is, and returns an error if path is not a
// regular file.
func Create(path string) error {
	creating.Lock()
	defer creating.Unlock()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	i, err := os.Stat(path)
	if err == nil && !i.Mode().IsRegular() {
		err = errors.New("this is not a file: name a file, or a path where one can be created")
	}
	return err
}

// FormatURI returns the address of the database at path with these settings. No character
// of the path has a special meaning.
func FormatURI(path string, settings url.Values) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // C:/…
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}).String()
}
