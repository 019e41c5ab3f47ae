package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/tool"
)

const (
	maxFound    = 100      // files that fs_glob returns
	mostHits    = 50       // lines that fs_grep returns
	largestGrep = 10 << 20 // bytes; larger files are not searched
)

var (
	skippedDirs    = []string{".git", "node_modules", "target", "dist", "__pycache__", "vendor", ".build"}
	skippedByGrep  = []string{"build", ".next"}
	generatedFiles = []string{"*.min.js", "*.min.css", "*.map", "*.lock", "package-lock.json", "pnpm-lock.yaml", "go.sum"}
)

var findTools = []definition{
	{
		name:     "fs_glob",
		effect:   tool.ReadOnly,
		parallel: true,
		about: "Find files by name, the newest first, at most 100. *, ?, [a-z], {a,b} and ** are understood. A pattern without / is for the name " +
			"of a file in any directory.",
		params: []param{
			{name: "pattern", required: true, about: "Pattern of names or of paths, such as *.go or src/**/*_test.go"},
			{name: "path", about: "Directory to look in, the workspace if not given"},
		},
		touches: readsTree,
		run:     globFiles,
	},
	{
		name:     "fs_grep",
		effect:   tool.ReadOnly,
		parallel: true,
		about:    "Search the contents of files for a regular expression, at most 50 lines.",
		params: []param{
			{name: "pattern", required: true, about: "Regular expression"},
			{name: "path", about: "File or directory to search, the workspace if not given"},
			{name: "include", about: "Pattern of the names of files to search, such as *.{ts,tsx}"},
		},
		touches: readsTree,
		run:     grepFiles,
	},
}

// readsTree returns what a call of a tool touches that searches a directory.
func readsTree(h Host, a arguments) (tool.Touch, error) {
	path := "."
	if a["path"] != "" {
		var err error
		if path, err = h.pathArgument(a); err != nil {
			return tool.Touch{}, err
		}
	}
	if h.Hidden == nil {
		return tool.Touch{Reads: []string{path}}, nil
	}
	return tool.Touch{Lists: []string{path}}, nil
}

// A search is a walk through a directory that leaves out what is hidden.
type search struct {
	skipped []string               // names of directories that are not entered
	hidden  func(path string) bool // nil: nothing is
	hides   int                    // how many files and directories were hidden
}

func (h Host) newSearch(tool string, skipped ...string) *search {
	s := &search{skipped: skipped}
	if h.Hidden != nil {
		s.hidden = h.Hidden(tool)
	}
	return s
}

// describeSkipped returns a note about what was left out, or "".
func (s *search) describeSkipped() string {
	switch s.hides {
	case 0:
		return ""
	case 1:
		return "\n(1 file or directory was left out: permission rules do not let this tool read it)"
	}
	return fmt.Sprintf("\n(%d files or directories were left out: permission rules do not let this tool read them)", s.hides)
}

// A foundFile is a file that matches, with the time by which it is sorted.
type foundFile struct {
	path string
	when time.Time
}

func globFiles(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	pattern := filepath.ToSlash(a["pattern"])
	if !doublestar.ValidatePattern(pattern) {
		return tool.FailedResult("%q is not a pattern: a bracket or a brace is not closed", pattern), nil
	}
	root := h.resolvePath(a["path"])
	var all []foundFile
	look := h.newSearch("fs_glob", skippedDirs...)
	err := look.walkFiles(ctx, root, func(path string, d fs.DirEntry) error {
		if !matchesPattern(root, path, pattern) {
			return nil
		}
		if info, err := d.Info(); err == nil {
			all = append(all, foundFile{path: path, when: info.ModTime()})
		}
		return nil
	})
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	if err != nil {
		return fileError(a["path"], err)
	}
	slices.SortFunc(all, func(x, y foundFile) int {
		if c := y.when.Compare(x.when); c != 0 {
			return c
		}
		return strings.Compare(x.path, y.path)
	})
	var b strings.Builder
	for i, f := range all {
		if i == maxFound {
			fmt.Fprintf(&b, "(the newest %d of %d files; use a narrower pattern for the rest)\n", maxFound, len(all))
			break
		}
		b.WriteString(h.displayPath(f.path) + "\n")
	}
	if len(all) == 0 {
		b.WriteString("No files found")
	}
	return tool.TextResult(h.clipOutput(b.String()) + look.describeSkipped()), nil
}

// matchesPattern reports whether a path matches a pattern: its name if the pattern has no /, and
// otherwise the path relative to the root.
func matchesPattern(root, path, pattern string) bool {
	name := filepath.Base(path)
	if strings.Contains(pattern, "/") {
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return false
		}
		name = filepath.ToSlash(rel)
		pattern = strings.TrimPrefix(pattern, "./")
		if filepath.IsAbs(filepath.FromSlash(pattern)) {
			name = filepath.ToSlash(path)
		}
	}
	return doublestar.MatchUnvalidated(pattern, name)
}

// walkFiles visits the files below a directory, or the one file. Links are not
// followed, and what cannot be read is skipped.
func (s *search) walkFiles(ctx context.Context, root string, each func(path string, d fs.DirEntry) error) error {
	info, err := os.Stat(root)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if s.hidden != nil && s.hidden(real) {
			s.hides++
			return nil
		}
		return each(root, fs.FileInfoToDirEntry(info))
	}
	// The walk begins at the target of a link, because it would not enter the link.
	return filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() && path != real && slices.Contains(s.skipped, d.Name()):
			return fs.SkipDir
		case s.hidden != nil && s.hidden(path):
			s.hides++
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		return each(root+strings.TrimPrefix(path, real), d)
	})
}

// displayPath returns a path as the model should write it: relative if it is in the
// workspace.
func (h Host) displayPath(path string) string {
	if rel, err := filepath.Rel(h.Workspace, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

func grepFiles(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	re, err := regexp.Compile(a["pattern"])
	if err != nil {
		return tool.FailedResult("the pattern is not a regular expression: %v", err), nil
	}
	include := a["include"]
	if include != "" && !doublestar.ValidatePattern(include) {
		return tool.FailedResult("%q is not a pattern of names: a bracket or a brace is not closed", include), nil
	}
	root := h.resolvePath(a["path"])
	hits := hits{host: h}
	look := h.newSearch("fs_grep", slices.Concat(skippedDirs, skippedByGrep)...)
	err = look.walkFiles(ctx, root, func(path string, d fs.DirEntry) error {
		switch {
		case !d.Type().IsRegular(), include != "" && !matchesPattern(root, path, include):
			return nil
		case path != root && slices.ContainsFunc(generatedFiles, func(p string) bool { return doublestar.MatchUnvalidated(p, d.Name()) }):
			return nil
		}
		return hits.searchFile(path, re)
	})
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	if err != nil && err != fs.SkipAll {
		return fileError(a["path"], err)
	}
	return tool.TextResult(h.clipOutput(hits.formatHits()) + look.describeSkipped()), nil
}

// hits are the lines found so far.
type hits struct {
	host  Host
	b     strings.Builder
	count int
	large []string // files that were not searched
}

// searchFile searches one file. It returns fs.SkipAll when there are enough hits.
func (s *hits) searchFile(path string, re *regexp.Regexp) error {
	text, err := plainfile.Read(path, largestGrep)
	if errors.Is(err, plainfile.ErrTooLarge) {
		s.large = append(s.large, s.host.displayPath(path))
		return nil
	}
	if err != nil || bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
		return nil // it cannot be read, or is not a text
	}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimRight(line, "\r\n")
		if !re.Match(line) {
			continue
		}
		if s.count == mostHits {
			s.count++
			return fs.SkipAll
		}
		s.count++
		shown, cut := firstRunes(string(line), lineRunes)
		if cut {
			shown += "... (truncated)"
		}
		fmt.Fprintf(&s.b, "%s:%d:%s\n", s.host.displayPath(path), number, shown)
	}
	return nil
}

func (s *hits) formatHits() string {
	if s.count > mostHits {
		fmt.Fprintf(&s.b, "(the first %d lines; there are more: narrow the search)\n", mostHits)
	}
	if s.count == 0 {
		s.b.WriteString("No matches found")
	}
	if len(s.large) > 0 {
		fmt.Fprintf(&s.b, "\n(not searched, for their size: %s)", strings.Join(s.large[:min(len(s.large), 5)], ", "))
	}
	return s.b.String()
}
