package agent

import (
	"context"
	"encoding/json"
	"errors"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

const delegateSchema = `{"type":"object","properties":{"request":{"type":"string","description":"What is to be done, with all that one needs to know for it"}},"required":["request"]}`

// AgentTool is a tool that is an agent: a model calls it with a request, and reads
// its last reply. Each call is a run on a thread of its own in r.Store, so that a
// call that was cut off goes on where it was. What the agent asks is asked by the
// calling run, which waits for the answer. Without spec.Schema the arguments are
// the text "request"; with one they are the agent's input as they are. The agent
// has budgets and events of its own: where those of the caller are to count, take
// an Agent node.
func AgentTool(spec llm.ToolSpec, r *graph.Runner) tool.Tool {
	plain := len(spec.Schema) == 0
	if plain {
		spec.Schema = json.RawMessage(delegateSchema)
	}
	return tool.Tool{Name: spec.Name, Description: spec.Description, Schema: spec.Schema, Effect: tool.Idempotent, Parallel: true,
		Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
			text := string(c.Args)
			if plain {
				var in struct{ Request string }
				if err := json.Unmarshal(c.Args, &in); err != nil || in.Request == "" {
					return tool.Failed("'request' is required and must be a text"), nil
				}
				text = in.Request
			}
			return delegate(ctx, r, c, text)
		}}
}

// delegate begins the run of a call, or goes on with it.
func delegate(ctx context.Context, r *graph.Runner, c tool.Call, text string) (tool.Result, error) {
	if r.Store == nil {
		return tool.Result{}, errors.New("an agent that is a tool needs a store; give its Runner one")
	}
	thread := "call/" + c.Key
	_, err := graph.Inspect(ctx, r.Store, thread, 0)
	var res graph.Result
	switch {
	case errors.Is(err, graph.ErrNoThread):
		res, err = r.Invoke(ctx, graph.Input{Thread: thread, Set: Turn(text)})
	case err == nil:
		res, err = r.InvokeResume(ctx, graph.Resume{Thread: thread})
	}
	for err == nil && res.Status == graph.Waiting {
		answers, waiting := relay(ctx, c, res.Questions)
		if waiting != nil {
			return tool.Result{}, waiting
		}
		res, err = r.InvokeResume(ctx, graph.Resume{Thread: thread, Answers: answers})
	}
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Text(LastResponse(res.State)), nil
}

// relay asks what another run asks. While one answer is missing the error is that
// the run waits.
func relay(ctx context.Context, c tool.Call, questions []graph.Question) (answers []graph.Answer, waiting error) {
	for _, q := range questions {
		ask := graph.Ask{Name: c.ID + "/" + q.ID, Kind: q.Kind, Prompt: q.Prompt, Options: q.Options, Free: q.Free, Default: q.Default}
		if len(q.Data) > 0 {
			ask.Data = q.Data
		}
		v, err := graph.Interrupt[any](ctx, ask)
		var refusal *graph.RefusedError
		switch {
		case errors.As(err, &refusal):
			answers = append(answers, graph.Answer{ID: q.ID, Refused: refusal.Reason})
		case err != nil:
			waiting = err
		default:
			answers = append(answers, graph.Answer{ID: q.ID, Value: v})
		}
	}
	return answers, waiting
}
