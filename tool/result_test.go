package tool_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/llm"
	"raddle.dev/tool"
)

func TestResultText(t *testing.T) {
	for name, c := range map[string]struct {
		result tool.Result
		want   string
		failed bool
	}{
		"seen files": {tool.Result{Seen: []tool.SeenFile{{Path: "/w/a", Hash: "h", Lines: "abcd", Stamp: "1 2"}, {Path: "/w/b"}}, Changes: []tool.FileChange{{Path: "/w/a", Kind: tool.FileRemoved, Before: image("x")}}},
			`"DONE"`, false},
		"nothing":  {tool.TextResult(""), `"DONE"`, false},
		"text":     {tool.TextResult("a <b> & c\n"), `{"output":"a <b> & c\n"}`, false},
		"value":    {tool.JSONResult(json.RawMessage(`{"b":1,"a":2}`)), `{"b":1,"a":2}`, false},
		"failure":  {tool.FailedResult("no %s", "way"), `{"tool_call_error":"no way"}`, true},
		"unspoken": {tool.JSONResult(func() {}), `{"tool_call_error":"the result cannot be encoded as JSON: json: unsupported type: func()"}`, true},
		"a picture": {tool.Result{Content: []llm.Part{llm.Image{MIME: "image/png", Data: []byte{1}}}},
			"", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.result.Text(); got != c.want || c.result.Error != c.failed {
				t.Errorf("got %s, error %v; want %s, %v", got, c.result.Error, c.want, c.failed)
			}
			text, err := json.Marshal(c.result)
			if err != nil {
				t.Fatal(err)
			}
			var back tool.Result
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.result, back); diff != "" {
				t.Errorf("after a round trip (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResultPartIsNeverEmpty(t *testing.T) {
	got := tool.Result{}.MessagePart(llm.ToolCall{ID: "c1", Name: "mkdir"})
	want := llm.ToolResult{CallID: "c1", Name: "mkdir", Content: []llm.Part{llm.Text{Text: `"DONE"`}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
