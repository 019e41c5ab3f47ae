package builtin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/tool"
)

// An oldImage is the state of a file before a call changes it.
type oldImage struct {
	image     *tool.FileImage // nil: there is no such file
	withheld  tool.WithheldReason
	directory bool
}

// readImage returns the state of a path before a call changes it. stat is os.Stat, or os.Lstat if the call changes a
// link and not what the link leads to. A file that rules do not let tools read is not read.
func (h Host) readImage(path string, stat func(string) (fs.FileInfo, error)) oldImage {
	info, err := stat(path)
	switch {
	case err != nil:
		return oldImage{}
	case info.IsDir():
		return oldImage{directory: true}
	}
	old := oldImage{image: &tool.FileImage{Mode: info.Mode().Perm(), Size: info.Size()}}
	if !info.Mode().IsRegular() {
		old.withheld = tool.WithheldSpecial
		return old
	}
	old.withheld = tool.WithheldSecret
	if h.hidesContent(realPath(path)) {
		return old
	}
	if f, err := plainfile.Open(path); err == nil {
		defer f.Close()
		old.withheld = readContent(f, old.image)
	}
	return old
}

// hidesContent reports whether rules do not let the tools that read files read a file.
func (h Host) hidesContent(path string) bool {
	if h.Hidden == nil {
		return false
	}
	for _, name := range []string{"fs_cat", "fs_read"} {
		hidden := h.Hidden(name)
		for dir := path; hidden != nil; dir = filepath.Dir(dir) {
			if hidden(dir) {
				return true
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return false
}

// readContent reads the content of a file into its image, and says why it leaves out the text. A file that cannot be
// read counts as secret: the image of a change must then have no part of it.
func readContent(r io.Reader, image *tool.FileImage) tool.WithheldReason {
	var text bytes.Buffer
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(hash, &limitedBuffer{&text, tool.MaxImage + 1}), r)
	if err != nil {
		return tool.WithheldSecret
	}
	image.Size, image.Hash = size, hex.EncodeToString(hash.Sum(nil))
	switch {
	case size > tool.MaxImage:
		return tool.WithheldLarge
	case !utf8.Valid(text.Bytes()) || bytes.IndexByte(text.Bytes(), 0) >= 0:
		return tool.WithheldBinary
	}
	image.Text = text.String()
	return ""
}

// A limitedBuffer keeps the first bytes that are written to it.
type limitedBuffer struct {
	*bytes.Buffer
	limit int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), b.limit-b.Len())])
	return len(p), nil
}

// addChange returns the result of a call with the change that it made: the file has the text after now, or is removed
// if after is nil.
func (old oldImage) addChange(r tool.Result, path string, after *string) tool.Result {
	if old.directory {
		return r
	}
	c := tool.FileChange{Path: realPath(path), Kind: tool.FileRemoved, Before: old.image, Withheld: old.withheld}
	if after != nil {
		c.Kind = tool.FileChanged
		c.After = &tool.FileImage{}
		if old.image == nil {
			c.Kind = tool.FileCreated
		}
		why := readContent(strings.NewReader(*after), c.After)
		if info, err := os.Stat(path); err == nil {
			c.After.Mode = info.Mode().Perm()
		}
		if c.Withheld == "" {
			c.Withheld = why
		}
	}
	switch {
	case c.Before == nil && c.After == nil:
		return r // another process removed it at the same time
	case c.Before != nil && c.After != nil && c.Before.Hash == c.After.Hash && c.Before.Mode == c.After.Mode:
		return r
	case c.Withheld != "":
		c = c.Withhold(c.Withheld)
	default:
		c.Added, c.Removed = countLines(textOf(c.Before), textOf(c.After))
	}
	r.Changes = append(r.Changes, c)
	return r
}

func textOf(image *tool.FileImage) string {
	if image == nil {
		return ""
	}
	return image.Text
}

// countLines returns how many lines a change adds and removes.
func countLines(before, after string) (added, removed int) {
	count := func(text string) int {
		n := strings.Count(text, "\n")
		if text != "" && !strings.HasSuffix(text, "\n") {
			n++
		}
		return n
	}
	for _, e := range udiff.Lines(before, after) {
		added = added + count(e.New)
		removed = removed + count(before[e.Start:e.End])
	}
	return added, removed
}

// realPath returns a path without links, as far as it exists.
func realPath(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}
