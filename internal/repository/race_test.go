package repository_test

import (
	"go/ast"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestRaceList compares the packages that the Makefile tests without the race detector with those that have nothing to detect: neither their
// code nor their tests start goroutines or share anything between them. A new package is tested with the detector until it is in the list.
func TestRaceList(t *testing.T) {
	listed, err := makeVariable("UNRACED")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(listed) {
		t.Error("UNRACED in the Makefile is not in order: sort it, and each package is found at once")
	}
	left := slices.Clone(listed)
	for _, p := range everything(t) {
		if len(p.code()) == len(p.files) {
			continue // no tests
		}
		name := "./" + p.name
		place := concurrencyIn(p)
		switch {
		case place != "" && slices.Contains(listed, name):
			t.Errorf("the Makefile tests %s without the race detector, but %s: delete it from UNRACED", name, place)
		case place == "" && !slices.Contains(listed, name):
			t.Errorf("%s starts no goroutines and shares nothing: add it to UNRACED in the Makefile, because the race detector makes its tests many times slower and finds nothing", name)
		}
		left = slices.DeleteFunc(left, func(s string) bool { return s == name })
	}
	for _, name := range left {
		t.Errorf("UNRACED in the Makefile names %s, which has no tests: delete it", name)
	}
}

// makeVariable returns the words of a variable that the Makefile sets on one line, or on lines that end with a backslash.
func makeVariable(name string) ([]string, error) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		return nil, err
	}
	_, rest, ok := strings.Cut(strings.ReplaceAll(string(text), "\\\n", " "), "\n"+name+" := ")
	if !ok {
		return nil, &os.PathError{Op: "find " + name, Path: "Makefile", Err: os.ErrNotExist}
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Fields(line), nil
}

// concurrent are the imports that are there for several goroutines. A server of net/http/httptest answers on goroutines of its own.
var concurrent = []string{"sync/atomic", "testing/synctest", "golang.org/x/sync/errgroup", "net/http/httptest"}

// concurrencyIn says where a package or its tests have to do with several goroutines. It is empty if they have not.
func concurrencyIn(p *goPackage) (place string) {
	for _, f := range p.files {
		for _, spec := range f.syntax.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); slices.Contains(concurrent, path) {
				return f.path + " imports " + path
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if what := concurrency(n); what != "" && place == "" {
				place = f.path + ":" + strconv.Itoa(f.line(n)) + " " + what
			}
			return place == ""
		})
		if place != "" {
			return place
		}
	}
	return ""
}

// concurrency says what a node has to do with several goroutines, or nothing. A value that is computed once is safe however many ask.
func concurrency(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "starts a goroutine"
	case *ast.ChanType:
		return "has a channel"
	case *ast.SelectStmt:
		return "selects"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "receives"
		}
	case *ast.SelectorExpr:
		x, ok := n.X.(*ast.Ident)
		switch {
		case ok && x.Name == "sync" && !strings.HasPrefix(n.Sel.Name, "Once"):
			return "uses sync." + n.Sel.Name
		case n.Sel.Name == "Parallel":
			return "runs tests in parallel"
		}
	}
	return ""
}
