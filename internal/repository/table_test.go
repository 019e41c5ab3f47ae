package repository_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// packageTable is the first row of the package table of ARCHITECTURE.md.
const packageTable = "| package | what it is for |"

func TestPackageTable(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatalf("%v: write it, with a table that begins %q", err, packageTable)
	}
	_, table, ok := strings.Cut(string(text), packageTable+"\n")
	if !ok {
		t.Fatalf("ARCHITECTURE.md has no table that begins %q: add it, with a row for each package", packageTable)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 4 {
			break
		}
		name := strings.Trim(strings.TrimSpace(cells[1]), "`")
		if strings.Trim(name, "-: ") == "" {
			continue // the row of dashes under the header
		}
		if strings.TrimSpace(cells[2]) == "" {
			t.Errorf("ARCHITECTURE.md does not say what package %s is for", name)
		}
		if listed[name] {
			t.Errorf("ARCHITECTURE.md lists package %s twice", name)
		}
		listed[name] = true
	}
	for _, p := range packages(t) {
		if !listed[p.name] {
			t.Errorf("package %s is missing from the package table of ARCHITECTURE.md: add its row", p.name)
		}
		delete(listed, p.name)
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		t.Errorf("ARCHITECTURE.md lists package %s, which does not exist: delete its row", name)
	}
}
