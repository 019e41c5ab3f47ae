// Package repository_test checks the house rules of this repository: who may import whom, what is documented, how large things grow and what
// is not written into a committed file. Every failure says what to do about it.
package repository_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestMain runs the tests in the root of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// modulePath is the first part of every import path of this module.
const modulePath = "raddle.dev"

// A goPackage is a directory with Go files. Its name is its path below the module, such as "graph/graphtest"; "." is the root.
type goPackage struct {
	name  string
	files []*goFile // by name
}

// A goFile is one Go file, parsed with its comments whatever system it is built for.
type goFile struct {
	path   string // from the root, with slashes
	test   bool
	lines  int
	syntax *ast.File
	fset   *token.FileSet
}

// public reports whether users of the module may import the package.
func (p *goPackage) public() bool {
	return !slices.Contains(strings.Split(p.name, "/"), "internal") && !strings.HasPrefix(p.name, "cmd/")
}

// code returns the files that are not tests.
func (p *goPackage) code() []*goFile {
	return slices.DeleteFunc(slices.Clone(p.files), func(f *goFile) bool { return f.test })
}

// line is the line of a node of the file.
func (f *goFile) line(n ast.Node) int { return f.fset.Position(n.Pos()).Line }

// packages returns every package of the module that has code, sorted by name.
func packages(t *testing.T) []*goPackage {
	t.Helper()
	return slices.DeleteFunc(everything(t), func(p *goPackage) bool { return len(p.code()) == 0 })
}

// everything returns every directory of the module with Go files, tests included, sorted by name.
func everything(t *testing.T) []*goPackage {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatalf("reading the repository: %v", err)
	}
	return slices.Clone(all)
}

var parsed = sync.OnceValues(func() ([]*goPackage, error) {
	byDir := map[string]*goPackage{}
	err := walk(func(name string) error {
		if path.Ext(name) != ".go" || slices.Contains(strings.Split(name, "/"), "testdata") {
			return nil
		}
		f, err := parse(name)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if byDir[dir] == nil {
			byDir[dir] = &goPackage{name: dir}
		}
		byDir[dir].files = append(byDir[dir].files, f)
		return nil
	})
	var all []*goPackage
	for _, p := range byDir {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *goPackage) int { return strings.Compare(a.name, b.name) })
	return all, err
})

func parse(name string) (*goFile, error) {
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &goFile{
		path: name, test: strings.HasSuffix(name, "_test.go"),
		lines: strings.Count(string(src), "\n"), syntax: syntax, fset: fset,
	}, nil
}

// walk visits the files of the repository in order, without what is built, fetched or belongs to another module.
func walk(visit func(name string) error) error {
	return filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			if d.Type().IsRegular() && name != ".git" { // a file in a worktree
				return visit(name)
			}
			return nil
		case name == ".":
			return nil
		case name == ".git" || name == "bin" || name == "out" || d.Name() == "node_modules" || d.Name() == ".venv" || d.Name() == "vendor":
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
			return fs.SkipDir
		}
		return nil
	})
}
