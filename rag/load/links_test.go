//go:build unix

package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
)

// A link that leads out of the agent's directory, or of a folder with an absolute path, is left out in every way to name it.
func TestLinksThatLeadOut(t *testing.T) {
	outside := t.TempDir()
	testfile.WriteFiles(t, outside, map[string]string{"secret.md": "secret"})
	for _, way := range testfile.WaysOut() {
		t.Run(way.Name, func(t *testing.T) {
			dir := t.TempDir()
			testfile.WriteFiles(t, dir, map[string]string{"docs/good.md": "good", "docs/sub/more.md": "more"})
			way.Put(t, dir, "docs/a.md", filepath.Join(outside, "secret.md"))
			if err := os.Symlink("sub/more.md", filepath.Join(dir, "docs", "own.md")); err != nil {
				t.Fatal(err)
			}
			for _, source := range []string{"docs", ".", "docs/a.md", "docs/*.md", "**/*.md", "up:docs/a.md", filepath.Join(dir, "docs"), filepath.Join(dir, "docs", "*.md")} {
				texts, problems := read(t, Options{Dir: dir, Loaders: map[string]string{"up": "cat $1"}, Env: os.Environ()}, source)
				said := false
				for name, text := range texts {
					if strings.Contains(text, "secret") {
						t.Errorf("%s: %s is read", source, name)
					}
				}
				for _, problem := range problems {
					said = said || strings.Contains(problem, "leads out of "+dir) && strings.Contains(problem, "absolute path")
				}
				if !said {
					t.Errorf("%s: nothing says why the link is left out: %v", source, problems)
				}
				if source == "docs" && cmp.Diff(map[string]string{"docs/good.md": "good", "docs/sub/more.md": "more", "docs/own.md": "more"}, texts) != "" {
					t.Errorf("read %v", texts)
				}
			}
		})
	}
	// An absolute path is the decision of the person who writes it, whatever it leads to.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{link, filepath.Join(link, "secret.md"), filepath.Join(link, "*.md")} {
		if texts, problems := read(t, Options{Dir: t.TempDir()}, source); len(texts) != 1 || len(problems) > 0 {
			t.Errorf("%s: read %v, problems %v", source, texts, problems)
		}
	}
}

// A document that is replaced by something else after it was found is a problem, and nothing waits for it.
func TestDocumentsThatAreNoFilesWhenTheyAreRead(t *testing.T) {
	for _, trap := range testfile.Traps() {
		t.Run(trap.Name, func(t *testing.T) {
			dir := t.TempDir()
			testfile.WriteFiles(t, dir, map[string]string{"a.md": "text"})
			entries, problems, err := List(t.Context(), []string{"a.md"}, Options{Dir: dir})
			if err != nil || len(entries) != 1 || len(problems) > 0 {
				t.Fatalf("%d entries, %v, %v", len(entries), problems, err)
			}
			if err := os.Remove(filepath.Join(dir, "a.md")); err != nil {
				t.Fatal(err)
			}
			trap.Put(t, filepath.Join(dir, "a.md"))
			if _, err := entries[0].Read(t.Context()); err == nil {
				t.Error("it is read")
			}
			if entries, problems, err := List(t.Context(), []string{"a.md", "."}, Options{Dir: dir}); err != nil || len(problems) == 0 && len(entries) == 0 {
				t.Errorf("%d entries, %v, %v", len(entries), problems, err)
			}
		})
	}
}
