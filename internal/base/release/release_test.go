//go:build unix

package release_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"raddle.dev/internal/base/release"
	"raddle.dev/internal/testkit/releasetest"
)

// Versions are ordered as semantic versions are, and what is none has no order.
func TestCompare(t *testing.T) {
	inOrder := []string{"v0.1.0-1", "v0.1.0-alpha", "v0.1.0-alpha.2", "v0.1.0-alpha.10", "v0.1.0-rc.1", "v0.1.0", "v0.2.0", "v0.10.0", "v1.0.0-dev.1700000000", "v1.0.0"}
	for i, a := range inOrder {
		for j, b := range inOrder {
			order, ok := release.Compare(a, b)
			if want := min(1, max(-1, i-j)); !ok || order != want {
				t.Errorf("%s and %s: %d, %v", a, b, order, ok)
			}
		}
	}
	if order, ok := release.Compare("v1.0.0+a", "1.0.0+b"); !ok || order != 0 {
		t.Error("what was built counts")
	}
	for _, bad := range []string{"", "devel", "v1", "v1.2", "v1.2.3.4", "v01.2.3", "v1.2.x", "v1.2.3-", "v1.2.3-a..b", "v1.2.-3", "v1.2.3-a/b", "v99999999999999999999.0.0"} {
		if _, ok := release.Compare(bad, "v1.0.0"); ok {
			t.Errorf("%q is a version", bad)
		}
	}
}

// A program without the address or the key of releases has no source, and an address must be safe.
func TestNewSource(t *testing.T) {
	for address, want := range map[string]string{"": "built without", " ": "built without", "http://example.com/r": "none of https", "ftp://a/b": "none of https", "https://me:secret@example.com/r": "none of https", "nonsense": "none of https"} {
		if _, err := release.NewSource(address, "key"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := release.NewSource("https://example.com/r", ""); err == nil {
		t.Error("a source without a key")
	}
	s, err := release.NewSource("https://example.com/r/ .example.net", "key")
	if err != nil || s.String() != "https://example.com/r" {
		t.Error(s, err)
	}
}

func newSource(t *testing.T, s *releasetest.Server) *release.Source {
	t.Helper()
	s.ExpectAgent("raddle")
	source, err := release.NewSource(s.Address, s.Key)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// fetchNewest is what raddle update does.
func fetchNewest(source *release.Source) (string, []byte, error) {
	m, err := source.FindNewest(context.Background())
	if err != nil {
		return "", nil, err
	}
	program, err := source.FetchProgram(context.Background(), m)
	return m.Version, program, err
}

// The newest release is found, and its program is what was published, also if a newer one appears in between.
func TestFetch(t *testing.T) {
	s := releasetest.Start(t)
	source := newSource(t, s)
	s.Publish(t, "v1.2.0", []byte("first"))
	m, err := source.FindNewest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s.Publish(t, "v1.3.0-rc.1", []byte("second"))
	if program, err := source.FetchProgram(context.Background(), m); err != nil || string(program) != "first" {
		t.Errorf("%q, %v", program, err)
	}
	if version, program, err := fetchNewest(source); err != nil || version != "v1.3.0-rc.1" || string(program) != "second" {
		t.Errorf("%s, %q, %v", version, program, err)
	}
	if m, err := source.Find(context.Background(), "v1.2.0"); err != nil || m.Version != "v1.2.0" {
		t.Error(m, err)
	}
}

// Whatever is not what the owner of the key has signed is refused, and whatever does not come whole.
func TestFetchRefuses(t *testing.T) {
	archive := release.NameArchive("v1.2.0", runtime.GOOS, runtime.GOARCH)
	answer := func(part string, do func(w http.ResponseWriter, content []byte)) func(*testing.T, *releasetest.Server) {
		return func(_ *testing.T, s *releasetest.Server) {
			s.AnswerInstead(func(w http.ResponseWriter, path string, content []byte) bool {
				if strings.HasSuffix(path, part) {
					do(w, content)
				}
				return strings.HasSuffix(path, part)
			})
		}
	}
	change := func(part string, do func([]byte) []byte) func(*testing.T, *releasetest.Server) {
		return answer(part, func(w http.ResponseWriter, content []byte) { _, _ = w.Write(do(bytes.Clone(content))) })
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	cut := func(w http.ResponseWriter, content []byte) { // the connection ends in the middle
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content[:len(content)/2])
	}
	cases := []struct {
		name   string
		change func(*testing.T, *releasetest.Server)
		want   string
	}{
		{"no release", answer("", func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusNotFound) }), "404"},
		{"a changed archive", change(archive, flip), "is not the file of release v1.2.0"},
		{"a cut archive", answer(archive, cut), "unexpected EOF"},
		{"a cut list", answer("checksums.txt", cut), "unexpected EOF"},
		{"a changed list", change("checksums.txt", flip), "cannot be trusted"},
		{"a shorter list", change("checksums.txt", func(b []byte) []byte { return b[:bytes.IndexByte(b, '\n')+1] }), "cannot be trusted"},
		{"an empty list", change("checksums.txt", func([]byte) []byte { return nil }), "cannot be trusted"},
		{"no signature", change("checksums.txt.sig", func([]byte) []byte { return nil }), "cannot be trusted"},
		{"a page in place of the signature", change("checksums.txt.sig", func([]byte) []byte { return []byte("<html>Log in</html>") }), "not base64"},
		{"another key", func(t *testing.T, s *releasetest.Server) {
			list := s.Get("latest/download/checksums.txt")
			s.Put("latest/download/checksums.txt.sig", releasetest.Start(t).Sign(t, list))
		}, "by the key of the releases"},
		{"a signed list of something else", func(t *testing.T, s *releasetest.Server) {
			s.PublishFiles(t, "v1.3.0", map[string][]byte{"other_1.0.0_linux_amd64.tar.gz": []byte("other")})
		}, "no archive of raddle"},
		{"a signed list of two versions", func(t *testing.T, s *releasetest.Server) {
			s.PublishFiles(t, "v1.3.0", map[string][]byte{"raddle_1.0.0_linux_amd64.tar.gz": nil, "raddle_1.1.0_linux_amd64.tar.gz": nil})
		}, "a second one"},
		{"an archive without a program", func(t *testing.T, s *releasetest.Server) {
			s.PublishFiles(t, "v1.3.0", map[string][]byte{"raddle_1.3.0_linux_amd64.tar.gz": []byte("no archive"), release.NameArchive("v1.3.0", runtime.GOOS, runtime.GOARCH): []byte("no archive")})
		}, "cannot be trusted"},
		{"another host", answer(archive, func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Location", "https://192.0.2.1/raddle")
			w.WriteHeader(http.StatusFound)
		}), "was not built to ask"},
		{"a host without https", answer(archive, func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Location", "http://files.example.net/raddle")
			w.WriteHeader(http.StatusFound)
		}), "was not built to ask"},
		{"a ring", answer(archive, func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Location", "./"+archive)
			w.WriteHeader(http.StatusFound)
		}), "redirected too often"},
		{"a release without this platform", func(t *testing.T, s *releasetest.Server) {
			s.PublishFiles(t, "v1.3.0", map[string][]byte{"raddle_1.3.0_linux_amd64.tar.gz": nil, "raddle_1.3.0_plan9_amd64.tar.gz": nil})
		}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := releasetest.Start(t)
			s.Publish(t, "v1.2.0", []byte("program"))
			s.Address += " files.example.net"
			c.change(t, s)
			_, program, err := fetchNewest(newSource(t, s))
			if err == nil || !strings.Contains(err.Error(), c.want) || program != nil {
				t.Errorf("%q, %v", program, err)
			}
		})
	}
}

// A server may send a download to the hosts that the address names, and to no others.
func TestRedirect(t *testing.T) {
	s := releasetest.Start(t)
	files := releasetest.Start(t)
	s.Publish(t, "v1.2.0", []byte("program"))
	archive := "download/v1.2.0/" + release.NameArchive("v1.2.0", runtime.GOOS, runtime.GOARCH)
	files.Put(archive, s.Get(archive))
	s.AnswerInstead(func(w http.ResponseWriter, path string, _ []byte) bool {
		if path == archive {
			w.Header().Set("Location", files.Address+"/"+path)
			w.WriteHeader(http.StatusFound)
		}
		return path == archive
	})
	if _, _, err := fetchNewest(newSource(t, s)); err == nil || !strings.Contains(err.Error(), "was not built to ask") || len(files.TakeRequests()) > 0 {
		t.Errorf("another host was asked: %v", err)
	}
	s.Address += " " + strings.Split(files.Address, "/")[2]
	if _, program, err := fetchNewest(newSource(t, s)); err != nil || string(program) != "program" {
		t.Errorf("%q, %v", program, err)
	}
}

// A context that ends stops a download.
func TestFetchEnds(t *testing.T) {
	s := releasetest.Start(t)
	s.Publish(t, "v1.2.0", []byte("program"))
	ctx, cancel := context.WithCancel(context.Background())
	s.AnswerInstead(func(_ http.ResponseWriter, _ string, _ []byte) bool { cancel(); return false })
	if _, err := newSource(t, s).FindNewest(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestVerifySignature(t *testing.T) {
	s := releasetest.Start(t)
	text := []byte("text")
	if err := release.VerifySignature(s.Key, text, s.Sign(t, text)); err != nil {
		t.Error(err)
	}
	rsa := "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBALz5FQoLZ0vOH0M1z2lfPhmzFeNkxSPVsIVEwSzVKe9jGBpVmHAzmIz7HJ5zaVrVtLPzKsdmjQ0N8yR2r0f6hW0CAwEAAQ=="
	for key, want := range map[string]string{"?": "not base64", base64.StdEncoding.EncodeToString([]byte("key")): "cannot be read", rsa: "P-256"} {
		if err := release.VerifySignature(key, text, s.Sign(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// How a program was installed is known from its place and from the mark of the package, and never by running something.
func TestFindOrigin(t *testing.T) {
	old := release.Version
	t.Cleanup(func() { release.Version = old })
	release.Version = "v1.2.0"
	cases := []struct{ program, mark, text, kind, command string }{
		{program: "home/.local/bin/raddle", kind: release.KindArchive},
		{program: "usr/bin/raddle", mark: "usr/lib/raddle/installed-by", text: "deb\nsudo apt-get install ./raddle.deb\n", kind: "deb", command: "sudo apt-get install ./raddle.deb"},
		{program: "npm/node_modules/raddle-linux-x64/bin/raddle", mark: "npm/node_modules/raddle-linux-x64/lib/raddle/installed-by", text: "npm\nnpm install --global raddle@latest", kind: "npm", command: "npm install --global raddle@latest"},
		{program: "pnpm/a/bin/raddle", mark: "pnpm/a/lib/raddle/installed-by", text: "npm\nnpm install --global raddle@latest", kind: "npm", command: "pnpm add --global raddle@latest"},
		{program: "venv/bin/raddle", mark: "venv/lib/raddle/installed-by", text: "pip\npip install --upgrade raddle\n", kind: "pip", command: "pip install --upgrade raddle"},
		{program: "pipx/venvs/raddle/bin/raddle", mark: "pipx/venvs/raddle/lib/raddle/installed-by", text: "pip\npip install --upgrade raddle\n", kind: "pip", command: "pipx upgrade raddle"},
		{program: "uv/tools/raddle/bin/raddle", mark: "uv/tools/raddle/lib/raddle/installed-by", text: "pip\r\npip install --upgrade raddle\r\n", kind: "pip", command: "uv tool upgrade raddle"},
		{program: "opt/homebrew/Cellar/raddle/1.2.0/libexec/lib/node_modules/raddle/bin/raddle", mark: "opt/homebrew/Cellar/raddle/1.2.0/libexec/lib/node_modules/raddle/lib/raddle/installed-by", text: "npm\nnpm install", kind: "homebrew", command: "brew upgrade raddle"},
		{program: "Users/a/scoop/apps/raddle/current/raddle.exe", kind: "scoop", command: "scoop update raddle"},
		{program: "own/raddle/1.2.0/raddle_1.2.0_windows_amd64/raddle.exe", mark: "own/raddle/1.2.0/lib/raddle/installed-by", text: "scoop\nscoop update raddle", kind: "scoop", command: "scoop update raddle"},
		{program: "e/bin/raddle", mark: "e/lib/raddle/installed-by", text: "\n\n", kind: release.KindArchive},
		{program: "f/bin/raddle", mark: "f/lib/raddle/installed-by", text: strings.Repeat("x", 5000), kind: release.KindArchive},
	}
	for _, c := range cases {
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		program := writeFile(t, filepath.Join(root, c.program), "program", 0o755)
		if c.mark != "" {
			writeFile(t, filepath.Join(root, c.mark), c.text, 0o644)
		}
		link := filepath.Join(root, "link")
		if err := os.Symlink(program, link); err != nil {
			link = program // Windows may not let us
		}
		o, err := release.FindOrigin(link)
		if err != nil || o.Kind != c.kind || o.Command != c.command || o.Program != program {
			t.Errorf("%s: %+v, %v", c.program, o, err)
		}
	}
	release.Version = ""
	o, err := release.FindOrigin(writeFile(t, filepath.Join(t.TempDir(), "raddle"), "program", 0o755))
	if err != nil || o.Kind != release.KindSource || !strings.Contains(o.Command, "go install") {
		t.Errorf("%+v, %v", o, err)
	}
}

// A program is replaced whole, with its permissions, or not at all; nothing is left next to it.
func TestReplacement(t *testing.T) {
	dir := t.TempDir()
	program := writeFile(t, filepath.Join(dir, "raddle"), "old", 0o750)
	open, err := os.Open(program) // as a running process has it
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	r, err := release.PrepareReplacement(program)
	if err != nil {
		t.Fatal(err)
	}
	r.Discard()
	if text := readDir(t, dir); text != "raddle=old -rwxr-x---\n" {
		t.Error(text)
	}
	if r, err = release.PrepareReplacement(program); err != nil {
		t.Fatal(err)
	}
	if err := r.Commit([]byte("new")); err != nil {
		t.Fatal(err)
	}
	r.Discard()
	if text := readDir(t, dir); text != "raddle=new -rwxr-x---\n" {
		t.Error(text)
	}
	before := make([]byte, 3)
	if _, err := open.ReadAt(before, 0); err != nil || string(before) != "old" {
		t.Errorf("the running program has %q, %v", before, err)
	}
	if _, err := release.PrepareReplacement(dir); err == nil {
		t.Error("a directory was taken for a program")
	}
	if _, err := release.PrepareReplacement(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func readDir(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s=%s %s\n", e.Name(), text, info.Mode())
	}
	return out.String()
}
