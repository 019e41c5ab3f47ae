package rag

import (
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/rag/load"
)

// TestRecall asks the labelled questions of the book among as much text without sense, and holds both rankings together to what each
// finds alone.
func TestRecall(t *testing.T) {
	dir := t.TempDir()
	book := opticks(t)
	testfile.WriteFiles(t, dir, map[string]string{"docs/opticks.txt": book, "docs/babble.txt": babble(book, len(book), 7)})
	b := openBase(t, filepath.Join(dir, "kb.db"), Options{Model: "test:trigrams", ChunkSize: 600, Load: load.Options{Dir: dir},
		Embedder: func(string) (Embedder, error) { return trigrams{dims: 512}, nil }})
	build(t, b, "docs")
	hybrid, near, words := recall(t, b, questions(t), 5)
	t.Logf("of the questions find their passage among the first five: both %.2f, vectors %.2f, words %.2f", hybrid, near, words)
	if hybrid < max(near, words) || hybrid < 0.75 {
		t.Errorf("both rankings find %.2f, vectors alone %.2f, words alone %.2f", hybrid, near, words)
	}
}

func TestQuestionsHaveAnswers(t *testing.T) {
	book := strings.Join(strings.Fields(opticks(t)), " ")
	for _, q := range questions(t) {
		if !strings.Contains(book, q.answer) {
			t.Errorf("%q: the book does not hold %q", q.text, q.answer)
		}
	}
}
