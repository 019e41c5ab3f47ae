package permission

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// Every kind that rule.go declares has a row, and every row is whole.
func TestKindsAreComplete(t *testing.T) {
	t.Parallel()
	for _, k := range declaredKinds(t) {
		if k.row().kind != k {
			t.Errorf("the kind %q has no row in kindRows", k)
		}
	}
	for _, row := range append(kindRows, unknownKind) {
		if row.forbids == nil || row.covers == nil || row.grant == nil || row.changes == nil {
			t.Errorf("the row of %q is not complete: %+v", row.kind, row)
		}
	}
}

// declaredKinds returns the values of the constants of type needKind.
func declaredKinds(t *testing.T) (kinds []needKind) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "rule.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "needKind" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, needKind(text))
		}
		return true
	})
	if len(kinds) < 5 {
		t.Fatalf("rule.go declares the kinds %q: this test does not find them all", kinds)
	}
	return kinds
}

// A kind without a row fails closed: rules that deny or ask may match it, and nothing allows it.
func TestAKindWithoutARowIsNeverAllowed(t *testing.T) {
	t.Parallel()
	m := matcher{tool: "any_tool"}
	n := need{kind: "no such kind", text: "KEY"}
	for _, text := range []string{"any_tool(KEY)", "any_tool(*)"} {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		if m.forbidsNeed(r, n) == no || m.coversNeed(r, n) {
			t.Errorf("the rule %s: it must be able to forbid a need of an unknown kind, and must not allow it", text)
		}
	}
	if _, ok := m.narrowestGrant(n); ok || !n.mayChange() {
		t.Error("an answer can allow a need of an unknown kind, or the mode plan lets it pass")
	}
}
