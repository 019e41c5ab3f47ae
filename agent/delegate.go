package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

const delegateSchema = `{"type":"object","properties":{"request":{"type":"string","description":"What is to be done, with all that one needs to know for it"}},"required":["request"]}`

// An AgentTool is a tool that is an agent: a model calls it with a request and
// receives its last reply. Each call is a child graph of the tools node, named
// after the id of the call. Its steps, questions and events are part of the
// run, and an interrupted call continues where it stopped. Its cost counts for
// the calling agent, whose Budget limits both together. The calls of one reply
// run concurrently.
//
// Put it in Config.Agents; in your own graph, put it in Act.Agents and its Tool
// in Think.Tools.
type AgentTool struct {
	// Spec describes the tool to the model. Without a Schema the only argument
	// is the text "request". With a Schema the arguments are the agent's input
	// as they are.
	Spec  llm.ToolSpec
	Graph *graph.Graph // of a Config, or any other graph that works on Messages
}

// Tool returns the tool that a model can call.
func (a AgentTool) Tool() tool.Tool {
	plain := len(a.Spec.Schema) == 0
	if plain {
		a.Spec.Schema = json.RawMessage(delegateSchema)
	}
	return tool.Tool{Name: a.Spec.Name, Description: a.Spec.Description, Schema: a.Spec.Schema, Effect: tool.Idempotent, Parallel: true,
		Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
			text := string(c.Args)
			if plain {
				var in struct{ Request string }
				if err := json.Unmarshal(c.Args, &in); err != nil || in.Request == "" {
					return tool.FailedResult("'request' is required and must be a text"), nil
				}
				text = in.Request
			}
			return delegateCall(ctx, a.Spec.Name, c.ID, text)
		}}
}

// delegateCall runs the child graph of a call, or continues it. A child that failed
// is removed, so that a further attempt of the call starts from scratch.
func delegateCall(ctx context.Context, kind, id, text string) (tool.Result, error) {
	name := strings.NewReplacer("/", "-", "#", "-", "[", "-").Replace(id)
	child, err := graph.CallChild(withToolSpend(ctx, nil), name, kind, Turn(text)...) // its cost is in its state
	toolSpendOf(ctx).add(spentIn(child.State))
	switch {
	case err == nil && WasInterrupted(child.State):
		return tool.Result{}, ErrInterrupted // it may notice the interruption before this call does
	case err == nil:
		return tool.TextResult(LastResponse(child.State)), nil
	case isWaiting(err) || IsBudgetExhausted(ctx, err) || ctx.Err() != nil:
		return tool.Result{}, err
	}
	return tool.Result{}, errors.Join(err, graph.DropChild(ctx, name))
}

// A toolSpend adds up the cost of the agents and models that a tool call uses.
type toolSpend struct {
	mu    sync.Mutex
	spent Spend
}

type toolSpendKey struct{}

// toolSpendOf returns the toolSpend of the call that ctx belongs to, or nil if there is none.
func toolSpendOf(ctx context.Context) *toolSpend {
	t, _ := ctx.Value(toolSpendKey{}).(*toolSpend)
	return t
}

func withToolSpend(ctx context.Context, t *toolSpend) context.Context {
	return context.WithValue(ctx, toolSpendKey{}, t)
}

func (t *toolSpend) add(s Spend) {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.spent = t.spent.add(s)
	t.mu.Unlock()
}

// spentIn returns what a graph has spent. It is zero if the graph does not keep
// the key Spent.
func spentIn(s graph.State) Spend {
	v, _ := s.Value(Spent.Name())
	cost, _ := v.(Spend)
	return cost
}

// withAgents returns tools followed by the tools of agents.
func withAgents(tools []tool.Tool, agents []AgentTool) []tool.Tool {
	if len(agents) == 0 {
		return tools
	}
	list := append([]tool.Tool(nil), tools...)
	for _, a := range agents {
		list = append(list, a.Tool())
	}
	return list
}

// childGraphs returns the graphs that a tools node can run.
func childGraphs(agents []AgentTool) map[string]graph.ChildGraph {
	if len(agents) == 0 {
		return nil
	}
	kids := make(map[string]graph.ChildGraph, len(agents))
	for _, a := range agents {
		kids[a.Spec.Name] = graph.ChildGraph{Graph: a.Graph}
	}
	return kids
}
