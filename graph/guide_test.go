package graph_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A guide may name examples of these packages: those of graph by their names,
// those of the others as in draw.ExampleWriteMermaid.
var guideExamples = map[string]string{"": ".", "graphtest": "graphtest", "draw": "../draw", "agent": "../agent", "shape": "../agent/shape", "team": "../team", "rag": "../rag", "sqlite": "../store/sqlite"}

// namedExample finds the examples in a guide's text.
var namedExample = regexp.MustCompile("`(?:([a-z]+)[.])?(Example[A-Za-z0-9_]*)`")

func TestTheGuideNamesExamplesThatExist(t *testing.T) {
	text, err := os.ReadFile("../docs/guide/coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for pkg, dir := range guideExamples {
		for _, name := range examples(t, dir) {
			known[pkg+"."+name] = true
		}
	}
	named := map[string]bool{}
	for _, m := range namedExample.FindAllStringSubmatch(string(text), -1) {
		name := m[1] + "." + m[2]
		if named[name] = true; !known[name] {
			t.Errorf("the guide names %s, which no test file has", strings.TrimPrefix(name, "."))
		}
	}
	if len(named) == 0 {
		t.Error("the guide names no example")
	}
	for _, f := range []string{"example_from_test.go", "example_from_run_test.go", "example_from_key_test.go"} {
		for _, name := range examplesOf(t, f) {
			if !named["."+name] {
				t.Errorf("%s is an example for the guide, which does not name it", name)
			}
		}
	}
}

// The tables of the guide have an example, or a reason, in every row.
func TestTheGuideLeavesNoCellEmpty(t *testing.T) {
	text, err := os.ReadFile("../docs/guide/coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("line %d has an empty cell: %s", i+1, line)
			}
		}
	}
}

// examples lists the examples of the test files in a directory that the
// compiler checks: those with an output are run.
func examples(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no test files: %v", dir, err)
	}
	for _, f := range files {
		names = append(names, examplesOf(t, f)...)
	}
	return names
}

func examplesOf(t *testing.T, file string) (names []string) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Example") {
			names = append(names, f.Name.Name)
		}
	}
	return names
}
