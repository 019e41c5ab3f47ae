package cli

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

	"raddle.dev/internal/attach"
	"raddle.dev/internal/failure"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
	"raddle.dev/tool/builtin"
)

// This file reads what -f names: files, directories, patterns and addresses.

// largestPrompt is the size in bytes of the largest text that is put into a prompt.
const largestPrompt = 16 << 20

// These limits are those of one directory or pattern. A file that a person names alone has only the limit of a prompt.
const (
	mostFound      = 200     // files that are taken
	mostFoundBytes = 1 << 20 // bytes of a text
	mostFoundAll   = 4 << 20 // bytes of all texts together
	mostWalked     = 50_000  // entries that are looked at
)

// readNamed returns what -f names, in that order. It says on standard error what it has taken of directories, patterns and addresses.
func readNamed(ctx context.Context, env *environment, names []string) ([]attach.File, error) {
	var files []attach.File
	for _, name := range names {
		more, err := readOneNamed(ctx, env, name)
		if err != nil {
			next := ""
			if e, ok := errors.AsType[*failure.Error](err); ok {
				next = e.Next
			}
			return nil, badUsage(next, "-f: %v", err)
		}
		files = append(files, more...)
	}
	return files, nil
}

func readOneNamed(ctx context.Context, env *environment, name string) ([]attach.File, error) {
	if attach.IsAddress(name) {
		content, err := builtin.Download(ctx, name)
		if err != nil {
			return nil, err
		}
		f, err := attach.New(name, content)
		if err == nil {
			tellAttached(env, f)
		}
		return []attach.File{f}, err
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return readFound(ctx, env, foundFiles{root: name, shown: name, textOnly: true})
	case err != nil && strings.ContainsAny(name, "*?[{"):
		if !doublestar.ValidatePattern(filepath.ToSlash(name)) {
			return nil, failure.NewUsage("", "%s is no pattern: a bracket is not closed", name)
		}
		root, pattern := doublestar.SplitPattern(filepath.ToSlash(filepath.Clean(name)))
		return readFound(ctx, env, foundFiles{root: filepath.FromSlash(root), pattern: pattern, shown: name})
	}
	f, err := attach.Read(name, name, largestPrompt, true)
	if err == nil && f.Media != nil {
		tellAttached(env, f)
	}
	return []attach.File{f}, err
}

// tellAttached says what a file is that was added to the prompt.
func tellAttached(env *environment, f attach.File) {
	if !env.quiet {
		env.err.PrintLine(env.err.Paint(term.Dim, "📎 "+term.CleanLine(f.String())))
	}
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

// readFound returns the files of a directory or a pattern, sorted by their names. Those that are hidden, too large or neither text nor picture are left
// out, and so is everything behind a link that leads out of the directory.
func readFound(ctx context.Context, env *environment, found foundFiles) ([]attach.File, error) {
	walked := 0
	err := filepath.WalkDir(found.root, func(path string, d fs.DirEntry, err error) error {
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
		return nil, err
	}
	found.tell(env)
	if len(found.files) == 0 {
		return nil, failure.NewUsage("", "%s has no file that can be attached", found.shown)
	}
	return found.files, ctx.Err()
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

// tell lists what was taken and what was left out.
func (found *foundFiles) tell(env *environment) {
	if env.quiet {
		return
	}
	const mostShown = 20
	env.printNote("raddle: %s of %s, %s", wording.FormatCount(len(found.files), "file"), term.CleanLine(found.shown), wording.FormatBytes(found.size()))
	lines := make([]string, 0, len(found.files)+len(found.left))
	for _, f := range found.files {
		lines = append(lines, "  "+f.Name)
	}
	lines = shorten(lines, mostShown)
	left := slices.Clone(found.left)
	for i := range left {
		left[i] = "  left out: " + left[i]
	}
	for _, line := range append(lines, shorten(left, mostShown)...) {
		env.err.PrintLine(env.err.Paint(term.Dim, term.CleanLine(line)))
	}
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
