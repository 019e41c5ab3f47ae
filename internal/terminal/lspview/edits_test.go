package lspview_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"raddle.dev/internal/testkit/testneed"
)

// pieces are what the random edits of TestRandomEdits write, in addition to pieces of the texts themselves.
var pieces = []string{"", "", "\n", "\r\n", "\r", "  ", "- ", ": ", "{{", "}}", "{{outline}}", "\"", "'", "|\n", "🎉", "日本", "e\u0301", "\u2028", "\u0085", "#", "[", "]", "{", "}", "&a ", "*a", "!!int ", "next: x", "\t", "---\n", "\ufeff", "nodes:\n"}

// examples returns the files of the examples that the server reads, by their paths in the directory.
func examples(t testing.TB) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := filepath.Join("..", "..", "..", "examples")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || !slices.Contains([]string{".yaml", ".sh", ".py"}, filepath.Ext(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		files[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil || len(files) < 20 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	return files
}

// requests are what the editor asks between edits.
var requests = []string{"textDocument/completion", "textDocument/hover", "textDocument/definition", "textDocument/references", "textDocument/documentSymbol", "textDocument/prepareRename", "textDocument/rename", "textDocument/formatting"}

// TestRandomEdits edits the examples at random, asks at random places, and compares the text of the server with its own:
// 400 edits, in make soak 10,000.
func TestRandomEdits(t *testing.T) {
	edits := 400
	if testneed.Soaks() {
		edits = 10_000
	}
	for seed := range 2 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { editAtRandom(t, uint64(seed), edits/2) })
	}
}

func editAtRandom(t *testing.T, seed uint64, edits int) {
	random := rand.New(rand.NewPCG(seed, 1))
	files := examples(t)
	c := start(t, files)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for n := range edits {
		name := names[random.IntN(len(names))]
		uri := c.uri(name)
		if c.docs[uri] == nil {
			c.open(name, files[name])
		}
		d := c.docs[uri]
		from := d.boundary(random.IntN(len(d.text) + 1))
		to := d.boundary(min(len(d.text), from+random.IntN(6)*random.IntN(6)))
		with := pieces[random.IntN(len(pieces))]
		if random.IntN(4) == 0 {
			at := d.boundary(random.IntN(len(d.text) + 1))
			with = string(utf16.Decode(d.text[at:d.boundary(min(len(d.text), at+random.IntN(40)))]))
		}
		c.change(uri, from, to, with)
		place := map[string]any{"textDocument": map[string]any{"uri": uri}, "position": d.position(random.IntN(len(d.text) + 1)), "newName": "renamed", "context": map[string]any{}, "options": map[string]any{}}
		m := c.request(requests[n%len(requests)], place)
		if m.Error != nil && (m.Error.Code != -32803 || strings.Contains(m.Error.Message, "please report this")) {
			t.Fatalf("edit %d of %s: %s", n, name, compact(m))
		}
		if text := c.server.TextOf(uri); text != d.String() {
			t.Fatalf("edit %d of %s: the server has another text:\n%q\n%q", n, name, text, d)
		}
		if random.IntN(10) == 0 || len(d.text) > 40_000 {
			c.close(uri)
		}
	}
}

// boundary returns the index of the character that an index is in. No position lies within an end of a line.
func (d *clientDocument) boundary(at int) int {
	if at > 0 && at < len(d.text) && (d.text[at] >= 0xdc00 && d.text[at] < 0xe000 || d.text[at-1] == '\r' && d.text[at] == '\n') {
		return at - 1
	}
	return at
}
