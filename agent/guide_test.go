package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every line of Go in the guide is a line of an example that runs.
func TestGuideShowsExamplesOnly(t *testing.T) {
	compiled := map[string]bool{}
	for _, dir := range []string{".", "shape", "../team"} {
		files, err := filepath.Glob(filepath.Join(dir, "example*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				compiled[strings.TrimSpace(line)] = true
			}
		}
	}
	guide, err := os.ReadFile("../docs/guide/agents-in-go.md")
	if err != nil {
		t.Fatal(err)
	}
	snippets := strings.Split(string(guide), "```go\n")[1:]
	if len(snippets) < 10 {
		t.Fatalf("the guide has %d snippets", len(snippets))
	}
	for _, snippet := range snippets {
		snippet, _, _ = strings.Cut(snippet, "```")
		for line := range strings.Lines(snippet) {
			if line = strings.TrimSpace(line); !compiled[line] && !slices.Contains([]string{"", "}"}, line) {
				t.Errorf("no example has the line %q", line)
			}
		}
	}
}
