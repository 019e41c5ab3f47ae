package conversation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/tool"
)

// RewindMode says what goes back.
type RewindMode string

// The modes.
const (
	RewindConversation RewindMode = "conversation"
	RewindFiles        RewindMode = "files"
	RewindBoth         RewindMode = "both"
)

// RewindReport says what a rewind did to files. Paths are absolute.
type RewindReport struct {
	Restored []string // files with their earlier content, also those that were removed
	Removed  []string // files that the turns had created
	Skipped  []SkippedFile
}

// SkippedFile is a file that was left as it is, or that could not be restored completely.
type SkippedFile struct {
	Path   string
	Reason string
}

// Rewind goes back to before a turn, counted from 1: in the conversation, as [Conversation.BranchAt] does, in the
// files that built-in tools changed since, or both. A file that was changed outside of the conversation since is
// left as it is, and so is one outside of the workspace, or one whose earlier content is not in the journal; the report
// says so. What other programs did, such as commands, cannot be taken back.
func (c *Conversation) Rewind(ctx context.Context, turn int, mode RewindMode) (RewindReport, error) {
	r, err := c.readFrom(ctx, turn)
	if err != nil {
		return RewindReport{}, err
	}
	var report RewindReport
	if mode != RewindConversation {
		if report, err = c.rewindFiles(ctx, r, turn-1, true); err != nil {
			return report, err
		}
	}
	if mode == RewindFiles {
		return report, nil
	}
	return report, c.branchAt(ctx, r, turn-1)
}

// PreviewRewind returns what Rewind would do to files, and changes nothing.
func (c *Conversation) PreviewRewind(ctx context.Context, turn int) (RewindReport, error) {
	r, err := c.readFrom(ctx, turn)
	if err != nil {
		return RewindReport{}, err
	}
	return c.rewindFiles(ctx, r, turn-1, false)
}

// rewindFiles takes back what the turns from index on did to files, if write is true.
func (c *Conversation) rewindFiles(ctx context.Context, r *reading, index int, write bool) (report RewindReport, err error) {
	if run, status := openTurnOf(r.state); run != "" && status == graph.Running {
		return report, failure.NewStale("stop it first", "the last turn of the conversation still works (run %s)", run)
	}
	var all []tool.FileChange
	for _, turn := range r.places[index:] {
		changes, err := r.talks.ReadChanges(ctx, turn)
		if err != nil {
			return report, err
		}
		all = append(all, changes...)
	}
	dir, err := filepath.EvalSymlinks(c.process.Dirs.Work)
	if err != nil {
		return report, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return report, err
	}
	defer root.Close()
	var paths []string
	byPath := map[string][]tool.FileChange{}
	for _, f := range all {
		if byPath[f.Path] == nil {
			paths = append(paths, f.Path)
		}
		byPath[f.Path] = append(byPath[f.Path], f)
	}
	for _, path := range paths {
		r := &fileRewind{root: root, path: path, changes: byPath[path]}
		r.findTarget(dir)
		if write && r.back > 0 {
			if err := r.restore(); err != nil {
				r.back, r.reason = 0, "it could not be written: "+err.Error()
			}
		}
		r.addTo(&report)
	}
	return report, nil
}

// A fileRewind takes back the changes of one file.
type fileRewind struct {
	root    *os.Root // the workspace
	path    string
	name    string // in the workspace
	now     string // its hash; empty: there is no file
	changes []tool.FileChange

	back   int    // how many changes are taken back, from the newest
	reason string // why not all of them are; empty: all
}

// findTarget finds out how many changes can be taken back.
func (r *fileRewind) findTarget(dir string) {
	name, err := filepath.Rel(dir, r.path)
	if err != nil || !filepath.IsLocal(name) {
		r.reason = "it is outside of the workspace"
		return
	}
	if info, err := r.root.Stat(filepath.Dir(name)); err == nil && !info.IsDir() {
		r.reason = "its directory is not a directory any more"
		return
	}
	r.name = name
	if r.now, err = hashFile(r.root, name); err != nil {
		r.reason = err.Error()
		return
	}
	hash := r.now
	last := len(r.changes) - 1
	if isImage(r.changes[0].Before, hash) && !isImage(r.changes[last].After, hash) {
		r.back = len(r.changes) // as after a rewind that was killed
		return
	}
	for i, f := range slices.Backward(r.changes) {
		switch {
		case f.Withheld == tool.WithheldSecret:
			r.reason = "it has a secret, so its content is not in the journal"
		case f.Withheld == tool.WithheldSpecial:
			r.reason = "it was not a regular file"
		case !isImage(f.After, hash) && i == last:
			r.reason = "it was changed outside of the conversation since"
		case !isImage(f.After, hash):
			r.reason = "it was changed outside of the conversation between two turns, and is as that change left it"
		case f.Before != nil && f.Withheld == tool.WithheldLarge:
			r.reason = "it was too large for the journal"
		case f.Before != nil && f.Withheld == tool.WithheldBinary:
			r.reason = "its content was not text, and is not in the journal"
		default:
			r.back++
			hash = hashOfImage(f.Before)
			continue
		}
		return
	}
}

// isImage reports whether a file with a hash, "" if there is none, is what an image says.
func isImage(image *tool.FileImage, hash string) bool {
	if image == nil {
		return hash == ""
	}
	return image.Hash != "" && image.Hash == hash
}

func hashOfImage(image *tool.FileImage) string {
	if image == nil {
		return ""
	}
	return image.Hash
}

// hashFile returns the hash of a regular file, or "" if there is none.
func hashFile(root *os.Root, name string) (hash string, err error) {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", errors.New("it cannot be read: " + err.Error())
	case !info.Mode().IsRegular():
		return "", errors.New("it is not a regular file any more")
	}
	f, err := root.Open(name)
	if err != nil {
		return "", errors.New("it cannot be read: " + err.Error())
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", errors.New("it cannot be read: " + err.Error())
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// restore writes what was there before the changes.
func (r *fileRewind) restore() error {
	image := r.target()
	if isImage(image, r.now) {
		return nil
	}
	if image == nil {
		return r.root.Remove(r.name)
	}
	if err := r.root.MkdirAll(filepath.Dir(r.name), 0o755); err != nil {
		return err
	}
	next := r.name + "." + graph.NewID(time.Now())
	f, err := r.root.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, image.Mode.Perm())
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, image.Text)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = r.root.Chmod(next, image.Mode.Perm())
	}
	if err == nil {
		err = r.root.Rename(next, r.name)
	}
	if err != nil {
		_ = r.root.Remove(next)
	}
	return err
}

// target returns the file as it was before the changes that are taken back.
func (r *fileRewind) target() *tool.FileImage { return r.changes[len(r.changes)-r.back].Before }

func (r *fileRewind) addTo(report *RewindReport) {
	switch {
	case r.back > 0 && isImage(r.target(), r.now) && isImage(r.changes[len(r.changes)-1].After, r.now): // it was created and removed
	case r.back > 0 && r.target() == nil:
		report.Removed = append(report.Removed, r.path)
	case r.back > 0:
		report.Restored = append(report.Restored, r.path)
	}
	if r.reason != "" {
		report.Skipped = append(report.Skipped, SkippedFile{r.path, strings.TrimSpace(r.reason)})
	}
}
