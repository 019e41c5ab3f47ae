package script

import (
	"strings"
	"testing"

	"raddle.dev/llm"
)

// told is a request whose conversation has had these outcomes, a reply before
// each.
func told(said string, results ...string) llm.Request {
	r := llm.Request{Messages: []llm.Message{llm.User(said)}}
	for _, text := range results {
		r.Messages = append(r.Messages, llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.ToolCall{ID: "c", Name: "t", Args: []byte("{}")}}},
			llm.Message{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "c", Content: []llm.Part{llm.Text{Text: text}}}}})
	}
	return r
}

func TestOutcomes(t *testing.T) {
	const file = `
- match: go
  after: ['"count":0', 'empty']
  repeat: true
  text: again
- match: go
  turn: 1
  text: first
- match: go
  after: '"count":1'
  text: '{{outcome.1.id}} / {{outcome.-1.messages.0.payload.content.cart.1}} / {{outcome.-1.count}} / {{outcome.1}} / {{outcome.x}} {{other}}'
  tool_calls:
    - name: send
      args: {to: "{{outcome.1.id}}", "{{outcome.1.id}}": 7, list: ["{{outcome.-1.messages.0.payload.content.cart}}"]}
`
	model, err := Parse("t.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	spawned, empty := `{"id":"agent_\"x\"_1"}`, `{"count":0,"note":"empty"}`
	inbox := `{"count":1,"messages":[{"payload":{"content":"{\"cart\": [1.50, \"two\\nlines\"]}"}}]}`
	for _, c := range []struct {
		results    []string
		text, args string
	}{
		{nil, "first", ""},
		{[]string{spawned, empty}, "again", ""},
		{[]string{spawned, empty, empty}, "again", ""},
		{[]string{spawned, empty, inbox}, "agent_\"x\"_1 / two\nlines / 1 / " + spawned + " / {{outcome.x}} {{other}}",
			`{"to":"agent_\"x\"_1","agent_\"x\"_1":7,"list":["[1.50,\"two\\nlines\"]"]}`},
	} {
		reply, err := llm.Generate(t.Context(), model, told("go", c.results...))
		if err != nil {
			t.Fatal(err)
		}
		if reply.Text() != c.text {
			t.Errorf("after %q it says %q, want %q", c.results, reply.Text(), c.text)
		}
		for _, p := range reply.Message.Parts {
			if call, ok := p.(llm.ToolCall); ok && string(call.Args) != c.args {
				t.Errorf("arguments %s, want %s", call.Args, c.args)
			}
		}
	}
	if _, err := llm.Generate(t.Context(), model, told("go", spawned)); err == nil || !strings.Contains(err.Error(), "no reply for the request") {
		t.Errorf("got %v", err)
	}
}

func TestOutcomesThatAreNotThere(t *testing.T) {
	for place, want := range map[string]string{
		"{{outcome.2}}":                            "line 1: the conversation has 1 outcomes",
		"{{outcome.0}}":                            "has 1 outcomes",
		"{{outcome.-2}}":                           "has 1 outcomes",
		"{{outcome.1.name}}":                       `there is no "name" in {"list":[1],"text":"no JSON"}`,
		"{{outcome.1.list.1}}":                     `there is no "1" in [1]`,
		"{{outcome.1.list.x}}":                     `there is no "x" in [1]`,
		"{{outcome.1.text.a}}":                     `there is no "a" in no JSON`,
		"{{outcome.99999999999999999999999}}":      "has 1 outcomes",
		"{{outcome.1.list.99999999999999999999}}":  "in [1]",
		"{{outcome.1.text}} and {{outcome.1.no}}}": `there is no "no"`,
	} {
		model, err := Parse("t.yaml", []byte("- text: '"+place+"'\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := llm.Generate(t.Context(), model, told("go", `{"list":[1],"text":"no JSON"}`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", place, err, want)
		}
	}
}
