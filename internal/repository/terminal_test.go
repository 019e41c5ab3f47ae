package repository_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// streamFiles may name the streams of the process; all other files write through internal/base/term.
var streamFiles = []string{"internal/terminal/cli/main.go", "internal/terminal/manual/main.go"}

// TestStreams ensures that texts of models, tools and files reach a terminal only after internal/base/term has cleaned them: no code writes to the
// streams of the process directly. Programs that show how the library is used are exempt.
func TestStreams(t *testing.T) {
	for _, p := range packages(t) {
		if strings.HasPrefix(p.name, "examples/") || strings.HasPrefix(p.name, "bench") || strings.HasPrefix(p.name, "tools") {
			continue
		}
		for _, f := range p.code() {
			if slices.Contains(streamFiles, f.path) {
				continue
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if what := directOutput(n); what != "" {
					t.Errorf("%s:%d: %s writes past internal/base/term: use the streams that the caller supplies (in internal/terminal/cli: Out and Screen of the console)", f.path, f.line(n), what)
				}
				return true
			})
		}
	}
}

// directOutput returns the name of what writes to a stream of the process, or names one; otherwise "".
func directOutput(n ast.Node) string {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		from, ok := n.X.(*ast.Ident)
		if !ok || from.Obj != nil { // a variable with that name
			return ""
		}
		switch name := from.Name + "." + n.Sel.Name; {
		case name == "os.Stdout", name == "os.Stderr", strings.HasPrefix(name, "fmt.Print"), strings.HasPrefix(name, "log.Print"), strings.HasPrefix(name, "log.Fatal"):
			return name
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && f.Obj == nil && (f.Name == "print" || f.Name == "println") {
			return f.Name
		}
	}
	return ""
}
