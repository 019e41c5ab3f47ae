package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"raddle.dev/internal/base/edit"
	"raddle.dev/tool"
)

var editTools = []definition{
	{
		name: "fs_edit",
		about: "Change a part of a file: a text that is in it is replaced by another one. The old text must be in the file only once, as it is there; give lines around it if it is not. " +
			"The result shows the lines as they are then.",
		params: []param{
			pathParam,
			{
				name:     "old",
				alias:    "old_string",
				required: true,
				about:    "The text that is replaced, without line numbers",
			},
			{name: "new", alias: "new_string", required: true, about: "The text in its place; empty to remove it"},
			{name: "all", alias: "replace_all", flag: true, about: "Replace the text everywhere in the file"},
		},
		touches: patchTouches,
		plan:    Host.planEdit,
		run:     editFile,
	},
	{
		name: "fs_patch",
		about: "Change parts of a file by a unified diff. Each hunk begins with @@; its lines begin with a space (unchanged), - (removed) " +
			"or + (added). Unchanged and removed lines must fit in only one place: give enough of them, line numbers (@@ -3,2 +3,2 @@), or a line above as a heading (@@ def f():). Either all hunks are applied or none. " +
			"The result shows the lines as they are then.",
		params:  []param{pathParam, {name: "contents", alias: "content", required: true, about: "The diff"}},
		touches: patchTouches,
		plan:    Host.planPatch,
		run:     patchFile,
	},
	{
		name: "apply_patch",
		about: "Change, add, delete and move files by one patch: *** Begin Patch, then for each file *** Update File: PATH, *** Add File: PATH or *** Delete File: PATH, then *** End Patch. *** Move to: PATH may follow " +
			"the first. The changes of a file begin with @@ and a line above them as a heading; their lines begin with a space (unchanged), - (removed) or + (added). A unified diff of several files works too. " +
			"Either all files are changed or none.",
		params:  []param{{name: "patch", alias: "input", required: true, about: "The patch"}},
		touches: applyTouches,
		plan:    Host.planPatches,
		run:     applyPatch,
	},
}

// A fileEdit is one file as a call changes it.
type fileEdit struct {
	name, path string // as the model writes it, and where it is
	moveTo     string // as the model writes it; "": it stays
	before     string
	exists     bool
	after      *string // nil: the file is removed
	about      string  // what is done, with the lines as they are then
	done       bool    // an interrupted try of the call has made the change already
	blind      bool    // the file may have any content before
}

// planEdits returns what a patch does with its files, without doing it. path is that of the only file that it may
// change; "": the patch names its files.
func (h Host) planEdits(patch, path string) ([]*fileEdit, error) {
	files, err := edit.Parse(patch)
	if err != nil {
		return nil, err
	}
	if path != "" {
		if files, err = joinFiles(files, path); err != nil {
			return nil, err
		}
	}
	var edits []*fileEdit
	var unseen *unseenError
	seen := map[string]bool{}
	for _, f := range files {
		e, err := h.planFile(f)
		if more, ok := errors.AsType[*unseenError](err); ok {
			unseen = unseen.joinError(more)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		if seen[e.path] {
			return nil, fmt.Errorf("%s: the patch has this file twice: put its changes together", f.Path)
		}
		seen[e.path] = true
		edits = append(edits, e)
	}
	if unseen != nil {
		return nil, unseen
	}
	return edits, nil
}

// joinFiles returns the changes of a patch as those of one file. A name in the patch says nothing unless it has
// several.
func joinFiles(files []edit.File, path string) ([]edit.File, error) {
	one := files[0]
	for _, f := range files[1:] {
		if f.Path != "" && one.Path != "" && f.Path != one.Path {
			return nil, fmt.Errorf("the patch changes several files, such as %s and %s, and this tool only one: use apply_patch", one.Path, f.Path)
		}
		if f.Do != edit.Update || one.Do != edit.Update {
			return nil, errors.New("the patch adds or removes the file and changes it")
		}
		one.Path = f.Path
		one.Hunks = append(one.Hunks, f.Hunks...)
	}
	if one.MoveTo != "" {
		return nil, errors.New("the patch moves the file: use apply_patch")
	}
	one.Path = path
	return []edit.File{one}, nil
}

func (h Host) planFile(f edit.File) (*fileEdit, error) {
	if f.Path == "" {
		return nil, errors.New("the patch names no file")
	}
	path, err := h.pathArgument(arguments{"path": f.Path})
	if err != nil {
		return nil, err
	}
	e := &fileEdit{name: f.Path, path: h.resolvePath(path), moveTo: f.MoveTo}
	text, err := readFile(e.path)
	switch {
	case err == nil:
		e.before = string(text)
		e.exists = true
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case f.Do != edit.Add && h.repeat && h.seen != nil && h.seen(realPath(e.path)) != nil:
		return h.planRest(f, e)
	case f.Do != edit.Add:
		return nil, errors.New("there is no such file")
	}
	if f.Do == edit.Add {
		if e.after, e.about = &f.Text, "Made "+f.Path; e.exists && h.repeat && e.before == f.Text {
			e.done = true
		} else if e.exists {
			return nil, errors.New("the patch makes this file, and it exists: change it with *** Update File or a diff of its lines")
		}
		return e, nil
	}
	if f.Do == edit.Update && f.MoveTo == "" && h.wasDone(e.path, e.before, func(was func(string) bool) bool { return edit.UndoHunks(e.before, f.Hunks, was) }) {
		e.done = true
		e.after = &e.before
		e.about = f.Path + " was changed by the first try of this call."
		return e, nil
	}
	how := byParts
	if f.Do == edit.Delete && len(f.Hunks) == 0 {
		how = asAWhole
	}
	if err := h.checkSeen(f.Path, e.path, e.before, how); err != nil {
		return nil, err
	}
	return e, h.planChange(e, f)
}

// planRest completes the plan for a file that was there when the conversation saw it, and is not after the first try of
// the call: that has removed or moved it.
func (h Host) planRest(f edit.File, e *fileEdit) (*fileEdit, error) {
	if f.Do == edit.Delete {
		e.done = true
		e.about = "Removed " + f.Path
		return e, nil
	}
	if f.MoveTo == "" {
		return nil, errors.New("there is no such file")
	}
	known := h.seen(realPath(e.path))
	h.seen = func(string) *tool.SeenFile { return known }
	moved, err := h.planFile(edit.File{Path: f.MoveTo, Hunks: f.Hunks})
	if err == nil {
		moved.done = moved.done || len(f.Hunks) == 0
		moved.about = strings.TrimPrefix(moved.about+"\n", "\n") + "Moved " + f.Path + " to " + f.MoveTo
	}
	return moved, err
}

// planChange completes the plan for a file that is changed, moved or removed.
func (h Host) planChange(e *fileEdit, f edit.File) (err error) {
	var result edit.Result
	if len(f.Hunks) > 0 {
		if result, err = edit.Apply(e.before, f.Hunks); err != nil {
			return err
		}
	}
	switch {
	case f.Do == edit.Delete && result.Text != "":
		return errors.New("the patch removes the file, and the file has other lines than the patch says")
	case f.Do == edit.Delete:
		e.about = "Removed " + f.Path
	case len(f.Hunks) == 0:
		e.after = &e.before
	default:
		e.after = &result.Text
		e.about = describeEdit(fmt.Sprintf("Applied %s to %s.", countHunks(len(f.Hunks)), f.Path), result)
	}
	if f.MoveTo == "" {
		return nil
	}
	e.about = strings.TrimPrefix(e.about+"\n", "\n") + "Moved " + f.Path + " to " + f.MoveTo
	target, err := h.pathArgument(arguments{"path": f.MoveTo})
	if err != nil {
		return err
	}
	if _, err = os.Lstat(h.resolvePath(target)); err == nil {
		return fmt.Errorf("it cannot be moved to %s: that file exists", f.MoveTo)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

func countHunks(n int) string {
	if n == 1 {
		return "1 hunk"
	}
	return fmt.Sprintf("%d hunks", n)
}

// describeEdit returns what a change has done: how far it was not exactly as it was asked for, and the lines as they
// are now.
func describeEdit(head string, r edit.Result) string {
	if len(r.Notes) > 0 {
		head += " Not exactly: " + strings.Join(r.Notes, "; ") + "."
	}
	return head + "\n" + strings.TrimRight(r.Lines(), "\n")
}

// carryOut makes the changes of all files, or none: if one fails, those before it are taken back.
func (h Host) carryOut(edits []*fileEdit) (tool.Result, error) {
	var about []string
	result := tool.Result{}
	for i, e := range edits {
		about = append(about, e.about)
		now := e.path
		if e.moveTo != "" {
			now = h.resolvePath(e.moveTo)
		}
		if !e.done {
			before := h.readImage(e.path, os.Stat)
			if err := h.writeEdit(e); err != nil {
				text := describeFileError(e.name, err)
				if err := undoEdits(h, edits[:i]); err != nil {
					text += fmt.Sprintf("; and what was changed before it could not be taken back: %v", err)
				} else if i > 0 {
					text += "; the files before it are as they were"
				}
				return tool.FailedResult("%s", text), nil
			}
			if e.moveTo == "" {
				result = before.addChange(result, e.path, e.after)
			} else {
				result = before.addChange(result, e.path, nil)
				result = oldImage{}.addChange(result, now, e.after)
			}
		}
		if e.after != nil {
			result.Seen = append(result.Seen, newSeen(now, *e.after, stampFile(now)))
		}
	}
	done := tool.TextResult(strings.Join(about, "\n"))
	done.Changes = result.Changes
	done.Seen = result.Seen
	return done, nil
}

// writeEdit changes a file that still is as the edit knows it.
func (h Host) writeEdit(e *fileEdit) error {
	var before *string
	if e.exists {
		before = &e.before
	}
	check := func() error { return expectFile(e.path, before) }
	if e.blind {
		check = nil
	}
	switch {
	case e.after == nil:
		if err := check(); err != nil {
			return err
		}
		return os.Remove(e.path)
	case e.moveTo == "":
		return replaceFile(e.path, *e.after, check)
	}
	target := h.resolvePath(e.moveTo)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	if err := expectFile(target, nil); err != nil {
		return err
	}
	if err := os.Rename(e.path, target); err != nil || *e.after == e.before {
		return err
	}
	if err := replaceFile(target, *e.after, func() error { return expectFile(target, &e.before) }); err != nil {
		return errors.Join(err, os.Rename(target, e.path))
	}
	return nil
}

// undoEdits takes changes back. A file that another program has changed since stays as it is.
func undoEdits(h Host, edits []*fileEdit) (err error) {
	for _, e := range edits {
		if e.done {
			continue
		}
		now := e.path
		if e.moveTo != "" {
			now = h.resolvePath(e.moveTo)
		}
		if back := undoEdit(e, now); back != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", h.displayPath(now), back))
		}
	}
	return err
}

// undoEdit takes the change of a file back that is at a path now.
func undoEdit(e *fileEdit, now string) error {
	check := func() error { return expectFile(now, e.after) }
	if !e.exists {
		if err := check(); err != nil {
			return err
		}
		return os.Remove(now)
	}
	err := replaceFile(now, e.before, check)
	if err == nil && now != e.path {
		err = os.Rename(now, e.path)
	}
	return err
}

func (h Host) planPatch(a arguments) ([]*fileEdit, error) {
	return h.planEdits(a["contents"], a["path"])
}

func patchFile(_ context.Context, h Host, a arguments) (tool.Result, error) {
	edits, err := h.planPatch(a)
	if err != nil {
		if _, err := readFile(h.resolvePath(a["path"])); err != nil {
			return fileError(a["path"], err)
		}
		return failWith(a["path"]+" is unchanged: ", unwrapPath(err, a["path"]))
	}
	return h.carryOut(edits)
}

// unwrapPath returns an error without the path that begins it.
func unwrapPath(err error, path string) error {
	if text, ok := strings.CutPrefix(err.Error(), path+": "); ok {
		return errors.New(text)
	}
	return err
}

func (h Host) planPatches(a arguments) ([]*fileEdit, error) {
	return h.planEdits(a["patch"], "")
}

func applyPatch(_ context.Context, h Host, a arguments) (tool.Result, error) {
	edits, err := h.planPatches(a)
	if err != nil {
		return failWith("No file is changed: ", err)
	}
	return h.carryOut(edits)
}

func (h Host) planEdit(a arguments) ([]*fileEdit, error) {
	path := h.resolvePath(a["path"])
	text, err := readFile(path)
	if err != nil {
		return nil, errors.New(describeFileError(a["path"], err))
	}
	e := &fileEdit{name: a["path"], path: path, before: string(text), exists: true, after: new(string(text))}
	all := a["all"] == "true"
	if h.wasDone(path, e.before, func(was func(string) bool) bool { return edit.UndoReplace(e.before, a["old"], a["new"], all, was) }) {
		e.done = true
		e.about = a["path"] + " was changed by the first try of this call."
		return []*fileEdit{e}, nil
	}
	if err := h.checkSeen(e.name, path, e.before, byParts); err != nil {
		return nil, err
	}
	result, err := edit.Replace(e.before, a["old"], a["new"], all)
	if err != nil {
		return nil, fmt.Errorf("%s is unchanged: %w", a["path"], err)
	}
	e.after, e.about = &result.Text, describeEdit("Changed "+a["path"]+".", result)
	return []*fileEdit{e}, nil
}

func editFile(_ context.Context, h Host, a arguments) (tool.Result, error) {
	edits, err := h.planEdit(a)
	if err != nil {
		return failWith("", err)
	}
	return h.carryOut(edits)
}

// applyTouches returns the files of a patch. One that cannot be read touches nothing: the call changes nothing either.
func applyTouches(h Host, a arguments) (tool.Touch, error) {
	files, err := edit.Parse(a["patch"])
	if err != nil {
		return tool.Touch{}, nil
	}
	var touch tool.Touch
	for _, f := range files {
		for _, name := range []string{f.Path, f.MoveTo} {
			if name == "" {
				continue
			}
			path, err := h.pathArgument(arguments{"path": name})
			if err != nil {
				return tool.Touch{}, err
			}
			touch.Reads = append(touch.Reads, path)
			touch.Writes = append(touch.Writes, path)
		}
	}
	return touch, nil
}

// Preview returns a unified diff of what a call of a tool that changes files would change,
// for a person to see before it runs. It is empty for other tools, and where the
// call would change nothing or fail.
func Preview(h Host, c tool.Call, name string) string {
	edits, err := h.planCall(c, name)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, e := range edits {
		after := ""
		if e.after != nil {
			after = *e.after
		}
		now := e.name
		if e.moveTo != "" {
			now = e.moveTo
		}
		b.WriteString(udiff.Unified(e.name, now, e.before, after))
	}
	return b.String()
}

// planCall returns the changes that a call would make; none for a tool that changes no files by their lines.
func (h Host) planCall(c tool.Call, name string) ([]*fileEdit, error) {
	d := findDefinition(name)
	if d == nil {
		return nil, nil
	}
	a, err := parseArguments(d.params, c.Args)
	if err != nil {
		return nil, err
	}
	return d.plan(h, a)
}

// findDefinition returns the definition of a tool that changes files by their lines, nil if it is not one.
func findDefinition(name string) *definition {
	for i := range editTools {
		if editTools[i].name == name {
			return &editTools[i]
		}
	}
	if name == "fs_write" {
		return writeTool
	}
	return nil
}
