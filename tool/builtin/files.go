package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/tool"
)

var pathParam = param{
	name:     "path",
	required: true,
	about:    "Path of the file or directory, absolute or relative to the workspace",
}

var fileTools = []definition{
	{
		name:     "fs_cat",
		about:    "Read the contents of a file.",
		effect:   tool.ReadOnly,
		parallel: true,
		sees:     true,
		params:   []param{pathParam},
		touches:  readsPath,
		run:      catFile,
	},
	{
		name:     "fs_read",
		effect:   tool.ReadOnly,
		parallel: true,
		sees:     true,
		about:    "Read a file with line numbers, or list a directory. Long files are read in parts with offset and limit.",
		params: []param{
			pathParam,
			{name: "offset", number: true, about: "First line to read, counted from 1"},
			{name: "limit", number: true, about: "Number of lines to read, 2000 if not given"},
		},
		touches: listsPath,
		run:     readPath,
	},
	{
		name:     "fs_ls",
		about:    "List the names in a directory, one a line.",
		effect:   tool.ReadOnly,
		parallel: true,
		params:   []param{pathParam},
		touches:  listsPath,
		run:      listDirectory,
	},
	{
		name:    "fs_mkdir",
		about:   "Make a directory, and those above it that are missing.",
		effect:  tool.Idempotent,
		params:  []param{pathParam},
		touches: writesPath,
		run:     makeDirectory,
	},
	{
		name:    "fs_rm",
		about:   "Remove a file, which you must have read. A directory is removed only if it is empty.",
		effect:  tool.Idempotent,
		params:  []param{pathParam},
		touches: writesPath,
		plan:    Host.planRemoval,
		run:     removePath,
	},
}

// writeTool writes a whole file.
var writeTool = &definition{
	name:   "fs_write",
	about:  "Write a whole file, which need not exist. What was in it is lost: read a file that exists first.",
	effect: tool.Idempotent,
	params: []param{pathParam, {
		name:     "contents",
		alias:    "content",
		required: true,
		about:    "Everything that is to be in the file",
	}},
	touches: writesPath,
	plan:    Host.planWrite,
	run:     writeFile,
}

func readsPath(h Host, a arguments) (tool.Touch, error) {
	path, err := h.pathArgument(a)
	return tool.Touch{Reads: []string{path}}, err
}

// listsPath is for tools that read a file, or the names in a directory.
func listsPath(h Host, a arguments) (tool.Touch, error) {
	path, err := h.pathArgument(a)
	return tool.Touch{Lists: []string{path}}, err
}

func writesPath(h Host, a arguments) (tool.Touch, error) {
	path, err := h.pathArgument(a)
	return tool.Touch{Writes: []string{path}}, err
}

func patchTouches(h Host, a arguments) (tool.Touch, error) {
	path, err := h.pathArgument(a)
	return tool.Touch{Reads: []string{path}, Writes: []string{path}}, err
}

// pathArgument returns the path of a call, with ~ replaced. Paths that name nothing are
// refused, and those that begin with the ~ of another user.
func (h Host) pathArgument(a arguments) (string, error) {
	p := a["path"]
	if p == "" || strings.ContainsRune(p, 0) {
		return "", errors.New("the argument path must name a file or directory")
	}
	if !strings.HasPrefix(p, "~") {
		return p, nil
	}
	name, _, _ := strings.Cut(p, "/")
	switch {
	case name == "~" && environ.Environ(h.Env).FindHome() == "":
		return "", errors.New("the home directory for ~ is not known: give the whole path")
	case name == "~":
		return h.resolvePath(p), nil
	case name != p:
		return "", fmt.Errorf("%s is not replaced by a home directory: give the whole path, or ./%s for a name that begins with ~", name, p)
	}
	return p, nil
}

// largestRead is the size in bytes of the largest file that the tools read.
const largestRead = 256 << 20

// readFile reads a regular file: a pipe or a device may never end.
func readFile(path string) ([]byte, error) {
	text, err := plainfile.Read(path, largestRead)
	switch info, _ := os.Stat(path); {
	case errors.Is(err, plainfile.ErrNotRegular) && info != nil && info.IsDir():
		return nil, errors.New("is a directory")
	case errors.Is(err, plainfile.ErrNotRegular):
		return nil, errors.New("is not a regular file")
	case errors.Is(err, plainfile.ErrTooLarge):
		return nil, fmt.Errorf("has more than %d MiB: read a part of it with a command", largestRead>>20)
	}
	return text, err
}

// fileError returns an error of the file system as a result for the model, with the path as the
// model wrote it.
func fileError(path string, err error) (tool.Result, error) {
	return tool.FailedResult("%s", describeFileError(path, err)), nil
}

// describeFileError returns the text of an error of the file system, with the path as the model wrote it.
func describeFileError(path string, err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "No such file or path: " + path
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return fmt.Sprintf("%s: %v", path, err)
}

func catFile(_ context.Context, h Host, a arguments) (tool.Result, error) {
	path := h.resolvePath(a["path"])
	stamp := stampFile(path)
	text, err := readFile(path)
	if err != nil {
		return fileError(a["path"], err)
	}
	r := tool.TextResult(h.clipOutput(string(text)))
	r.Seen = []tool.SeenFile{newSeen(path, string(text), stamp)}
	return r, nil
}

func listDirectory(_ context.Context, h Host, a arguments) (tool.Result, error) {
	entries, err := os.ReadDir(h.resolvePath(a["path"]))
	if err != nil {
		return fileError(a["path"], err)
	}
	var b strings.Builder
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			b.WriteString(e.Name() + "\n")
		}
	}
	return tool.TextResult(h.clipOutput(b.String())), nil
}

func makeDirectory(_ context.Context, h Host, a arguments) (tool.Result, error) {
	if err := os.MkdirAll(h.resolvePath(a["path"]), 0o755); err != nil {
		return fileError(a["path"], err)
	}
	return tool.TextResult("Directory created: " + a["path"]), nil
}

// planRemoval returns the removal of a regular file; none for what has no content to lose.
func (h Host) planRemoval(a arguments) ([]*fileEdit, error) {
	e := &fileEdit{name: a["path"], path: h.resolvePath(a["path"]), exists: true}
	if info, err := os.Lstat(e.path); h.seen == nil || err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	text, err := readFile(e.path)
	if err != nil {
		return nil, err
	}
	e.before = string(text)
	return []*fileEdit{e}, h.checkSeen(e.name, e.path, e.before, asAWhole)
}

func removePath(_ context.Context, h Host, a arguments) (tool.Result, error) {
	path := h.resolvePath(a["path"])
	edits, err := h.planRemoval(a)
	if _, unseen := errors.AsType[*unseenError](err); unseen {
		return failWith("", err)
	}
	before := h.readImage(path, os.Lstat)
	for _, e := range edits {
		if err == nil {
			err = expectFile(path, &e.before)
		}
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return fileError(a["path"], err)
	}
	return before.addChange(tool.TextResult("Path removed: "+a["path"]), path, nil), nil
}

func (h Host) planWrite(a arguments) ([]*fileEdit, error) {
	e := &fileEdit{
		name:  a["path"],
		path:  h.resolvePath(a["path"]),
		after: new(a["contents"]),
		about: "The File contents were written to: " + a["path"],
	}
	text, err := readFile(e.path)
	switch {
	case err == nil:
		e.before = string(text)
		e.exists = true
	case !errors.Is(err, fs.ErrNotExist):
		return nil, errors.New(describeFileError(a["path"], err))
	}
	if e.before == a["contents"] {
		return []*fileEdit{e}, nil
	}
	return []*fileEdit{e}, h.checkSeen(e.name, e.path, e.before, asAWhole)
}

func writeFile(_ context.Context, h Host, a arguments) (tool.Result, error) {
	if h.seen == nil { // the caller knows what it overwrites
		return h.carryOut([]*fileEdit{{
			name:  a["path"],
			path:  h.resolvePath(a["path"]),
			after: new(a["contents"]),
			about: "The File contents were written to: " + a["path"],
			blind: true,
		}})
	}
	edits, err := h.planWrite(a)
	if err != nil {
		return failWith("", err)
	}
	return h.carryOut(edits)
}

// replaceFile replaces the content of a file by a text: completely, or not at all. A link stays a link, and a file
// keeps its mode. check is called at the last moment; its error leaves the file as it is. nil: nothing is checked.
func replaceFile(path, text string, check func() error) error {
	if check == nil {
		check = func() error { return nil }
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := fs.FileMode(0o644)
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("it is not a file")
	case err == nil && info.Mode().Perm()&0o222 == 0:
		return errors.New("is read-only: change its mode first if that is meant")
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
		if err := check(); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), mode) // a link to a file that does not exist yet
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".raddle-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after a failure: the renamed file has another name
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	if err = check(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
