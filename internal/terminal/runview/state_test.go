package runview

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStateIsShownByKey(t *testing.T) {
	state := json.RawMessage(`{"prompt":"Build\nit","notes":[],"round":2,"todo":{"open":["a",{"b":1,"c":[]}],"n":"4"},"system":"","grants":null}`)
	if d := cmp.Diff("prompt: |\n  Build\n  it\nround: 2\ntodo:\n  open:\n  - a\n  … 3 more lines: --state\n", FormatState(state, false, false)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("prompt: |\n  Build\n  it\nround: 2\ntodo:\n  open:\n  - a\n  - b: 1\n    c: []\n  n: \"4\"\n", FormatState(state, true, true)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("todo:\n  open:\n  - a\n  … 3 more lines: --state\n", FormatState(state, true, false)); d != "" {
		t.Error(d)
	}
	if got := FormatState(json.RawMessage("[1]"), false, false); got != "[1]" {
		t.Error(got)
	}
}
