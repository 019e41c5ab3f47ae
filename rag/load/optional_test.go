package load

import (
	"os"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
)

// TestOptionalPDFToText reads a PDF with the loader that the guide names.
func TestOptionalPDFToText(t *testing.T) {
	testneed.RequirePrograms(t, "pdftotext")
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"a.pdf": string(makePDF("The first page.", "The second page."))})
	texts, problems := read(t, Options{Dir: dir, Env: os.Environ(), Loaders: map[string]string{"pdf": "pdftotext $1 -"}}, ".")
	if got := strings.Join(strings.Fields(texts["a.pdf"]), " "); got != "The first page. The second page." || len(problems) > 0 {
		t.Errorf("text %q, problems %v", got, problems)
	}
}

// TestOptionalPandoc reads a format that raddle does not know, with a loader that writes to $2.
func TestOptionalPandoc(t *testing.T) {
	testneed.RequirePrograms(t, "pandoc")
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"a.rst": "Title\n=====\n\nA *slanted* word.\n"})
	texts, problems := read(t, Options{Dir: dir, Env: os.Environ(), Loaders: map[string]string{"rst": "pandoc -f rst -t plain -o $2 $1"}}, ".")
	if got := strings.Join(strings.Fields(texts["a.rst"]), " "); !strings.Contains(got, "Title") || !strings.Contains(got, "slanted") || strings.Contains(got, "=") || len(problems) > 0 {
		t.Errorf("text %q, problems %v", got, problems)
	}
}
