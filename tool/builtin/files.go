package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"raddle.dev/tool"
)

var pathParam = param{name: "path", required: true, about: "Path of the file or directory, absolute or relative to the workspace"}

var fileTools = []definition{
	{
		name: "fs_cat", about: "Read the contents of a file.", effect: tool.ReadOnly, parallel: true,
		params: []param{pathParam}, touches: readsPath, run: cat,
	},
	{
		name: "fs_read", effect: tool.ReadOnly, parallel: true,
		about: "Read a file with line numbers, or list a directory. Long files are read in parts with offset and limit.",
		params: []param{
			pathParam,
			{name: "offset", number: true, about: "First line to read, counted from 1"},
			{name: "limit", number: true, about: "Number of lines to read, 2000 if not given"},
		},
		touches: listsPath, run: read,
	},
	{
		name: "fs_ls", about: "List the names in a directory, one a line.", effect: tool.ReadOnly, parallel: true,
		params: []param{pathParam}, touches: listsPath, run: list,
	},
	{
		name: "fs_mkdir", about: "Make a directory, and those above it that are missing.", effect: tool.Idempotent,
		params: []param{pathParam}, touches: writesPath, run: mkdir,
	},
	{
		name: "fs_rm", about: "Remove a file. A directory is removed only if it is empty.", effect: tool.Idempotent,
		params: []param{pathParam}, touches: writesPath, run: remove,
	},
	{
		name: "fs_write", about: "Write a whole file, which need not exist. What was in it is lost.", effect: tool.Idempotent,
		params:  []param{pathParam, {name: "contents", alias: "content", required: true, about: "Everything that is to be in the file"}},
		touches: writesPath, run: write,
	},
	{
		name: "fs_patch",
		about: "Change parts of a file by a unified diff. Each hunk begins with @@; its lines begin with a space (unchanged), - (removed) " +
			"or + (added). Unchanged and removed lines must be in the file exactly so. Either all hunks are applied or none.",
		params:  []param{pathParam, {name: "contents", alias: "content", required: true, about: "The diff"}},
		touches: patchTouches, run: patch,
	},
}

func readsPath(h Host, a arguments) (tool.Touch, error) {
	path, err := h.given(a)
	return tool.Touch{Reads: []string{path}}, err
}

// listsPath is for tools that read a file, or the names in a directory.
func listsPath(h Host, a arguments) (tool.Touch, error) {
	path, err := h.given(a)
	return tool.Touch{Lists: []string{path}}, err
}

func writesPath(h Host, a arguments) (tool.Touch, error) {
	path, err := h.given(a)
	return tool.Touch{Writes: []string{path}}, err
}

func patchTouches(h Host, a arguments) (tool.Touch, error) {
	path, err := h.given(a)
	return tool.Touch{Reads: []string{path}, Writes: []string{path}}, err
}

// given returns the path of a call, with ~ replaced. Paths that name nothing are
// refused, and those that begin with the ~ of somebody else.
func (h Host) given(a arguments) (string, error) {
	p := a["path"]
	if p == "" || strings.ContainsRune(p, 0) {
		return "", errors.New("the argument path must name a file or directory")
	}
	if !strings.HasPrefix(p, "~") {
		return p, nil
	}
	name, _, _ := strings.Cut(p, "/")
	switch {
	case name == "~" && h.env("HOME") == "":
		return "", errors.New("the home directory that ~ stands for is not known: give the whole path")
	case name == "~":
		return h.path(p), nil
	case name != p:
		return "", fmt.Errorf("%s is not replaced by a home directory: give the whole path, or ./%s for a name that begins with ~", name, p)
	}
	return p, nil
}

// readFile reads a regular file: a pipe or a device may never end.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	}
	return os.ReadFile(path)
}

// failed tells the model of an error of the file system, with the path as it
// gave it.
func failed(path string, err error) (tool.Result, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return tool.Failed("No such file or path: %s", path), nil
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return tool.Failed("%s: %v", path, err), nil
}

func cat(_ context.Context, h Host, a arguments) (tool.Result, error) {
	text, err := readFile(h.path(a["path"]))
	if err != nil {
		return failed(a["path"], err)
	}
	return tool.Text(h.clip(string(text))), nil
}

func list(_ context.Context, h Host, a arguments) (tool.Result, error) {
	entries, err := os.ReadDir(h.path(a["path"]))
	if err != nil {
		return failed(a["path"], err)
	}
	var b strings.Builder
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			b.WriteString(e.Name() + "\n")
		}
	}
	return tool.Text(h.clip(b.String())), nil
}

func mkdir(_ context.Context, h Host, a arguments) (tool.Result, error) {
	if err := os.MkdirAll(h.path(a["path"]), 0o755); err != nil {
		return failed(a["path"], err)
	}
	return tool.Text("Directory created: " + a["path"]), nil
}

func remove(_ context.Context, h Host, a arguments) (tool.Result, error) {
	if err := os.Remove(h.path(a["path"])); err != nil {
		return failed(a["path"], err)
	}
	return tool.Text("Path removed: " + a["path"]), nil
}

func write(_ context.Context, h Host, a arguments) (tool.Result, error) {
	if err := replace(h.path(a["path"]), a["contents"]); err != nil {
		return failed(a["path"], err)
	}
	return tool.Text("The File contents were written to: " + a["path"]), nil
}

// replace puts a text in the place of a file: all of it or nothing. A link stays
// a link, and a file keeps its mode.
func replace(path, text string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := fs.FileMode(0o644)
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("it is no file")
	case err == nil:
		mode = info.Mode().Perm()
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
	default:
		return err
	}
	if _, err := os.Lstat(path); err == nil && info == nil {
		return os.WriteFile(path, []byte(text), mode) // a link to a file that does not exist yet
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".raddle-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it is gone where all went well
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
