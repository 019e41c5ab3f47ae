package agent

import (
	"context"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// KindCaller is the kind of a question that asks the caller of the run to make
// a call of a CallerTool.
const KindCaller = "caller"

// CallerTool returns a tool whose calls are made by the caller of the run: in a
// browser, on another machine, by hand. A call is a question of KindCaller with
// CallData. The run waits until all calls of the reply are answered, in this
// process or another one. Arguments that do not match the schema are refused before
// anyone is asked. A text answer is the result as it is; any other
// answer is the result as JSON; the model sees a refusal as a failure. Calls
// before it in the reply are made before the run waits and are not repeated;
// calls after it are made when it is answered.
func CallerTool(spec llm.ToolSpec) tool.Tool {
	t := tool.Tool{Name: spec.Name, Description: spec.Description, Schema: spec.Schema, Effect: tool.ReadOnly, Parallel: true}
	t.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if fault := CheckArguments(t, c.Args); fault != nil {
			return tool.FailedResult("%v", fault), nil
		}
		answer, err := graph.Interrupt[any](ctx, graph.Ask{Name: "caller " + c.ID, Kind: KindCaller,
			Prompt: "Make this call of " + spec.Name + ".", Data: CallData{ID: c.ID, Tool: spec.Name, Args: c.Args}})
		if refusal := refusalOf(err); refusal != nil {
			return tool.FailedResult("the call was not made: %s", refusal.Reason), nil
		}
		if err != nil {
			return tool.Result{}, err
		}
		if text, ok := answer.(string); ok {
			return tool.TextResult(text), nil
		}
		return tool.JSONResult(answer), nil
	}
	return t
}
