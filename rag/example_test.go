package rag_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"raddle.dev/rag"
	"raddle.dev/rag/load"
)

// A base is built from a folder, and asked. With a model in place of Keyword, and
// an Embedder, the same search goes by meaning, too.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "handbook")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"leave.md": "## Notice\n\nThe notice period is four weeks.\n",
		"pay.md":   "## Pay\n\nSalaries are paid on the last day of the month.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			fmt.Println(err)
			return
		}
	}

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
