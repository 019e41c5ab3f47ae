package repository_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// A limit is how large something may grow: above look it is reported (go test -v), above reason its file must give a reason.
type limit struct{ look, reason int }

var (
	fileLines        = limit{look: 600, reason: 1000}
	functionLines    = limit{look: 70, reason: 100}
	parameters       = limit{look: 5, reason: 6}
	structFields     = limit{look: 20, reason: 25}
	interfaceMethods = limit{look: 5, reason: 6}
	packageNames     = limit{look: 70, reason: 100}
)

// sizeReason is the beginning of the line in the first comment of a file that says why the file exceeds a limit.
const sizeReason = "Size: "

// A measure is the size of one thing.
type measure struct {
	where string
	what  string
	size  int
	limit limit
}

func TestSizes(t *testing.T) {
	for _, p := range everything(t) {
		names, idle := 0, []*goFile{}
		for _, f := range p.files {
			if ast.IsGenerated(f.syntax) {
				continue
			}
			if !f.test {
				names += exportedNames(f.syntax)
			}
			if excess := report(t, measures(f), hasReason(f)); !excess && hasReason(f) {
				idle = append(idle, f)
			}
		}
		count := measure{where: "package " + p.name, what: "exported names", size: names, limit: packageNames}
		if report(t, []measure{count}, len(idle) > 0) {
			continue // the reason applies to the package
		}
		for _, f := range idle {
			t.Errorf("%s gives a reason for its size, but nothing in it exceeds a limit: delete the line %q", f.path, sizeReason)
		}
	}
}

// report reports what exceeds a limit, and returns whether anything needs a reason.
func report(t *testing.T, measures []measure, reasoned bool) (excess bool) {
	t.Helper()
	for _, m := range measures {
		switch {
		case m.size > m.limit.reason:
			excess = true
			if !reasoned {
				t.Errorf("%s: %d %s, the limit is %d: split it, or give the reason in a line %q of the first comment of its file",
					m.where, m.size, m.what, m.limit.reason, sizeReason)
			}
		case m.size > m.limit.look:
			t.Logf("%s: %d %s, check whether it needs more than %d", m.where, m.size, m.what, m.limit.look)
		}
	}
	return excess
}

// measures returns the sizes of a file and of its parts.
func measures(f *goFile) []measure {
	all := []measure{{where: f.path, what: "lines", size: f.lines, limit: fileLines}}
	add := func(n ast.Node, what string, size int, l limit) {
		all = append(all, measure{where: fmt.Sprintf("%s:%d", f.path, f.line(n)), what: what, size: size, limit: l})
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n, "lines in function "+n.Name.Name, f.fset.Position(n.End()).Line-f.line(n)+1, functionLines)
		case *ast.FuncType:
			add(n, "parameters", n.Params.NumFields(), parameters)
		case *ast.StructType:
			add(n, "struct fields", n.Fields.NumFields(), structFields)
		case *ast.InterfaceType:
			add(n, "interface methods", n.Methods.NumFields(), interfaceMethods)
		}
		return true
	})
	return all
}

// hasReason reports whether the first comment of a file gives a reason for its size.
func hasReason(f *goFile) bool {
	if len(f.syntax.Comments) == 0 {
		return false
	}
	lines := strings.Split(f.syntax.Comments[0].Text(), "\n")
	return slices.ContainsFunc(lines, func(l string) bool {
		reason, ok := strings.CutPrefix(l, sizeReason)
		return ok && strings.TrimSpace(reason) != ""
	})
}

// exportedNames counts the package-level exported names of a file, without methods.
func exportedNames(file *ast.File) (n int) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				n++
			}
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					n += len(exported([]*ast.Ident{s.Name}))
				case *ast.ValueSpec:
					n += len(exported(s.Names))
				}
			}
		}
	}
	return n
}
