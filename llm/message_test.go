package llm

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequestRoundTrip(t *testing.T) {
	half := 0.5
	want := Request{
		System: "be brief",
		Messages: []Message{
			User("hi"),
			{Role: RoleUser, Parts: []Part{
				Image{MIME: "image/png", Data: []byte{1, 2, 255}},
				Image{URL: "https://example.org/a.png"},
				File{Name: "a.pdf", MIME: "application/pdf", Data: []byte("%PDF")},
				Text{},
			}},
			{Role: RoleAssistant, Parts: []Part{
				Reasoning{Text: "hm", Signature: "s", Origin: "anthropic", Extra: json.RawMessage(`{"a":[1]}`)},
				Reasoning{Signature: "xyz", Redacted: true},
				Reasoning{},
				Text{Text: "a <b> & c", Extra: json.RawMessage(`{"phase":"commentary"}`), Origin: "responses"},
				Item{Kind: "web_search_call", Text: "searched for x", Raw: json.RawMessage(`{"type":"web_search_call"}`), Origin: "responses"},
				ToolCall{ID: "c1", Name: "f", Args: json.RawMessage(`{"n":9007199254740993}`), Signature: "t", Origin: "gemini", Extra: json.RawMessage(`{"b":{}}`)},
			}},
			{Role: RoleTool, Parts: []Part{
				ToolResult{CallID: "c1", Name: "f", Content: []Part{Text{Text: "no"}, Image{URL: "u"}}, Error: true},
				ToolResult{CallID: "c2", Name: "g"},
			}},
			{Role: RoleAssistant},
		},
		Tools:       []ToolSpec{{Name: "f", Description: "d", Schema: json.RawMessage(`{"type":"object"}`)}},
		Temperature: &half,
		TopP:        new(float64),
		MaxTokens:   7,
		Effort:      "low",
		Stop:        []string{"END"},
		Schema:      json.RawMessage(`{"type":"string"}`),
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Request
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("after a round trip (-want +got):\n%s\nthe JSON was %s", d, data)
	}
}

func TestReplyRoundTrip(t *testing.T) {
	want := Reply{
		ID:      "r1",
		Message: Message{Role: RoleAssistant, Parts: []Part{Text{Text: "a"}, Text{Text: "b"}}},
		Usage:   Usage{Input: 4, Output: 3, Cached: 2, Written: 1, Reasoning: 1},
		Stop:    StopLength,
		Model:   "m",
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Reply
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("after a round trip (-want +got):\n%s", d)
	}
	if got.Text() != "ab" {
		t.Errorf("Text() = %q, want %q", got.Text(), "ab")
	}
}

func TestPartJSON(t *testing.T) {
	for _, c := range []struct {
		part Part
		want string
	}{
		{Text{Text: "x"}, `{"type":"text","text":"x"}`},
		{Image{}, `{"type":"image"}`},
		{File{Name: "n", Data: []byte("hi")}, `{"type":"file","name":"n","data":"aGk="}`},
		{Reasoning{}, `{"type":"reasoning"}`},
		{Item{Kind: "k", Raw: json.RawMessage(`{"n":9007199254740993}`), Origin: "o"}, `{"type":"item","kind":"k","raw":{"n":9007199254740993},"origin":"o"}`},
		{ToolCall{ID: "1", Name: "f", Args: json.RawMessage(`{}`)}, `{"type":"tool_call","id":"1","name":"f","args":{}}`},
		{ToolResult{CallID: "1", Name: "f", Content: []Part{Text{Text: "x"}}},
			`{"type":"tool_result","call_id":"1","name":"f","content":[{"type":"text","text":"x"}]}`},
	} {
		got, err := json.Marshal(c.part)
		if err != nil {
			t.Errorf("%T: %v", c.part, err)
			continue
		}
		if string(got) != c.want {
			t.Errorf("%T encodes as\n%s, want\n%s", c.part, got, c.want)
		}
	}
}

func TestMessageUnmarshalErrors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`[]`, "cannot unmarshal"},
		{`{"parts":[{"text":"x"}]}`, `part 0: no "type"`},
		{`{"parts":[{"type":"text"},{"type":"smell"}]}`, `part 1: unknown type "smell"`},
		{`{"parts":[{"type":"text","text":3}]}`, "part 0: json: cannot unmarshal number"},
		{`{"parts":[3]}`, "part 0: json: cannot unmarshal number"},
		{`{"parts":[{"type":"tool_result","content":[{"type":"?"}]}]}`, `part 0: part 0: unknown type "?"`},
		{`{"parts":[{"type":"tool_result","content":3}]}`, "part 0: json"},
	} {
		var m Message
		err := json.Unmarshal([]byte(c.in), &m)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want one with %q", c.in, err, c.want)
		}
	}
}

func TestToolCalls(t *testing.T) {
	a, b := ToolCall{ID: "a"}, ToolCall{ID: "b"}
	m := Message{Parts: []Part{a, Text{Text: "x"}, b}}
	if d := cmp.Diff([]ToolCall{a, b}, m.ToolCalls()); d != "" {
		t.Error(d)
	}
	if got := User("x").ToolCalls(); got != nil {
		t.Errorf("calls of a text message: %v", got)
	}
}
