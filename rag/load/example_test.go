package load_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"raddle.dev/rag/load"
)

// A list has the documents of all sources and the problems of single ones. The text of a page is Markdown.
func ExampleList() {
	dir, err := os.MkdirTemp("", "documents")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"page.html":  "<title>Notice</title><p>The notice period is <b>four</b> weeks.</p>",
		"prices.csv": "article,price\nbolt,0.20\nnut,0.10\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}

	ctx := context.Background()
	entries, problems, err := load.List(ctx, []string{"*.{html,csv}", "missing/"}, load.Options{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		file, err := e.Read(ctx)
		if err != nil {
			log.Fatal(err)
		}
		doc, err := file.Text(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s:\n%s\n", filepath.Base(e.Path), strings.TrimSpace(doc.Text))
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	// Output:
	// page.html:
	// # Notice
	//
	// The notice period is **four** weeks.
	// prices.csv:
	// article: bolt
	// price: 0.20
	//
	// article: nut
	// price: 0.10
	// missing/: no documents found here
}
