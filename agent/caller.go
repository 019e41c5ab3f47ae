package agent

import (
	"context"
	"errors"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// KindCaller asks whoever drives the run to make a call of a CallerTool.
const KindCaller = "caller"

// CallerTool is a tool that the caller of the run makes the calls of: in a
// browser, on another machine, by hand. A call is a question of KindCaller with
// CallData; the run waits until all calls of the reply are answered, in this
// process or another. A text is the result as it is, any other answer is one in
// JSON; a refusal is told to the model as a failure. Calls that stand before it in
// the reply are made before, and not again; those behind it when it is answered.
func CallerTool(spec llm.ToolSpec) tool.Tool {
	return tool.Tool{Name: spec.Name, Description: spec.Description, Schema: spec.Schema, Effect: tool.ReadOnly, Parallel: true,
		Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
			answer, err := graph.Interrupt[any](ctx, graph.Ask{Name: "caller " + c.ID, Kind: KindCaller,
				Prompt: "Make this call of " + spec.Name + ".", Data: CallData{ID: c.ID, Tool: spec.Name, Args: c.Args}})
			var refusal *graph.RefusedError
			switch {
			case errors.As(err, &refusal):
				return tool.Failed("the call was not made: %s", refusal.Reason), nil
			case err != nil:
				return tool.Result{}, err
			}
			if text, ok := answer.(string); ok {
				return tool.Text(text), nil
			}
			return tool.JSON(answer), nil
		}}
}
