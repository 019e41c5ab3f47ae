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

	"raddle.dev/internal/edit"
	"raddle.dev/tool"
)

var editTools = []definition{
	{
		name: "fs_edit",
		about: "Change a part of a file: a text that is in it is replaced by another one. The old text must be in the file only once, as it is there; give lines around it if it is not. " +
			"The result shows the lines as they are then.",
		params: []param{
			pathParam,
			{name: "old", alias: "old_string", required: true, about: "The text that is replaced, without line numbers"},
			{name: "new", alias: "new_string", required: true, about: "The text in its place; empty to remove it"},
			{name: "all", alias: "replace_all", flag: true, about: "Replace the text everywhere in the file"},
		},
		touches: patchTouches, run: editFile,
	},
	{
		name: "fs_patch",
		about: "Change parts of a file by a unified diff. Each hunk begins with @@; its lines begin with a space (unchanged), - (removed) " +
			"or + (added). Unchanged and removed lines must fit in only one place: give enough of them, line numbers (@@ -3,2 +3,2 @@), or a line above as a heading (@@ def f():). Either all hunks are applied or none. " +
			"The result shows the lines as they are then.",
		params:  []param{pathParam, {name: "contents", alias: "content", required: true, about: "The diff"}},
		touches: patchTouches, run: patchFile,
	},
	{
		name: "apply_patch",
		about: "Change, add, delete and move files by one patch: *** Begin Patch, then for each file *** Update File: PATH, *** Add File: PATH or *** Delete File: PATH, then *** End Patch. *** Move to: PATH may follow " +
			"the first. The changes of a file begin with @@ and a line above them as a heading; their lines begin with a space (unchanged), - (removed) or + (added). A unified diff of several files works too. " +
			"Either all files are changed or none.",
		params:  []param{{name: "patch", alias: "input", required: true, about: "The patch"}},
		touches: applyTouches, run: applyPatch,
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
}

// planEdits returns what a patch does with its files, without doing it. path is that of the only file that it may change; "": the patch names its files.
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
	seen := map[string]bool{}
	for _, f := range files {
		e, err := h.planFile(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		if seen[e.path] {
			return nil, fmt.Errorf("%s: the patch has this file twice: put its changes together", f.Path)
		}
		seen[e.path] = true
		edits = append(edits, e)
	}
	return edits, nil
}

// joinFiles returns the changes of a patch as those of one file. A name in the patch says nothing unless it has several.
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
		e.before, e.exists = string(text), true
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case f.Do != edit.Add:
		return nil, errors.New("there is no such file")
	}
	if f.Do == edit.Add {
		if e.exists {
			return nil, errors.New("the patch makes this file, and it exists: change it with *** Update File or a diff of its lines")
		}
		e.after, e.about = &f.Text, "Made "+f.Path
		return e, nil
	}
	var result edit.Result
	if len(f.Hunks) > 0 {
		if result, err = edit.Apply(e.before, f.Hunks); err != nil {
			return nil, err
		}
	}
	switch {
	case f.Do == edit.Delete && result.Text != "":
		return nil, errors.New("the patch removes the file, and the file has other lines than the patch says")
	case f.Do == edit.Delete:
		e.about = "Removed " + f.Path
	case len(f.Hunks) == 0:
		e.after = &e.before
	default:
		e.after = &result.Text
		e.about = describeEdit(fmt.Sprintf("Applied %s to %s.", countHunks(len(f.Hunks)), f.Path), result)
	}
	if f.MoveTo == "" {
		return e, nil
	}
	e.about = strings.TrimPrefix(e.about+"\n", "\n") + "Moved " + f.Path + " to " + f.MoveTo
	target, err := h.pathArgument(arguments{"path": f.MoveTo})
	if err == nil {
		if _, err = os.Lstat(h.resolvePath(target)); err == nil {
			err = fmt.Errorf("it cannot be moved to %s: that file exists", f.MoveTo)
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return e, err
}

func countHunks(n int) string {
	if n == 1 {
		return "1 hunk"
	}
	return fmt.Sprintf("%d hunks", n)
}

// describeEdit returns what a change has done: how far it was not exactly as it was asked for, and the lines as they are now.
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
		about = append(about, e.about)
		if e.moveTo == "" {
			result = before.addChange(result, e.path, e.after)
			continue
		}
		result = before.addChange(result, e.path, nil)
		result = oldImage{}.addChange(result, h.resolvePath(e.moveTo), e.after)
	}
	done := tool.TextResult(strings.Join(about, "\n"))
	done.Changes = result.Changes
	return done, nil
}

func (h Host) writeEdit(e *fileEdit) error {
	switch {
	case e.after == nil:
		return os.Remove(e.path)
	case e.moveTo == "":
		return replaceFile(e.path, *e.after)
	}
	target := h.resolvePath(e.moveTo)
	if err := moveFile(e.path, target); err != nil {
		return err
	}
	if *e.after == e.before {
		return nil
	}
	if err := replaceFile(target, *e.after); err != nil {
		return errors.Join(err, os.Rename(target, e.path))
	}
	return nil
}

// moveFile moves a file to a path that does not exist.
func moveFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// undoEdits takes changes back.
func undoEdits(h Host, edits []*fileEdit) (err error) {
	for _, e := range edits {
		switch {
		case e.moveTo != "":
			err = errors.Join(err, os.Rename(h.resolvePath(e.moveTo), e.path), replaceFile(e.path, e.before))
		case e.exists:
			err = errors.Join(err, replaceFile(e.path, e.before))
		default:
			err = errors.Join(err, os.Remove(e.path))
		}
	}
	return err
}

func patchFile(_ context.Context, h Host, a arguments) (tool.Result, error) {
	edits, err := h.planEdits(a["contents"], a["path"])
	if err != nil {
		if _, err := readFile(h.resolvePath(a["path"])); err != nil {
			return fileError(a["path"], err)
		}
		return tool.FailedResult("%s is unchanged: %v", a["path"], unwrapPath(err, a["path"])), nil
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

func applyPatch(_ context.Context, h Host, a arguments) (tool.Result, error) {
	edits, err := h.planEdits(a["patch"], "")
	if err != nil {
		return tool.FailedResult("No file is changed: %v", err), nil
	}
	return h.carryOut(edits)
}

func editFile(_ context.Context, h Host, a arguments) (tool.Result, error) {
	path := h.resolvePath(a["path"])
	text, err := readFile(path)
	if err != nil {
		return fileError(a["path"], err)
	}
	result, err := edit.Replace(string(text), a["old"], a["new"], a["all"] == "true")
	if err != nil {
		return tool.FailedResult("%s is unchanged: %v", a["path"], err), nil
	}
	return h.carryOut([]*fileEdit{{name: a["path"], path: path, before: string(text), exists: true, after: &result.Text,
		about: describeEdit("Changed "+a["path"]+".", result)}})
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
			touch.Reads, touch.Writes = append(touch.Reads, path), append(touch.Writes, path)
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
	switch name {
	case "apply_patch":
		return h.planEdits(a["patch"], "")
	case "fs_patch":
		return h.planEdits(a["contents"], a["path"])
	}
	old, err := readFile(h.resolvePath(a["path"]))
	if err != nil && (name == "fs_edit" || !errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	e := &fileEdit{name: a["path"], before: string(old), after: new(a["contents"])}
	if name == "fs_edit" {
		result, err := edit.Replace(e.before, a["old"], a["new"], a["all"] == "true")
		if err != nil {
			return nil, err
		}
		e.after = &result.Text
	}
	return []*fileEdit{e}, nil
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
