package permission

import "testing"

// Every kind has a whole row, and one that has none fails closed: rules that deny or ask may match it, and nothing allows it.
func TestKindsAreComplete(t *testing.T) {
	t.Parallel()
	for _, k := range []needKind{theCall, command, reading, writing, network} {
		row := k.row()
		if row.kind != k || row.forbids == nil || row.covers == nil || row.grant == nil || row.changes == nil {
			t.Errorf("the row of %q is not complete: %+v", k, row)
		}
	}
	m := matcher{tool: "any_tool"}
	n := need{kind: "secret", text: "KEY"}
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
