package llm

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A secret leaves every part of a reply, and what only a provider understands goes with it: half of it would be refused.
func TestRedactExtra(t *testing.T) {
	hide := func(s string) string { return strings.ReplaceAll(s, "hunter2hunter2", "[redacted]") }
	clean, told := json.RawMessage(`{"a":"b"}`), json.RawMessage(`{"a":"hunter2hunter2"}`)
	for name, c := range map[string]struct{ part, want Part }{
		"text":                  {Text{Text: "x", Extra: told, Origin: "o"}, Text{Text: "x", Origin: "o"}},
		"text, clean":           {Text{Text: "x hunter2hunter2", Extra: clean, Origin: "o"}, Text{Text: "x [redacted]", Extra: clean, Origin: "o"}},
		"reasoning":             {Reasoning{Text: "x", Signature: "s", Extra: told}, Reasoning{Text: "x"}},
		"reasoning in the text": {Reasoning{Text: "hunter2hunter2", Signature: "s", Extra: clean}, Reasoning{Text: "[redacted]"}},
		"reasoning, clean":      {Reasoning{Text: "x", Signature: "s", Extra: clean}, Reasoning{Text: "x", Signature: "s", Extra: clean}},
		"call":                  {ToolCall{ID: "c", Args: clean, Signature: "s", Extra: told}, ToolCall{ID: "c", Args: clean}},
		"call in the arguments": {ToolCall{ID: "c", Args: told, Signature: "s", Extra: clean}, ToolCall{ID: "c", Args: json.RawMessage(`{"a":"[redacted]"}`)}},
		"call, clean":           {ToolCall{ID: "c", Args: clean, Signature: "s", Extra: clean}, ToolCall{ID: "c", Args: clean, Signature: "s", Extra: clean}},
		"item":                  {Item{Kind: "k", Text: "hunter2hunter2", Raw: told}, Item{Kind: "k", Text: "[redacted]", Raw: json.RawMessage(`{"a":"[redacted]"}`)}},
	} {
		got := RedactMessage(Message{Role: RoleAssistant, Parts: []Part{c.part}}, hide)
		if d := cmp.Diff([]Part{c.want}, got.Parts); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
