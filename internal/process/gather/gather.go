// Package gather reads what a person names to be attached to a prompt: files, directories, patterns and addresses.
package gather

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/tool/builtin"
)

// largestPrompt is the size in bytes of the largest text that is put into a prompt.
const largestPrompt = 16 << 20

// These limits are those of one directory or pattern. A file that a person names alone has only the limit of a prompt.
const (
	mostFound      = 200     // files that are taken
	mostFoundBytes = 1 << 20 // bytes of a text
	mostFoundAll   = 4 << 20 // bytes of all texts together
	mostWalked     = 50_000  // entries that are looked at
)

// Read returns what a list of names means, in its order, and lines that say what was taken of each and what was left
// out.
func Read(ctx context.Context, names []string) (files []attach.File, report []string, err error) {
	for _, name := range names {
		more, lines, err := readName(ctx, name)
		if e, ok := errors.AsType[*failure.Error](err); ok {
			return nil, nil, failure.NewUsage(e.Next, "-f: %v", err)
		} else if err != nil {
			return nil, nil, failure.NewUsage("", "-f: %v", err)
		}
		files = append(files, more...)
		report = append(report, lines...)
	}
	return files, report, nil
}

func readName(ctx context.Context, name string) (files []attach.File, report []string, err error) {
	if attach.IsAddress(name) {
		content, err := builtin.Download(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		f, err := attach.New(name, content)
		return []attach.File{f}, []string{attach.Mark + f.String()}, err
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return readFound(ctx, foundFiles{root: name, shown: name, textOnly: true})
	case err != nil && strings.ContainsAny(name, "*?[{"):
		if !doublestar.ValidatePattern(filepath.ToSlash(name)) {
			return nil, nil, failure.NewUsage("", "%s is not a pattern: a bracket is not closed", name)
		}
		root, pattern := doublestar.SplitPattern(filepath.ToSlash(filepath.Clean(name)))
		return readFound(ctx, foundFiles{root: filepath.FromSlash(root), pattern: pattern, shown: name})
	}
	f, err := attach.Read(name, name, largestPrompt, true)
	if err == nil && f.Media != nil {
		report = []string{attach.Mark + f.String()}
	}
	return []attach.File{f}, report, err
}

// foundFiles are the files of a directory, or those that match a pattern.
type foundFiles struct {
	root     string
	pattern  string // relative to root; "": all
	shown    string // as the person wrote it
	textOnly bool   // pictures and documents are left out

	files []attach.File
	left  []string // what was left out, and why
	bytes int
}

// readFound returns the files of a directory or a pattern, sorted by their names. Those that are hidden, too large or
// neither text nor picture are left out, and so is everything behind a link that leads out of the directory.
func readFound(ctx context.Context, found foundFiles) (files []attach.File, report []string, err error) {
	walked := 0
	err = filepath.WalkDir(found.root, func(path string, d fs.DirEntry, err error) error {
		if walked++; ctx.Err() != nil || walked > mostWalked {
			found.leave(found.shown, fmt.Sprintf("it has more than %d entries", mostWalked))
			return fs.SkipAll
		}
		rel, relErr := filepath.Rel(found.root, path)
		switch {
		case path == found.root:
			return err
		case err != nil:
			found.leave(path, err.Error())
			return nil
		case relErr != nil:
			return relErr
		case strings.HasPrefix(d.Name(), ".") || d.IsDir() && d.Name() == "node_modules":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || found.pattern != "" && !doublestar.MatchUnvalidated(found.pattern, filepath.ToSlash(rel)):
			return nil
		}
		found.add(path, rel)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if len(found.files) == 0 {
		return nil, nil, failure.NewUsage("", "%s has no file that can be attached", found.shown)
	}
	return found.files, found.list(), ctx.Err()
}

// add reads a file, and takes it or leaves it out.
func (found *foundFiles) add(path, rel string) {
	if len(found.files) == mostFound {
		found.leave(path, fmt.Sprintf("there are more than %d files", mostFound))
		return
	}
	f, err := attach.ReadBeneath(found.root, rel, path, mostFoundBytes)
	switch {
	case err != nil:
		found.leave(path, strings.TrimPrefix(err.Error(), path+" "))
	case f.Media != nil && found.textOnly:
		found.leave(path, "of a directory, only text is taken")
	case found.bytes+len(f.Text) > mostFoundAll:
		found.leave(path, "the texts have more than "+wording.FormatBytes(mostFoundAll)+" together")
	default:
		found.bytes += len(f.Text)
		found.files = append(found.files, f)
	}
}

func (found *foundFiles) leave(path, why string) { found.left = append(found.left, path+": "+why) }

// list says what was taken and what was left out.
func (found *foundFiles) list() []string {
	const mostShown = 20
	taken := make([]string, 0, len(found.files))
	for _, f := range found.files {
		taken = append(taken, "  "+f.Name)
	}
	left := slices.Clone(found.left)
	for i := range left {
		left[i] = "  left out: " + left[i]
	}
	head := fmt.Sprintf("%s of %s, %s", wording.FormatCount(len(found.files), "file"), found.shown, wording.FormatBytes(found.size()))
	return slices.Concat([]string{head}, shorten(taken, mostShown), shorten(left, mostShown))
}

// shorten returns the first lines of a list, and how many more there are.
func shorten(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	return append(slices.Clone(lines[:most]), fmt.Sprintf("  and %d more", len(lines)-most))
}

// size returns the bytes of the files that were taken.
func (found *foundFiles) size() int {
	all := found.bytes
	for _, f := range found.files {
		all += attach.Describe(f.Media).Bytes
	}
	return all
}
