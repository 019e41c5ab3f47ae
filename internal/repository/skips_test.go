package repository_test

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// TestSkipsGiveAReason ensures that a skipped test says what is missing.
func TestSkipsGiveAReason(t *testing.T) {
	for _, p := range everything(t) {
		for _, f := range p.files {
			if !f.test {
				continue
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if name := skips(call); name != "" {
					t.Errorf("%s:%d: %s without a reason: say what is missing on this machine, as in t.Skip(\"no python3\")", f.path, f.line(call), name)
				}
				return true
			})
		}
	}
}

// skips returns the name of the method by which a call skips a test without a reason, or "".
func skips(call *ast.CallExpr) string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	switch name := method.Sel.Name; name {
	case "SkipNow":
		return name
	case "Skip", "Skipf":
		if len(call.Args) == 0 || isEmptyText(call.Args[0]) {
			return name
		}
	}
	return ""
}

func isEmptyText(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING && strings.TrimSpace(strings.Trim(lit.Value, "\"`")) == ""
}
