package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"raddle.dev/tool"
)

// A tool declares what a call would touch, without doing it, and that the call may be repeated.
func ExampleTool() {
	read := tool.Tool{
		Name:        "read_note",
		Description: "Read a note.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
		Effect:      tool.ReadOnly,
		Parallel:    true,
		Touches: func(args json.RawMessage) (tool.Touch, error) {
			var in struct{ Name string }
			if err := json.Unmarshal(args, &in); err != nil {
				return tool.Touch{}, err
			}
			return tool.Touch{Reads: []string{"notes/" + in.Name}}, nil
		},
		Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			return tool.TextResult("Buy bolts."), nil
		},
	}
	args := json.RawMessage(`{"name":"today"}`)
	touch, err := read.Touches(args)
	fmt.Println(touch.Reads, err, read.MayRepeat(args))
	result, err := read.Run(context.Background(), tool.Call{ID: "a", Args: args})
	fmt.Println(result.Text(), err)
	// Output:
	// [notes/today] <nil> true
	// {"output":"Buy bolts."} <nil>
}

// A call that needs an answer returns a question. It is called again with the answers so far.
func ExampleQuestion() {
	book := func(_ context.Context, c tool.Call) (tool.Result, error) {
		if len(c.Answers) == 0 {
			return tool.Result{}, &tool.Question{Kind: "select", Prompt: "Which seat?", Options: []string{"aisle", "window"}}
		}
		if c.Answers[0].Refused != "" {
			return tool.FailedResult("no seat: %s", c.Answers[0].Refused), nil
		}
		return tool.JSONResult(map[string]json.RawMessage{"seat": c.Answers[0].Value}), nil
	}
	_, err := book(context.Background(), tool.Call{Key: "k"})
	var q *tool.Question
	fmt.Println(errors.As(err, &q), q.Prompt, q.Options)
	result, err := book(context.Background(), tool.Call{Key: "k", Answers: []tool.Answer{{Prompt: q.Prompt, Value: json.RawMessage(`"window"`)}}})
	fmt.Println(result.Text(), err)
	// Output:
	// true Which seat? [aisle window]
	// {"seat":"window"} <nil>
}

// A failure of the task is a result that the model reads, not an error of the program.
func ExampleFailedResult() {
	r := tool.FailedResult("there is no note %q", "tomorrow")
	fmt.Println(r.Error, r.Text())
	// Output:
	// true {"tool_call_error":"there is no note \"tomorrow\""}
}
