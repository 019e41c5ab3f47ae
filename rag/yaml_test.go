package rag

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
)

const lokiBase = `
embedding_model: fake:embed
chunk_size: 100
chunk_overlap: 0
reranker_model: null
top_k: 1
batch_size: null
next_file_id: 2
document_paths:
- /corpus
files:
  0:
    hash: h0
    path: /corpus/one.md
    documents:
    - page_content: apples and pears
      metadata: {page: 3}
    - page_content: oranges
      metadata: {}
  1:
    hash: h1
    path: /corpus/two.md
    documents:
    - page_content: bananas
      metadata: {}
vectors:
  0-0: AACAPwAAAAAAAAAA
  0-1: AAAAAAAAgD8AAAAA
  1-0: AAAAAAAAAAAAAIA/
`

func TestYAMLBase(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"kb.yaml": lokiBase})
	opened := ""
	b := openBase(t, filepath.Join(dir, "kb.yaml"), Options{Embedder: func(model string) (Embedder, error) {
		opened = model
		return fixed{{0.9, 0.1, 0}}, nil
	}})
	hits, err := b.Search(t.Context(), "find me", SearchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Hit{{Path: "/corpus/one.md", Text: "apples and pears", Score: DefaultWeights.Meaning / (DefaultWeights.Meaning + DefaultWeights.Words), Metadata: map[string]string{"page": "3"}}}
	if diff := cmp.Diff(want, hits); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
	if opened != "fake:embed" {
		t.Errorf("model %q was opened", opened)
	}
	if hits, err = b.Search(t.Context(), "banana", SearchOptions{TopK: 3}); err != nil || len(hits) != 3 || hits[0].Path != "/corpus/one.md" {
		t.Errorf("hits %v, %v", hits, err)
	}
	if _, err := b.Build(t.Context(), []string{"."}, nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("build: %v", err)
	}
}

func TestYAMLMistakes(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"  0-1:", "  7-1:", "Invalid key '7-1'"},
		{"  0-1:", "  0-2:", "Invalid key '0-2'"},
		{"  0-1:", "  x:", "Invalid key 'x'"},
		{"AAAAAAAAgD8AAAAA", "AAAAAAAAgD8=", "Invalid vector at '0-1'"},
		{"AAAAAAAAgD8AAAAA", "'?'", "Invalid vector at '0-1'"},
		{"top_k: 1", "top_k: 0", "top_k is 0"},
		{"chunk_overlap: 0", "chunk_overlap: 100", "chunk_overlap is 100"},
		{"chunk_size: 100", "chunk_size: -1", "chunk_size is -1"},
		{"next_file_id: 2", "driver: duckdb", "the driver duckdb"},
		{"files:", "files: [", "this is not a knowledge base"},
	} {
		dir := t.TempDir()
		testfile.WriteFiles(t, dir, map[string]string{"kb.yaml": strings.Replace(lokiBase, c.old, c.new, 1)})
		b, err := Open(filepath.Join(dir, "kb.yaml"), Options{})
		if err == nil {
			b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.new, err, c.want)
		}
	}
}
