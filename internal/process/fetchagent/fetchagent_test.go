package fetchagent

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
)

// listTree returns the paths of the files in a directory.
func listTree(t *testing.T, dir string) string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			paths = append(paths, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(paths, " ")
}

// A repository is fetched at a commit, and nothing that it names is run or followed.
func TestFetchGit(t *testing.T) {
	testneed.RequirePrograms(t, "git")
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"repo/agents/a/config.yaml": "name: a\n", "repo/.gitattributes": "* filter=evil\n"})
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "repo", "link")); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = filepath.Join(dir, "repo")
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", ".")
	git("add", ".")
	git("commit", "-q", "-m", "one")
	git("tag", "v1")
	first := git("rev-parse", "HEAD")
	testfile.WriteFiles(t, dir, map[string]string{"repo/agents/b/config.yaml": "name: b\n"})
	git("add", ".")
	git("commit", "-q", "-m", "two")
	for address, want := range map[string]string{
		"repo":          ".gitattributes agents/a/config.yaml agents/b/config.yaml",
		"repo@v1":       ".gitattributes agents/a/config.yaml",
		"repo@" + first: ".gitattributes agents/a/config.yaml",
	} {
		to := t.TempDir()
		o, err := Fetch(context.Background(), address, dir, env, to)
		if err != nil || o.Name != "repo" || strings.Contains(address, "@") != (o.Pin == first) || listTree(t, to) != want {
			t.Errorf("%s: %+v, %v: %s", address, o, err, listTree(t, to))
		}
	}
	for address, want := range map[string]string{"repo@v2": `no "v2"`, "-x": "not an address", "http://example.org/a.git": "https", "ext::sh -c true": "not allowed", "nothing": "git clone"} {
		if _, err := Fetch(context.Background(), address, dir, env, t.TempDir()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}

// Archives are read without links and without paths that lead out.
func TestFetchArchive(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range []tar.Header{
		{Name: "top/config.yaml", Size: 2, Mode: 0o644, Typeflag: tar.TypeReg},
		{Name: "top/../../evil", Size: 2, Mode: 0o644, Typeflag: tar.TypeReg},
		{Name: "top/link", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink},
		{Name: "top/tools.sh", Size: 2, Mode: 0o755, Typeflag: tar.TypeReg},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			_, _ = w.Write([]byte("x\n"))
		}
	}
	_ = w.Close()
	_ = z.Close()
	if err := os.WriteFile(filepath.Join(dir, "a.tar.gz"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	packed := zip.NewWriter(&b)
	for _, name := range []string{"top/config.yaml", "top/..\\..\\evil", "top/tools.sh"} {
		f, _ := packed.Create(name)
		_, _ = f.Write([]byte("x\n"))
	}
	_ = packed.Close()
	if err := os.WriteFile(filepath.Join(dir, "a.zip"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.tar.gz", "a.zip"} {
		to := filepath.Join(t.TempDir(), "in")
		if err := os.Mkdir(to, 0o700); err != nil {
			t.Fatal(err)
		}
		o, err := Fetch(context.Background(), name, dir, nil, to)
		if err != nil || o.Name != "a" || !strings.HasPrefix(o.Pin, "sha256:") || listTree(t, filepath.Dir(to)) != "in/top/config.yaml in/top/tools.sh" || filepath.Base(o.Dir) != "top" {
			t.Errorf("%s: %+v, %v: %s", name, o, err, listTree(t, filepath.Dir(to)))
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.zip"), []byte("no"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Fetch(context.Background(), "bad.zip", dir, nil, t.TempDir()); err == nil {
		t.Error("a broken archive was read")
	}
}
