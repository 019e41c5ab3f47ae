package flow

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/rag"
)

// What a node leaves out is asked for after the yes, and kept: a later run opens
// the base as it was built.
func TestWhatIsLeftOutIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	writeCaseFile(t, dir, "graph.yaml", "name: g\nstart: kb\nnodes:\n  kb: {type: rag, documents: [d.md], state_updates: {c: \"{{output.context}}\"}, next: e}\n  e: {type: end}\n")
	writeCaseFile(t, dir, "d.md", "The zebra grazes.\n")
	var asked []string
	r := Retrieval{
		Confirm: func(q string) (bool, error) { asked = append(asked, q); return true, nil },
		Ask: func(q, usual string) (string, error) {
			asked = append(asked, q+usual)
			if strings.HasPrefix(q, "Chunk size") {
				return "400", nil
			}
			return usual, nil
		},
	}
	for range 2 {
		a, err := Load(dir, Host{Retrieval: r})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		hits, err := a.bases["kb"].Search(context.Background(), "zebra", rag.SearchOptions{})
		if err != nil || len(hits) != 1 {
			t.Errorf("%v, %v", hits, err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"Initialize RAG knowledge base for rag node 'kb'?", "Embedding model, as CLIENT:MODEL, or keyword to search by words alone:keyword",
		"Chunk size, in bytes:1000", "Chunk overlap, in bytes:20"}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	text, err := os.ReadFile(filepath.Join(dir, "kb.yaml"))
	if err != nil || !strings.Contains(string(text), "chunk_size: 400\n") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestHostSettingsSpecifyHowToBuild builds a base without anyone to ask from what the node and the host's settings say together.
func TestHostSettingsSpecifyHowToBuild(t *testing.T) {
	size, overlap := 300, 10
	for _, c := range []struct {
		fields string
		host   Retrieval
		built  bool
	}{
		{"chunk_size: 200, chunk_overlap: 0", Retrieval{Model: rag.Keyword}, true},
		{"embedding_model: keyword", Retrieval{ChunkSize: &size, ChunkOverlap: &overlap}, true},
		{"chunk_size: 200", Retrieval{Model: rag.Keyword, ChunkOverlap: &overlap}, true},
		{"chunk_size: 200, chunk_overlap: 0", Retrieval{}, false},
		{"embedding_model: keyword, chunk_size: 200", Retrieval{ChunkSize: &size}, false},
	} {
		dir := t.TempDir()
		writeCaseFile(t, dir, "graph.yaml", "name: g\nstart: kb\nnodes:\n  kb: {type: rag, documents: [d.md], "+c.fields+", next: e}\n  e: {type: end}\n")
		writeCaseFile(t, dir, "d.md", "The zebra grazes.\n")
		_, _, err := prepared(t, dir, Host{Retrieval: c.host})
		if c.built != (err == nil) || err != nil && !strings.Contains(err.Error(), "does not fully specify") {
			t.Errorf("%s with %+v: %v", c.fields, c.host, err)
		}
	}
}
