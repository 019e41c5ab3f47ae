package rag_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"raddle.dev/rag"
	"raddle.dev/rag/load"
)

// writeHandbook writes two documents into a directory, which the caller must remove.
func writeHandbook() (dir string) {
	dir, err := os.MkdirTemp("", "handbook")
	if err != nil {
		log.Fatal(err)
	}
	for name, text := range map[string]string{
		"leave.md": "## Notice\n\nThe notice period is four weeks.\n",
		"pay.md":   "## Pay\n\nSalaries are paid on the last day of the month.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	return dir
}

// A base is built from a folder, and asked. With a model in place of Keyword, and
// an Embedder, the same search goes by meaning, too.
func ExampleOpen() {
	dir := writeHandbook()
	defer os.RemoveAll(dir)

	ctx := context.Background()
	base, err := rag.Open(filepath.Join(dir, "base.db"), rag.Options{Model: rag.Keyword, ChunkSize: 1000, Load: load.Options{Dir: dir}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer base.Close()
	report, err := base.Build(ctx, []string{"*.md"}, nil)
	fmt.Println(report.Documents, report.Chunks, err)
	hits, err := base.Search(ctx, "How long is the notice period?", rag.SearchOptions{TopK: 1})
	for _, h := range hits {
		fmt.Println(filepath.Base(h.Path))
	}
	fmt.Println(len(hits), err)
	// Output:
	// 2 2 <nil>
	// leave.md
	// 1 <nil>
}

// What a search finds becomes a part of a prompt.
func ExampleFormatContext() {
	hits := []rag.Hit{
		{Path: "leave.md", Text: "The notice period is four weeks."},
		{Path: "pay.md", Text: "Salaries are paid on the last day of the month."},
		{Path: "leave.md", Chunk: 1, Text: "Holidays are 30 days."},
	}
	fmt.Println(rag.FormatContext(hits))
	fmt.Println("Sources:", rag.SourcePaths(hits))
	// Output:
	// [Source: leave.md]
	// The notice period is four weeks.
	//
	// [Source: pay.md]
	// Salaries are paid on the last day of the month.
	//
	// [Source: leave.md]
	// Holidays are 30 days.
	// Sources: [leave.md pay.md]
}

// A refresh reads only what has changed. The progress names each document.
func ExampleBase_Refresh() {
	dir := writeHandbook()
	defer os.RemoveAll(dir)
	ctx := context.Background()
	base, err := rag.Open(filepath.Join(dir, "base.db"), rag.Options{Load: load.Options{Dir: dir}})
	if err != nil {
		log.Fatal(err)
	}
	defer base.Close()
	if _, err := base.Build(ctx, []string{"*.md"}, nil); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pay.md"), []byte("Salaries are paid on the 25th.\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	report, err := base.Refresh(ctx, func(p rag.Progress) {
		fmt.Printf("%d of %d: %s, new chunks: %d\n", p.Done, p.Total, filepath.Base(p.Path), p.Chunks)
	})
	fmt.Println("changed:", report.Changed, "new:", report.Added, "removed:", report.Removed, err)
	// Output:
	// 1 of 2: leave.md, new chunks: 0
	// 2 of 2: pay.md, new chunks: 1
	// changed: true new: 1 removed: 1 <nil>
}

// letterModel is an Embedder: it counts the letters a and e. A real one sends the texts to a model.
type letterModel struct{}

func (letterModel) Embed(_ context.Context, _ rag.Purpose, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = []float32{float32(strings.Count(text, "a")), float32(strings.Count(text, "e"))}
	}
	return vectors, nil
}

// With an Embedder a search compares vectors, too: a text is found that has no word of the question.
func ExampleEmbedder() {
	dir := writeHandbook()
	defer os.RemoveAll(dir)
	ctx := context.Background()
	base, err := rag.Open(filepath.Join(dir, "base.db"), rag.Options{
		Model:    "letters",
		Embedder: func(string) (rag.Embedder, error) { return letterModel{}, nil },
		Load:     load.Options{Dir: dir},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer base.Close()
	report, err := base.Build(ctx, []string{"*.md"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	hits, err := base.Search(ctx, "banana", rag.SearchOptions{TopK: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Embedded, "texts embedded; the nearest is", filepath.Base(hits[0].Path))
	// Output:
	// 2 texts embedded; the nearest is pay.md
}
