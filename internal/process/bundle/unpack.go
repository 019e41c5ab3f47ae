package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"raddle.dev/internal/base/plainfile"
)

// Unpack writes all agents of this program below dir, unless they are there, and returns the directory in which they
// are. Its name changes with what is in them, so another version of the program has its own.
func Unpack(dir string) (place string, err error) {
	place = filepath.Join(dir, nameVersion())
	for _, unit := range unitNames() {
		_, missing := os.Stat(filepath.Join(place, unit))
		err = errors.Join(err, missing)
	}
	if err == nil {
		return place, nil
	}
	_, err = Install(place, Options{})
	return place, err
}

// nameVersion returns the first letters of the digest of all files.
var nameVersion = sync.OnceValue(func() string {
	sum := sha256.New()
	for _, unit := range unitNames() {
		for _, f := range listFiles(unit) {
			_, _ = sum.Write([]byte(unit + "/" + f.name + "\x00" + computeDigest(f.text))) // it never fails
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
})

// IsUnchanged reports whether the directory of an agent below dir holds exactly the files of this program, or of the
// version that was installed there.
func IsUnchanged(dir, agent string) bool {
	if !slices.Contains(Names(), agent) {
		return false
	}
	m, err := readManifest(dir)
	if err != nil {
		return false
	}
	current := listFiles(agent)
	missing := map[string]bool{}
	for _, name := range m.unitFiles(agent) {
		missing[name] = true
	}
	if len(missing) == 0 {
		for _, f := range current {
			missing[f.name] = true
		}
	}
	root := filepath.Join(dir, agent)
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if !e.Type().IsRegular() {
			return errChanged
		}
		text, err := plainfile.Read(path, largestCopy)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		now := slices.ContainsFunc(current, func(f file) bool { return f.name == name && bytes.Equal(f.text, text) })
		if !now && m.isChanged(agent+"/"+name, text) {
			return errChanged
		}
		delete(missing, name)
		return nil
	})
	return err == nil && len(missing) == 0
}

// largestCopy is the size in bytes of the largest file that can be an unchanged copy.
const largestCopy = 1 << 20

// errChanged ends the comparison of a directory.
var errChanged = errors.New("changed")
