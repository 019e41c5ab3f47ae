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

// An AgentTool is a tool that is an agent: a model calls it with a request, and
// reads its last reply. Each call is a child graph below the tools node, under the
// id of the call: its steps, questions and events are part of the run, and a call
// that was cut off goes on where it was. What it costs counts for the caller, whose
// Budget bounds both together. Calls of one reply run together.
//
// Give it to Config.Agents; in a graph of your own to Act.Agents, and its Tool to
// Think.Tools.
type AgentTool struct {
	// Spec is what the model is told. Without a Schema the arguments are the text
	// "request"; with one they are the agent's input as they are.
	Spec  llm.ToolSpec
	Graph *graph.Graph // of a Config, or any other that works on Messages
}

// Tool is what a model may call.
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
					return tool.Failed("'request' is required and must be a text"), nil
				}
				text = in.Request
			}
			return delegate(ctx, a.Spec.Name, c.ID, text)
		}}
}

// delegate runs the child of a call, or goes on with it. A child that has failed is
// dropped, so that a further attempt of the call begins anew.
func delegate(ctx context.Context, kind, id, text string) (tool.Result, error) {
	name := strings.NewReplacer("/", "-", "#", "-", "[", "-").Replace(id)
	child, err := graph.CallNamed(withBill(ctx, nil), name, kind, Turn(text)...) // what it costs is in its state
	billOf(ctx).add(spentIn(child.State))
	switch {
	case err == nil:
		return tool.Text(LastResponse(child.State)), nil
	case waits(err) || UsedUp(ctx, err) || ctx.Err() != nil:
		return tool.Result{}, err
	}
	return tool.Result{}, errors.Join(err, graph.Drop(ctx, name))
}

// A bill adds up what agents and models cost that a call of a tool uses.
type bill struct {
	mu    sync.Mutex
	spent Spend
}

type billKey struct{}

// billOf is the bill of the call that ctx belongs to; nil: there is none.
func billOf(ctx context.Context) *bill {
	b, _ := ctx.Value(billKey{}).(*bill)
	return b
}

func withBill(ctx context.Context, b *bill) context.Context {
	return context.WithValue(ctx, billKey{}, b)
}

func (b *bill) add(s Spend) {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.spent = b.spent.add(s)
	b.mu.Unlock()
}

// spentIn is what a graph has cost. It may not know.
func spentIn(s graph.State) Spend {
	v, _ := s.Value(Spent.Name())
	cost, _ := v.(Spend)
	return cost
}

// withAgents is tools, and those that are agents.
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

// children are the graphs that a tools node may run.
func children(agents []AgentTool) map[string]graph.Sub {
	if len(agents) == 0 {
		return nil
	}
	kids := make(map[string]graph.Sub, len(agents))
	for _, a := range agents {
		kids[a.Spec.Name] = graph.Sub{Graph: a.Graph}
	}
	return kids
}
