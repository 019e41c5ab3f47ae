package permission_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/tool/permission"
)

// A digested tree is a directory with a file of each kind, in a workspace with other files.
func newDigestedTree(t *testing.T) (dir, workspace string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	workspace = filepath.Join(base, "work")
	dir = filepath.Join(workspace, "agent")
	for name, text := range map[string]string{
		"agent/tools.sh": "echo 1", "agent/lib/x.PY": "1", "agent/config.yaml": "a: 1", "agent/notes.md": "n", "agent/run": "r",
		"agent/sessions/s.sh": "s", "agent/node_modules/m.js": "m", "agent/sub/cache/c.sh": "c",
		"code/x.sh": "x", "code/deep/y.sh": "y", "../elsewhere/z.sh": "z",
	} {
		testfile.WriteFile(t, filepath.Join(workspace, name), text)
	}
	if err := os.Chmod(filepath.Join(dir, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, workspace
}

// change is something that happens to a tree.
type change struct {
	name  string
	do    func(t *testing.T, dir, workspace string)
	tells bool // the digest becomes another one
}

func writeIn(name, text string) func(t *testing.T, dir, workspace string) {
	return func(t *testing.T, dir, _ string) { testfile.WriteFile(t, filepath.Join(dir, name), text) }
}

func TestDigest(t *testing.T) {
	dir, _ := newDigestedTree(t)
	_, files, err := permission.Digest(dir)
	if want := []string{"config.yaml", "lib/x.PY", "run", "tools.sh"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("the digest covers %q, %v; want %q", files, err, want)
	}
	if _, _, err := permission.Digest(filepath.Join(dir, "missing")); err == nil || !strings.Contains(err.Error(), "look at the scripts of") {
		t.Errorf("a directory that is not there: %v", err)
	}
	for _, c := range []change{
		{"nothing", func(*testing.T, string, string) {}, false},
		{"a script", writeIn("tools.sh", "echo 2"), true},
		{"a script of the same size", writeIn("tools.sh", "echo x"), true},
		{"a new script", writeIn("new.ts", ""), true},
		{"an agent file", writeIn("config.yaml", "a: 2"), true},
		{"a program", writeIn("run", "s"), true},
		{"a text", writeIn("notes.md", "m"), false},
		{"a session", writeIn("sessions/s.sh", "t"), false},
		{"a package", writeIn("node_modules/m.js", "n"), false},
		{"a cache below", writeIn("sub/cache/c.sh", "d"), false},
		{"a text that can be run", func(t *testing.T, dir, _ string) {
			if err := os.Chmod(filepath.Join(dir, "notes.md"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"another name", func(t *testing.T, dir, _ string) {
			rename(t, filepath.Join(dir, "tools.sh"), filepath.Join(dir, "tool.sh"))
		}, true},
		{"a link to nothing", func(t *testing.T, dir, _ string) { symlink(t, "nowhere", filepath.Join(dir, "l.sh")) }, false},
		{"a link to a script", func(t *testing.T, dir, _ string) { symlink(t, "tools.sh", filepath.Join(dir, "l.sh")) }, true},
		{"a directory like a script", func(t *testing.T, dir, _ string) {
			if err := os.Mkdir(filepath.Join(dir, "d.sh"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			compareDigests(t, c, func(dir, _ string) (string, error) {
				digest, _, err := permission.Digest(dir)
				return digest, err
			})
		})
	}
}

func TestDigestTree(t *testing.T) {
	link := func(to string) func(t *testing.T, dir, workspace string) {
		return func(t *testing.T, dir, _ string) { symlink(t, to, filepath.Join(dir, "l")) }
	}
	dir, workspace := newDigestedTree(t)
	if _, err := permission.DigestTree(filepath.Join(dir, "missing"), workspace); err == nil || !strings.Contains(err.Error(), "look at the files of") {
		t.Errorf("a directory that is not there: %v", err)
	}
	symlink(t, "..", filepath.Join(dir, "up"))
	if _, err := permission.DigestTree(dir, workspace); err == nil || !strings.Contains(err.Error(), "leads to a directory around it") {
		t.Errorf("a link to a directory around it: %v", err)
	}
	for _, c := range []struct {
		change
		first func(t *testing.T, dir, workspace string)
	}{
		{change{"a text", writeIn("notes.md", "m"), true}, nil},
		{change{"a session", writeIn("sessions/s.sh", "t"), true}, nil},
		{change{"nothing", func(*testing.T, string, string) {}, false}, nil},
		{change{"the right to run it", func(t *testing.T, dir, _ string) {
			if err := os.Chmod(filepath.Join(dir, "notes.md"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, true}, nil},
		{change{"the right to write it", func(t *testing.T, dir, _ string) {
			if err := os.Chmod(filepath.Join(dir, "notes.md"), 0o606); err != nil {
				t.Fatal(err)
			}
		}, false}, nil},
		{change{"an empty directory", func(t *testing.T, dir, _ string) {
			if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, false}, nil},
		{change{"a link to nothing", link("nowhere"), true}, nil},
		{change{"another target of a link", func(t *testing.T, dir, _ string) {
			if err := os.Remove(filepath.Join(dir, "l")); err != nil {
				t.Fatal(err)
			}
			symlink(t, "nowhere2", filepath.Join(dir, "l"))
		}, true}, link("nowhere1")},
		{change{"what a link in the workspace leads to", func(t *testing.T, _, workspace string) {
			testfile.WriteFile(t, filepath.Join(workspace, "code/deep/y.sh"), "changed")
		}, true}, link("../code")},
		{change{"a file that a link leads to", func(t *testing.T, _, workspace string) {
			testfile.WriteFile(t, filepath.Join(workspace, "code/x.sh"), "changed")
		}, true}, link("../code/x.sh")},
		{change{"what a second link leads to as well", func(t *testing.T, _, workspace string) {
			testfile.WriteFile(t, filepath.Join(workspace, "code/x.sh"), "changed")
		}, true}, func(t *testing.T, dir, workspace string) {
			link("../code")(t, dir, workspace)
			symlink(t, "../code", filepath.Join(dir, "second"))
		}},
		{change{"what a link leads to outside of the workspace", func(t *testing.T, _, workspace string) {
			testfile.WriteFile(t, filepath.Join(workspace, "../elsewhere/z.sh"), "changed")
		}, false}, link("../../elsewhere")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.first == nil {
				compareDigests(t, c.change, permission.DigestTree)
				return
			}
			compareDigestsAfter(t, c.first, c.change, permission.DigestTree)
		})
	}
}

// compareDigests takes the digest of a tree before and after a change.
func compareDigests(t *testing.T, c change, digest func(dir, workspace string) (string, error)) {
	t.Helper()
	compareDigestsAfter(t, func(*testing.T, string, string) {}, c, digest)
}

func compareDigestsAfter(t *testing.T, first func(t *testing.T, dir, workspace string), c change, digest func(dir, workspace string) (string, error)) {
	t.Helper()
	dir, workspace := newDigestedTree(t)
	first(t, dir, workspace)
	before, err := digest(dir, workspace)
	if err != nil || len(before) != 64 {
		t.Fatalf("digest = %q, %v", before, err)
	}
	c.do(t, dir, workspace)
	after, err := digest(dir, workspace)
	if err != nil || (before != after) != c.tells {
		t.Errorf("another digest: %t, %v; want %t", before != after, err, c.tells)
	}
}
