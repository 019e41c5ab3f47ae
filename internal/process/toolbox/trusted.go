package toolbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/storage/config"
)

// Limits of what is kept of files that a person has agreed to. Of longer and further files only a change is noticed.
const (
	longestTrusted = 64 << 10 // of one file, in bytes
	mostTrusted    = 500      // files of a directory
)

// trustedFiles are the files of a directory as they were when a person agreed to them, so that a change can be shown.
type trustedFiles struct {
	Time  time.Time              `json:"time"` // when the person agreed
	Files map[string]trustedFile `json:"files"`
}

// A trustedFile is one of them. Text is nil if it is long or no text; it lacks the secrets that raddle knows.
type trustedFile struct {
	Digest string  `json:"digest"`
	Text   *string `json:"text,omitempty"`
}

// A FileChange is how a file differs from what a person has agreed to.
type FileChange struct {
	Path string // relative to the directory
	Kind string // "added", "removed" or "changed"
	Diff string // a unified diff without its first two lines; "" if the texts are long, secret or none
}

// readTrusted reads the files of a directory, or a single file, that decide what raddle does with it.
func (s *Shared) readTrusted(u ImplicitDir) map[string]trustedFile {
	root := u.Dir
	names := u.Files
	switch {
	case u.Packages:
		return nil // thousands of files, too many to read
	case u.Servers:
		root = filepath.Dir(u.Dir)
		names = []string{filepath.Base(u.Dir)}
	case u.Skills:
		names = listFiles(u.Dir)
	}
	files := map[string]trustedFile{}
	for _, name := range names[:min(len(names), mostTrusted)] {
		text, err := plainfile.ReadBeneath(root, filepath.FromSlash(name), longestTrusted)
		if err != nil {
			files[name] = trustedFile{Digest: stampFile(filepath.Join(root, filepath.FromSlash(name)))}
			continue
		}
		sum := sha256.Sum256(text)
		files[name] = trustedFile{Digest: hex.EncodeToString(sum[:])}
		if utf8.Valid(text) && filepath.Base(name) != ".env" {
			clean := s.SecretSet().Text(string(text))
			files[name] = trustedFile{Digest: files[name].Digest, Text: &clean}
		}
	}
	return files
}

// listFiles lists the regular files below a directory, relative to it and sorted.
func listFiles(dir string) (names []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if len(names) == mostTrusted {
			return fs.SkipAll
		}
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if rel, err := filepath.Rel(dir, path); err == nil {
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	})
	return names
}

// stampFile tells a long file from a later version of it without reading it: the digest that consent is bound to covers
// its content.
func stampFile(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "unreadable"
	}
	return fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano())
}

// trustedPath returns where the files of a directory are kept.
func (s *Shared) trustedPath(dir string) string {
	sum := sha256.Sum256([]byte(resolveLinks(dir)))
	return filepath.Join(s.Dirs.State, "trusted", hex.EncodeToString(sum[:16])+".json")
}

// keepTrusted keeps the files that a person has agreed to.
func (s *Shared) keepTrusted(u ImplicitDir) error {
	text, err := json.Marshal(trustedFiles{Time: time.Now().UTC().Truncate(time.Second), Files: u.seen})
	if err != nil {
		return err
	}
	return config.WritePrivate(s.trustedPath(u.Dir), text)
}

// compareTrusted sets what a directory has now, when a person has last agreed to it, and what has changed since. What
// cannot be read was never agreed to.
func (s *Shared) compareTrusted(u *ImplicitDir) {
	u.seen = s.readTrusted(*u)
	text, err := plainfile.Read(s.trustedPath(u.Dir), mostTrusted*2*longestTrusted)
	var was trustedFiles
	if err != nil || json.Unmarshal(text, &was) != nil {
		return
	}
	u.Since = was.Time
	names := map[string]trustedFile{}
	maps.Copy(names, was.Files)
	maps.Copy(names, u.seen)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, had := was.Files[name]
		after, has := u.seen[name]
		if had && has && before.Digest == after.Digest {
			continue
		}
		c := FileChange{Path: name, Kind: "changed"}
		switch {
		case !had:
			c.Kind = "added"
		case !has:
			c.Kind = "removed"
		}
		if had && before.Text == nil || has && after.Text == nil {
			u.Changes = append(u.Changes, c)
			continue
		}
		// The first two lines are the names of the files, which say nothing here.
		lines := strings.SplitAfterN(udiff.Unified("", "", textOf(before), textOf(after)), "\n", 3)
		c.Diff = lines[len(lines)-1]
		u.Changes = append(u.Changes, c)
	}
}

func textOf(f trustedFile) string {
	if f.Text == nil {
		return ""
	}
	return *f.Text
}
