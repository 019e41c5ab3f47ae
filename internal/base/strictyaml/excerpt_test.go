package strictyaml

import (
	"strings"
	"testing"
)

// mark returns an excerpt with its word in brackets.
func mark(e Excerpt) string {
	to := min(e.To, len(e.Line))
	return e.Line[:e.From] + "[" + e.Line[e.From:to] + "]" + e.Line[to:]
}

func TestCutExcerpt(t *testing.T) {
	text := "name: x\n  type: lmm  # typo\r\n\nmodel: \"a b\", c\nprompt: \"{{topic}} in wörtern é\"\nlist: [eins, zwei]"
	for _, test := range []struct {
		line, col int
		want      string
	}{
		{1, 1, "[name]: x"},
		{1, 7, "name: [x]"},
		{2, 9, "  type: [lmm]  # typo"},
		{2, 1, "  [type]: lmm  # typo"},
		{3, 1, ""},
		{4, 8, `model: ["a b"], c`},
		{5, 10, `prompt: "[{{topic}}] in wörtern é"`},
		{5, 31, `prompt: "{{topic}} in wörtern [é]"`},
		{6, 14, "list: [eins, [zwei]]"},
		{6, 99, "list: [eins, zwei][]"},
		{7, 1, ""},
		{0, 1, ""},
	} {
		e, ok := CutExcerpt([]byte(text), Pos{Line: test.line, Col: test.col})
		got := ""
		if ok {
			got = mark(e)
		}
		if got != test.want {
			t.Errorf("%d:%d: %q, want %q", test.line, test.col, got, test.want)
		}
	}
}

// In a file that YAML cannot read, nothing is known to be a key.
func TestHideAllOfAFileThatCannotBeRead(t *testing.T) {
	e, _ := CutExcerpt([]byte(`{"K":sk-secret: x}`), Pos{Line: 1, Col: 6})
	if hidden, ok := e.HideValue("yaml-syntax"); ok {
		t.Errorf("%q", hidden.Line)
	}
}

// An excerpt of a file with secrets shows keys, whatever is in the same line.
func TestHideValue(t *testing.T) {
	for _, test := range []struct {
		line, at string
		want     string
	}{
		{"    api_kee: sk-secret", "api", "    [api_kee]: …"},
		{"    api_key: sk-secret", "sk", "    api_key: […]"},
		{`{"mcpServers": {"a": {"env": {"TOKEN": "sk-secret"}, "comand": "x sk-secret"}}}`, `"comand"`, `["comand"]: …`},
		{`{"mcpServers": {"a": {"env": {"TOKEN": "sk-secret"}, "command": 7, "x": "sk-secret"}}}`, "7", `"command": […]`},
		{`{"a": {"command": "sk-secret",}, "b": [}}`, "}}", "…[}]…"},
		{"  - sk-secret", "sk", "  - […]"},
		{"sk-secret", "sk", "[…]"},
	} {
		e, ok := CutExcerpt([]byte(test.line), Pos{Line: 1, Col: 1 + strings.Index(test.line, test.at)})
		if !ok {
			t.Fatalf("no excerpt of %q", test.line)
		}
		hidden, ok := e.HideValue("unknown-key")
		if got := mark(hidden); !ok || got != test.want || strings.Contains(hidden.Line, "sk-secret") {
			t.Errorf("%q: %q, want %q", test.line, got, test.want)
		}
	}
}
