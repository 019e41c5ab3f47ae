package moving

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/wording"
)

// The limits of what is read of another program.
const (
	largestText  = 1 << 20  // bytes of a file that is read
	largestState = 32 << 20 // bytes of a file in which other programs keep settings among data
	mostFiles    = 500      // of a directory that is copied
	mostBytes    = 16 << 20 // of a directory that is copied
	mostEntries  = 5000     // of a directory that is listed
)

// loginFiles are files in which programs keep the logins of a person. They are never opened.
var loginFiles = []string{
	".credentials.json", "auth.json", "oauth_creds.json", "google_accounts.json", "credentials.json", "secrets.yaml",
	"mcp-oauth-tokens.json", "mcp-auth.json", "token.json", "tokens.json", "keys.json", "vault.yml", "vault.enc",
}

// leftFiles are names that a copy of a directory leaves out, because they are data of a machine.
var leftFiles = []string{".git", ".DS_Store", "node_modules", "__pycache__", ".venv", ".cache"}

// A source is the home of another program while it is read.
type source struct {
	program string
	root    string // nothing outside of it is read, also behind links
	things  []Thing
	keys    []Key
}

// addThing adds a thing, and returns it so that it can be completed.
func (s *source) addThing(kind, name, from string) *Thing {
	s.things = append(s.things, Thing{
		Program: s.program,
		Kind:    kind,
		Name:    name,
		From:    from,
		Verdict: Left,
	})
	return &s.things[len(s.things)-1]
}

// leaveThing adds a thing that raddle leaves.
func (s *source) leaveThing(kind, name, from, why string) {
	s.addThing(kind, name, from).Why = why
}

// takeThing adds a thing that raddle takes as it is, or, with a reason, in another form.
func (s *source) takeThing(kind, name, from, to string, p part, why string) {
	t := s.addThing(kind, name, from)
	t.To = to
	t.part = p
	t.Why = why
	t.Verdict = Taken
	if why != "" {
		t.Verdict = Changed
	}
}

// isLogin reports whether a file is one of logins.
func isLogin(path string) bool {
	name := strings.ToLower(filepath.Base(path))
	return slices.Contains(loginFiles, name) || strings.HasSuffix(name, "_oauth_tokens.json")
}

// readText reads a file beneath the root. ok is false if it does not exist, or if it cannot be used: then it is in the
// list with the reason.
func (s *source) readText(path string, most int64) (text []byte, ok bool) {
	if isLogin(path) {
		return nil, false
	}
	text, err := plainfile.ReadBeneath(s.root, path, most)
	if err == nil && !utf8.Valid(text) {
		err = errors.New("it is not text")
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false
	case err != nil:
		s.leaveThing(kindOther, filepath.Base(path), path, explainUnread(err))
		return nil, false
	}
	text = []byte(strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n"))
	return text, true
}

// explainUnread says in a few words why a file is not read.
func explainUnread(err error) string {
	switch {
	case errors.Is(err, plainfile.ErrOutside):
		return "it leads out of the program's directory"
	case errors.Is(err, plainfile.ErrTooLarge):
		return "it is too large"
	case errors.Is(err, plainfile.ErrNotRegular):
		return "it is not a file"
	case errors.Is(err, fs.ErrPermission):
		return "it cannot be read"
	}
	return "it cannot be read: " + err.Error()
}

// listNames returns the names in a directory beneath the root, sorted; nil if there is no such directory.
func (s *source) listNames(dir string) (names []string) {
	if plainfile.CheckBeneath(s.root, dir) != nil {
		s.leaveThing(kindOther, filepath.Base(dir), dir, "it leads out of the program's directory")
		return nil
	}
	entries, _ := os.ReadDir(filepath.Join(s.root, dir)) // sorted; none if it does not exist
	for _, e := range entries[:min(len(entries), mostEntries)] {
		names = append(names, e.Name())
	}
	return names
}

// listFiles returns the paths of the files with an ending in a directory and those below it, at most four deep, sorted.
func (s *source) listFiles(dir, ending string) (paths []string) {
	for _, name := range s.listNames(dir) {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(filepath.Join(s.root, path))
		switch {
		case err != nil || strings.HasPrefix(name, "."):
		case info.IsDir() && strings.Count(path, string(filepath.Separator)) < 8:
			paths = append(paths, s.listFiles(path, ending)...)
		case strings.HasSuffix(strings.ToLower(name), ending):
			paths = append(paths, path)
		}
	}
	return paths
}

// isDir reports whether a path beneath the root is a directory.
func (s *source) isDir(path string) bool {
	info, err := os.Stat(filepath.Join(s.root, path))
	return err == nil && info.IsDir() && plainfile.CheckBeneath(s.root, path) == nil
}

// hasFile reports whether there is something at a path beneath the root, without opening it.
func (s *source) hasFile(path string) bool {
	_, err := os.Lstat(filepath.Join(s.root, path))
	return err == nil
}

// A copied is a file that is written.
type copied struct {
	path string // relative to its place in raddle's directories
	text []byte
	mode fs.FileMode
}

// copyDir reads the files of a directory. left says which of them are not copied, and why.
func (s *source) copyDir(dir string) (files []copied, left []string) {
	total := 0
	var walk func(rel string)
	walk = func(rel string) {
		for _, name := range s.listNames(filepath.Join(dir, rel)) {
			path := filepath.Join(rel, name)
			info, err := os.Stat(filepath.Join(s.root, dir, path))
			switch {
			case slices.Contains(leftFiles, name):
				continue
			case isLogin(name) || name == ".env":
				left = append(left, path+" (it may hold secrets)")
				continue
			case err != nil || plainfile.CheckBeneath(filepath.Join(s.root, dir), path) != nil:
				left = append(left, path+" (it leads out of its directory)")
				continue
			case len(files) >= mostFiles || total > mostBytes:
				left = append(left, path+" (there are too many files)")
				continue
			case info.IsDir():
				if linked, err := os.Lstat(filepath.Join(s.root, dir, path)); err == nil && linked.IsDir() {
					walk(path)
				}
				continue
			}
			text, err := plainfile.ReadBeneath(filepath.Join(s.root, dir), path, 4*largestText)
			if err != nil {
				left = append(left, path+" ("+explainUnread(err)+")")
				continue
			}
			total += len(text)
			files = append(files, copied{path: path, text: text, mode: 0o600 | info.Mode().Perm()&0o100})
		}
	}
	walk("")
	return files, left
}

// describeLeft says which files of a directory are not copied; "" if all are.
func describeLeft(left []string) string {
	const shown = 3
	switch {
	case len(left) == 0:
		return ""
	case len(left) > shown:
		return fmt.Sprintf("without %s and %s", strings.Join(left[:shown], ", "), wording.FormatCount(len(left)-shown, "other file"))
	}
	return "without " + strings.Join(left, ", ")
}
