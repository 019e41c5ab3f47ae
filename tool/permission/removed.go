package permission

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// The limits of what is said about files that a command removes.
const (
	maxRemoved = 3      // names
	maxCounted = 10_000 // files below one name
)

// describeRemoved returns the files that a command removes, as a person reads them: "build/ (12 files), a.txt".
// It is empty if the command removes none, or if they are known only when it runs.
// The text is only for the person who is asked: no decision depends on it. It is left out where the
// directory is uncertain, because a wrong list of files would be worse than none.
func (s *shellAnalyzer) describeRemoved(words []word) string {
	if name := filepath.Base(words[0].text); name != "rm" && name != "unlink" && name != "shred" || len(s.dirs) != 1 || s.lost {
		return ""
	}
	var paths []string
	ended := false
	for _, w := range words[1:] {
		switch {
		case !ended && w.text == "--":
			ended = true
		case !ended && strings.HasPrefix(w.text, "-"):
		case w.glob != "":
			found, ok := s.area.expandPattern(s.dirs[0], w.glob)
			if !ok {
				return ""
			}
			paths = append(paths, found...)
		case !w.isPlain():
			return ""
		default:
			paths = append(paths, joinDir(s.dirs[0], w.text))
		}
	}
	var list []string
	for _, path := range paths[:min(len(paths), maxRemoved)] {
		list = append(list, s.area.describeTree(path))
	}
	if more := len(paths) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(slices.DeleteFunc(list, func(text string) bool { return text == "" }), ", ")
}

// describeTree returns a path relative to the workspace, with the number of files below it. It is empty if there is
// nothing. Counting stops at a limit, so that a question about a large directory does not take long.
func (a area) describeTree(path string) string {
	name := path
	if rel, err := filepath.Rel(a.workspace, path); err == nil && isWithin(a.workspace, filepath.Clean(path), false) {
		name = rel
	}
	if !isDir(path) {
		if !isFile(path) {
			return ""
		}
		return name
	}
	files := 0
	more := ""
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if files++; files >= maxCounted {
				more = "at least "
				return fs.SkipAll
			}
		}
		return nil // what cannot be read is not counted
	})
	count := fmt.Sprintf("%s%d files", more, files)
	if files == 1 {
		count = "1 file"
	}
	return strings.TrimSuffix(name, "/") + "/ (" + count + ")"
}
