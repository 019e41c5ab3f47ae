package environ

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReferences(t *testing.T) {
	for text, want := range map[string]Reference{
		"${KEY}": {Name: "KEY"}, "${ KEY }": {Name: "KEY"}, " ${KEY}\n": {Name: "KEY"},
		"{{KEY}}": {Name: "KEY", Secret: true}, "{{ KEY }}": {Name: "KEY", Secret: true}, "{{my-key.2}}": {Name: "my-key.2", Secret: true},
	} {
		if got, ok := ParseReference(text); !ok || got != want {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "KEY", "$KEY", "${}", "{{}}", "{KEY}", "${KEY", "${KEY}}", "x${KEY}", "${A}${B}", "{{1}}", "${A B}"} {
		if got, ok := ParseReference(text); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
	var names []string
	got := ReplaceReferences("a ${ONE}-{{ two.2 }} $THREE", func(r Reference) string {
		names = append(names, r.Name)
		return "*"
	})
	if got != "a *-* $THREE" || !cmp.Equal(names, []string{"ONE", "two.2"}) {
		t.Errorf("%q, %v", got, names)
	}
	if !HasReference("x {{A}}") || HasReference("x {A}") {
		t.Error("HasReference")
	}
}
