package builtin_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/tool"
)

// The result of a built-in tool says what the call did to files.
func TestFileChanges(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", tool.MaxImage/16) + "x"
	h := place(t, map[string]string{"a.txt": "one\ntwo\nthree\n", "bin": "a\x00b", "large": large, "dir/": "", "private/key": "k\n", "run.sh": "echo\n"})
	if err := os.Chmod(filepath.Join(h.Workspace, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.EvalSymlinks(h.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	h.Hidden = func(string) func(string) bool {
		return func(path string) bool { return path == filepath.Join(root, "private") }
	}
	image := func(text string, mode os.FileMode) *tool.FileImage {
		if runtime.GOOS == "windows" {
			mode = 0o666
		}
		sum := sha256.Sum256([]byte(text))
		return &tool.FileImage{Mode: mode, Size: int64(len(text)), Hash: hex.EncodeToString(sum[:]), Text: text}
	}
	without := func(i *tool.FileImage, hash bool) *tool.FileImage {
		i.Text = ""
		if !hash {
			i.Hash = ""
		}
		return i
	}
	const file = os.FileMode(0o644)
	change := func(path string, kind tool.ChangeKind, before, after *tool.FileImage, counts ...int) []tool.FileChange {
		return []tool.FileChange{{Path: filepath.Join(root, filepath.FromSlash(path)), Kind: kind, Before: before, After: after, Added: counts[0], Removed: counts[1]}}
	}
	withheld := func(why tool.WithheldReason, list []tool.FileChange) []tool.FileChange {
		list[0].Withheld = why
		return list
	}
	for _, c := range []struct {
		name, tool string
		args       object
		want       []tool.FileChange
	}{
		{"a new file", "fs_write", object{"path": "new/f", "contents": "x\ny"}, change("new/f", tool.FileCreated, nil, image("x\ny", file), 2, 0)},
		{"another content", "fs_write", object{"path": "new/f", "contents": "x\nz\n"}, change("new/f", tool.FileChanged, image("x\ny", file), image("x\nz\n", file), 1, 1)},
		{"the same content", "fs_write", object{"path": "new/f", "contents": "x\nz\n"}, nil},
		{"a patch", "fs_patch", object{"path": "a.txt", "contents": "@@\n one\n-two\n+2\n+2b\n three\n"},
			change("a.txt", tool.FileChanged, image("one\ntwo\nthree\n", file), image("one\n2\n2b\nthree\n", file), 2, 1)},
		{"a patch that does not fit", "fs_patch", object{"path": "a.txt", "contents": "@@\n-none\n+x\n"}, nil},
		{"a mode", "fs_write", object{"path": "run.sh", "contents": "true\n"}, change("run.sh", tool.FileChanged, image("echo\n", 0o755), image("true\n", 0o755), 1, 1)},
		{"a file is removed", "fs_rm", object{"path": "run.sh"}, change("run.sh", tool.FileRemoved, image("true\n", 0o755), nil, 0, 1)},
		{"nothing is removed", "fs_rm", object{"path": "run.sh"}, nil},
		{"a directory is removed", "fs_rm", object{"path": "dir"}, nil},
		{"binary", "fs_write", object{"path": "bin", "contents": "text"},
			withheld(tool.WithheldBinary, change("bin", tool.FileChanged, without(image("a\x00b", file), true), without(image("text", file), true), 0, 0))},
		{"large", "fs_rm", object{"path": "large"},
			withheld(tool.WithheldLarge, change("large", tool.FileRemoved, without(image(large, file), true), nil, 0, 0))},
		{"large from now on", "fs_write", object{"path": "new/f", "contents": large},
			withheld(tool.WithheldLarge, change("new/f", tool.FileChanged, without(image("x\nz\n", file), true), without(image(large, file), true), 0, 0))},
		{"not to be read", "fs_write", object{"path": "private/key", "contents": "other"},
			withheld(tool.WithheldSecret, change("private/key", tool.FileChanged, without(image("k\n", file), false), without(image("other", file), false), 0, 0))},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := lookup(t, h, c.tool).Run(t.Context(), tool.Call{Args: raw(t, c.args)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.Changes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A call through a link changes what the link leads to; removing a link removes the link.
func TestChangesThroughLinks(t *testing.T) {
	h := place(t, map[string]string{"real/a": "x\n"})
	if err := os.Symlink(filepath.Join("real", "a"), filepath.Join(h.Workspace, "link")); err != nil {
		t.Skip("this system makes no links: ", err)
	}
	root, err := filepath.EvalSymlinks(h.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	one := func(name string, args object) tool.FileChange {
		t.Helper()
		r, err := lookup(t, h, name).Run(t.Context(), tool.Call{Args: raw(t, args)})
		if err != nil || len(r.Changes) != 1 {
			t.Fatal(r, err)
		}
		return r.Changes[0]
	}
	if c := one("fs_write", object{"path": "link", "contents": "y\n"}); c.Path != filepath.Join(root, "real", "a") || c.Before.Text != "x\n" || c.After.Text != "y\n" {
		t.Errorf("%+v", c)
	}
	if c := one("fs_rm", object{"path": "link"}); c.Path != filepath.Join(root, "link") || c.Withheld != tool.WithheldSpecial || c.Before.Hash != "" {
		t.Errorf("%+v", c)
	}
}
