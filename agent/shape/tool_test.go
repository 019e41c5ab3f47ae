package shape_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"raddle.dev/agent/shape"
	"raddle.dev/tool"
)

type wanted struct {
	Article string   `json:"article" jsonschema:"its name in the catalogue"`
	Number  int      `json:"number,omitempty"`
	Tags    []string `json:"tags,omitempty"`
}

func madeTool[In, Out any](t *testing.T, fn func(context.Context, In) (Out, error)) tool.Tool {
	t.Helper()
	made, err := shape.NewTool("count", "How many there are.", fn)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func call(t *testing.T, made tool.Tool, args string) (string, bool) {
	t.Helper()
	r, err := made.Run(t.Context(), tool.Call{Args: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	return r.Text(), r.Error
}

func TestToolOfAFunction(t *testing.T) {
	var got []wanted
	made := madeTool(t, func(_ context.Context, in wanted) (map[string]int, error) {
		got = append(got, in)
		return map[string]int{in.Article: 5}, nil
	})
	var schema struct {
		Type       string
		Required   []string
		Properties map[string]struct{ Type, Description string }
	}
	if err := json.Unmarshal(made.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	if schema.Type != "object" || len(schema.Required) != 1 || schema.Properties["article"].Description != "its name in the catalogue" || schema.Properties["tags"].Type != "array" {
		t.Errorf("schema %s", made.Schema)
	}
	if text, failed := call(t, made, `{"article":"bolts","number":2}`); failed || text != `{"bolts":5}` {
		t.Errorf("%q %v", text, failed)
	}
	if len(got) != 1 || got[0].Article != "bolts" || got[0].Number != 2 {
		t.Errorf("the function was called with %+v", got)
	}
	for _, args := range []string{`{}`, `{"article":5}`, `{"article":"bolts","colour":"red"}`, `[]`, `{`, ``} {
		if text, failed := call(t, made, args); !failed || !strings.Contains(text, "the arguments do not fit") {
			t.Errorf("%s: %q %v", args, text, failed)
		}
	}
	if len(got) != 1 {
		t.Errorf("the function was called with %+v", got[1:])
	}
}

func TestResultsOfAFunction(t *testing.T) {
	type none struct{}
	if text, failed := call(t, madeTool(t, func(context.Context, none) (string, error) { return "hello", nil }), ``); failed || text != `{"output":"hello"}` {
		t.Errorf("%q", text)
	}
	if text, failed := call(t, madeTool(t, func(context.Context, none) (struct{}, error) { return struct{}{}, nil }), `{}`); failed || text != `"DONE"` {
		t.Errorf("%q", text)
	}
	if text, failed := call(t, madeTool(t, func(context.Context, none) (tool.Result, error) { return tool.FailedResult("sold out"), nil }), `{}`); !failed || !strings.Contains(text, "sold out") {
		t.Errorf("%q", text)
	}
	boom := errors.New("boom")
	made := madeTool(t, func(context.Context, none) (int, error) { return 0, boom })
	if _, err := made.Run(t.Context(), tool.Call{}); !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
}

func TestWhatIsNoTool(t *testing.T) {
	type recursive struct{ Next *recursive }
	_, text := shape.NewTool("t", "", func(context.Context, string) (string, error) { return "", nil })
	_, loop := shape.NewTool("t", "", func(context.Context, recursive) (string, error) { return "", nil })
	_, nameless := shape.NewTool("", "", func(context.Context, wanted) (string, error) { return "", nil })
	_, empty := shape.NewTool[wanted, string]("t", "", nil)
	for want, err := range map[string]error{"must be a struct": text, "the schema of": loop, "needs a name": nameless, "needs a function": empty} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
