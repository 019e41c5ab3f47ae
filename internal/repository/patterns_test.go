package repository_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// latePatterns is the package that compiles regular expressions when they are first needed.
const latePatterns = "internal/base/pattern"

// TestPatternsAreValid compiles every expression that the program compiles only when it is first needed.
func TestPatternsAreValid(t *testing.T) {
	found := 0
	for _, p := range packages(t) {
		for _, f := range p.code() {
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || calledName(call) != "pattern.CompileLater" {
					return true
				}
				found++
				literal, ok := call.Args[0].(*ast.BasicLit)
				if !ok {
					return true // it is put together: the tests of its package compile it
				}
				text, err := strconv.Unquote(literal.Value)
				if err == nil {
					_, err = regexp.Compile(text)
				}
				if err != nil {
					t.Errorf("%s:%d: %v", f.path, f.line(n), err)
				}
				return true
			})
		}
	}
	if found < 50 {
		t.Errorf("%d expressions found, but there are more", found)
	}
}

// TestProgramCompilesNothingAtStart finds variables of packages whose expressions the program compiles whenever it starts.
func TestProgramCompilesNothingAtStart(t *testing.T) {
	for _, p := range packages(t) {
		if isForTests(p.name) || strings.HasPrefix(p.name, "tools/") || strings.HasPrefix(p.name, "graph/graphtest/") {
			continue
		}
		for _, f := range p.code() {
			for _, d := range f.syntax.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != token.VAR {
					continue
				}
				ast.Inspect(g, func(n ast.Node) bool {
					if _, later := n.(*ast.FuncLit); later {
						return false
					}
					if call, ok := n.(*ast.CallExpr); ok && strings.HasPrefix(calledName(call), "regexp.MustCompile") {
						t.Errorf("%s:%d: this is compiled whenever the program starts: use CompileLater of %s", f.path, f.line(n), latePatterns)
					}
					return true
				})
			}
		}
	}
}

// calledName returns the name of a called function with its package, "" for other calls.
func calledName(call *ast.CallExpr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	of, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return of.Name + "." + sel.Sel.Name
}
