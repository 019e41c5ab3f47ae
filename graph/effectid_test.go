package graph

import (
	"testing"
)

func TestEffectID(t *testing.T) {
	for _, c := range []struct {
		text string
		id   EffectID
		key  string
		of   string // the shared value
	}{
		{"2.act.0\x00tool fs_cat\x00=c1#2", EffectID{Task: "2.act.0", Name: "tool fs_cat", Call: "=c1#2"}, "c1#2", ""},
		{"2.act.0\x00model\x000", EffectID{Task: "2.act.0", Name: "model", Call: "0"}, "", ""},
		{"2.act.0\x00ask\x00=a\x00b", EffectID{Task: "2.act.0", Name: "ask", Call: "=a\x00b"}, "a\x00b", ""},
		{"2.act.0\x00shared\x00=spent", EffectID{Task: "2.act.0", Name: "shared", Call: "=spent"}, "spent", ""},
		{"\x00model\x00=spent", EffectID{Task: "", Name: "model", Call: "=spent"}, "spent", ""},
		{sharedID("spent"), EffectID{Task: "", Name: "shared", Call: "=spent"}, "spent", "spent"},
	} {
		id := ParseEffectID(c.text)
		if got := id.SharedName(); got != c.of {
			t.Errorf("%q: the shared value %q", c.text, got)
		}
		if id != c.id || id.Key() != c.key || id.String() != c.text {
			t.Errorf("%q: %#v with the key %q, which is %q again", c.text, id, id.Key(), id.String())
		}
	}
	for _, text := range []string{"", "2.act.0", "2.act.0\x00model"} {
		if id := ParseEffectID(text); id != (EffectID{}) {
			t.Errorf("%q: %#v", text, id)
		}
	}
}
